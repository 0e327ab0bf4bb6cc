/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/copy_pause.h"

#include "base/clock.h"
#include "unit/unit.h"

#define NOW    (1000 * NS_PER_S)
#define MINUTE (60 * NS_PER_S)
#define MIB(n) ((uint64_t)(n) << 20)

START_TEST(pace_is_forgotten_after_a_while)
{
	struct copy_pace p = {0};

	ck_assert_uint_eq(copy_pace_get(&p, NOW), 0);
	copy_pace_note(&p, MIB(100), 100 * NS_PER_S, 0, NOW);
	ck_assert_uint_eq(copy_pace_get(&p, NOW), MIB(1));
	ck_assert_uint_eq(copy_pace_get(&p, NOW + 2 * MINUTE), MIB(1));
	ck_assert_uint_eq(copy_pace_get(&p, NOW + 4 * MINUTE), 0);
	/* too little, no time at all, and what is only as fast as its limit */
	copy_pace_note(&p, MIB(1), NS_PER_S, 0, NOW);
	copy_pace_note(&p, MIB(100), 0, 0, NOW);
	copy_pace_note(&p, MIB(100), NS_PER_S, MIB(100), NOW);
	ck_assert_uint_eq(copy_pace_get(&p, NOW), MIB(1));
	copy_pace_note(&p, MIB(100), 2 * NS_PER_S, MIB(100), NOW);
	ck_assert_uint_eq(copy_pace_get(&p, NOW), MIB(50));
}
END_TEST

static const struct {
	struct copy_work work;
	uint64_t max_pause_ms;
	const char *refused; /* NULL: it fits */
} cases[] = {
	{{.bytes = MIB(1000)}, 1000, NULL},
	{{.bytes = MIB(1000), .bytes_per_s = MIB(1000)}, 1000, NULL},
	{{.bytes = MIB(1000), .bytes_per_s = MIB(999)}, 1000,
		"for 1001 ms while 0 files are flushed and 1000M"},
	/* small ones are a measurement, but limits are kept */
	{{.bytes = MIB(64), .bytes_per_s = 1}, 1000, NULL},
	{{.bytes = MIB(64), .bytes_per_s = MIB(999), .limit_bytes_per_s = MIB(32)}, 1000, "for 2000 ms"},
	{{.bytes = MIB(65), .bytes_per_s = MIB(1)}, 1000, "for 65000 ms"},
	{{.bytes = MIB(100), .bytes_per_s = MIB(50), .limit_bytes_per_s = MIB(100)}, 1000, "for 2000 ms"},
	{{.bytes = MIB(1), .files = 300000, .walk_ns = 2 * NS_PER_S}, 1000, "for 2000 ms while 300000 files"},
	{{.bytes = MIB(100), .bytes_per_s = MIB(100), .files = 1, .walk_ns = NS_PER_S}, 1999, "for 2000 ms"},
	{{.bytes = MIB(100), .bytes_per_s = MIB(100), .files = 1, .walk_ns = NS_PER_S}, 2000, NULL},
};

START_TEST(only_what_does_not_fit_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		struct copy_work w = cases[i].work;
		struct copy_estimate p = {0};

		w.id = "one";
		copy_estimate_add(&p, &w);
		if (cases[i].refused)
			ASSERT_FAILS(copy_estimate_check(&p, cases[i].max_pause_ms, &err), ERR_PRECONDITION,
				cases[i].refused);
		else
			ASSERT_OK(copy_estimate_check(&p, cases[i].max_pause_ms, &err));
	}
}
END_TEST

START_TEST(volumes_that_are_copied_together_wait_for_each_other)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct copy_estimate p = {0};

	for (unsigned i = 0; i < 3; i++) {
		ASSERT_OK(copy_estimate_check(&p, 200, &err));
		copy_estimate_add(&p, &(struct copy_work){.id = i == 0 ? "one" : "more",
					      .bytes = MIB(100),
					      .bytes_per_s = MIB(1000),
					      .files = 2,
					      .walk_ns = 0});
	}
	ASSERT_FAILS(copy_estimate_check(&p, 299, &err), ERR_PRECONDITION,
		"volume one is in use together with 2 other volumes, and its writers would have to stand still for 300 "
		"ms while 6 files are flushed");
	error_clear(&err);
	ASSERT_OK(copy_estimate_check(&p, 300, &err));
}
END_TEST

UNIT_MAIN("copy_pause", pace_is_forgotten_after_a_while, only_what_does_not_fit_is_refused,
	volumes_that_are_copied_together_wait_for_each_other)

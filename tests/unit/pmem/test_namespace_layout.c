/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/namespace_layout.h"

#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static const unsigned ways[] = {1, 2, 3, 4, 6};
static const uint64_t region_aligns[] = {
	0, 1, UINT64_MAX, 4096, MIB(2), MIB(3), MIB(16), MIB(48), MIB(96), GIB(1)};

#define EACH_UNIT (ARRAY_SIZE(ways) * ARRAY_SIZE(region_aligns))

static uint64_t unit_number(int i)
{
	return layout_alignment(
		0, ways[(size_t)i % ARRAY_SIZE(ways)], region_aligns[(size_t)i / ARRAY_SIZE(ways)]);
}

START_TEST(alignment_is_the_least_common_multiple)
{
	static const struct {
		unsigned ways;
		uint64_t region_align;
		uint64_t unit;
	} cases[] = {
		{1, MIB(16), MIB(16)},
		{1, MIB(3), MIB(6)},
		{1, GIB(1), GIB(1)},
		{1, 4096, MIB(2)},
		{2, MIB(16), MIB(16)},
		{2, MIB(3), MIB(12)},
		{3, MIB(16), MIB(48)},
		{3, MIB(48), MIB(48)},
		{3, MIB(96), MIB(96)},
		{3, GIB(1), GIB(3)},
		{4, MIB(96), MIB(96)},
		{4, 4096, MIB(8)},
		{6, MIB(16), MIB(48)},
		{6, MIB(96), MIB(96)},
		{6, GIB(1), GIB(3)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ck_assert_uint_eq(
			layout_alignment(MIB(2), cases[i].ways, cases[i].region_align), cases[i].unit);
}
END_TEST

START_TEST(alignment_replaces_what_the_kernel_does_not_tell)
{
	ck_assert_uint_eq(layout_alignment(0, 0, 0), MIB(96));
	ck_assert_uint_eq(layout_alignment(0, 1, 1), MIB(96));
	ck_assert_uint_eq(layout_alignment(0, 1, UINT64_MAX), MIB(96));
	ck_assert_uint_eq(layout_alignment(4096, 1, MIB(16)), MIB(16));
	ck_assert_uint_eq(layout_alignment(GIB(1), 2, MIB(16)), GIB(2));
}
END_TEST

START_TEST(alignment_that_does_not_fit_is_the_largest_number)
{
	ck_assert_uint_eq(layout_alignment(1ULL << 63, 2, MIB(16)), UINT64_MAX);
	ck_assert_uint_eq(layout_alignment(MIB(2), 1, (1ULL << 63) + 1), UINT64_MAX);
}
END_TEST

START_TEST(unit_is_a_multiple_of_both_alignments)
{
	uint64_t unit = unit_number(_i);
	uint64_t region = region_aligns[(size_t)_i / ARRAY_SIZE(ways)];

	ck_assert_uint_eq(unit % (PFN_ALIGN_BYTES * ways[(size_t)_i % ARRAY_SIZE(ways)]), 0);
	if (region > 1 && region != UINT64_MAX)
		ck_assert_uint_eq(unit % region, 0);
}
END_TEST

/* As Linux 6.1 gave them on NVDIMMs with labels of 1.1, and on CXL memory, whose labels are 2.1. */
static const struct {
	uint64_t raw_bytes;
	uint64_t fsdax_bytes;
	uint64_t btt_1_bytes; /* 0: refused */
	uint64_t btt_2_bytes; /* 0: not tried */
} measured[] = {
	{MIB(16), 14680064, 0, 0},
	{MIB(32), 31457280, 32440320, 0},
	{MIB(48), 48234496, 49201152, 0},
	{MIB(64), 65011712, 65961984, 65966080},
	{MIB(128), 130023424, 133005312, 0},
	{MIB(256), 262144000, 267091968, 267096064},
	{MIB(496), 511705088, 518504448, 0},
	{MIB(1008), 1040187392, 1054851072, 0},
};

START_TEST(usable_sizes_are_those_of_the_kernel)
{
	uint64_t raw = measured[_i].raw_bytes;

	ck_assert_uint_eq(layout_fsdax_usable(raw, PFN_ALIGN_BYTES), measured[_i].fsdax_bytes);
	ck_assert_uint_eq(layout_fsdax_usable(raw, 0), measured[_i].fsdax_bytes);
	ck_assert_uint_eq(layout_btt_usable(raw, BTT_START_OLD_BYTES), measured[_i].btt_1_bytes);
	if (measured[_i].btt_2_bytes)
		ck_assert_uint_eq(layout_btt_usable(raw, 0), measured[_i].btt_2_bytes);
}
END_TEST

START_TEST(what_is_too_small_has_nothing_usable)
{
	ck_assert_uint_eq(layout_fsdax_usable(0, 0), 0);
	ck_assert_uint_eq(layout_fsdax_usable(8192, 0), 0);
	ck_assert_uint_eq(layout_fsdax_usable(MIB(2), 0), 0);
	ck_assert_uint_eq(layout_fsdax_usable(MIB(4), 0), MIB(2));
	ck_assert_uint_eq(layout_fsdax_usable(GIB(1), GIB(1)), 0);
	ck_assert_uint_eq(layout_btt_usable(0, 0), 0);
	ck_assert_uint_eq(layout_btt_usable(4095, 4096), 0);
	ck_assert_uint_eq(layout_btt_usable(MIB(16) - 1, 0), 0);
	ck_assert_uint_gt(layout_btt_usable(MIB(16), 0), MIB(14));
}
END_TEST

/* An arena has at most 512 GiB, and what is left below 16 MiB is lost. */
START_TEST(large_sector_namespaces_have_several_arenas)
{
	uint64_t one = layout_btt_usable(GIB(512), 0);

	ck_assert_uint_eq(layout_btt_usable(GIB(1024), 0), 2 * one);
	ck_assert_uint_eq(layout_btt_usable(GIB(512) + MIB(16) - 4096, 0), one);
	ck_assert_uint_eq(layout_btt_usable(GIB(512) + MIB(64), 0), one + layout_btt_usable(MIB(64), 0));
}
END_TEST

START_TEST(usable_never_shrinks_when_the_namespace_grows)
{
	uint64_t fsdax = 0, btt = 0;

	for (uint64_t raw = 0; raw < GIB(1040); raw += raw < GIB(1) ? MIB(1) : MIB(16)) {
		ck_assert_uint_ge(layout_fsdax_usable(raw, 0), fsdax);
		ck_assert_uint_ge(layout_btt_usable(raw, BTT_START_OLD_BYTES), btt);
		fsdax = layout_fsdax_usable(raw, 0);
		btt = layout_btt_usable(raw, BTT_START_OLD_BYTES);
		ck_assert_uint_le(fsdax, raw);
		ck_assert_uint_le(btt, raw);
	}
}
END_TEST

START_TEST(rounding_stops_at_the_ends)
{
	ck_assert_uint_eq(layout_round_up(0, MIB(6)), 0);
	ck_assert_uint_eq(layout_round_up(1, MIB(6)), MIB(6));
	ck_assert_uint_eq(layout_round_up(MIB(6), MIB(6)), MIB(6));
	ck_assert_uint_eq(layout_round_up(UINT64_MAX, MIB(6)), UINT64_MAX);
	ck_assert_uint_eq(layout_round_down(MIB(6) - 1, MIB(6)), 0);
	ck_assert_uint_eq(layout_round_down(MIB(13), MIB(6)), MIB(12));
}
END_TEST

START_TEST(rounding_up_what_was_rounded_down_changes_nothing)
{
	uint64_t unit = unit_number(_i);

	for (uint64_t bytes = 0; bytes < 5 * unit; bytes += unit / 3 + 4096) {
		uint64_t offer = layout_round_down(bytes, unit);
		ck_assert_uint_le(offer, bytes);
		ck_assert_uint_eq(layout_round_up(offer, unit), offer);
		ck_assert_uint_lt(bytes - offer, unit);
		ck_assert_uint_ge(layout_round_up(bytes, unit), bytes);
	}
}
END_TEST

START_TEST(best_gap_is_the_smallest_that_holds_the_size)
{
	/* free: 0..64, 128..160, 192..224, 256..1024 */
	static const struct extent used[] = {{MIB(64), MIB(64)}, {MIB(160), MIB(32)}, {MIB(224), MIB(32)}};
	uint64_t start = 0;

	ck_assert(layout_find_extent(used, 3, GIB(1), MIB(32), MIB(16), &start));
	ck_assert_uint_eq(start, MIB(128));
	ck_assert(layout_find_extent(used, 3, GIB(1), MIB(48), MIB(16), &start));
	ck_assert_uint_eq(start, 0);
	ck_assert(layout_find_extent(used, 3, GIB(1), MIB(768), MIB(16), &start));
	ck_assert_uint_eq(start, MIB(256));
	ck_assert(!layout_find_extent(used, 3, GIB(1), MIB(784), MIB(16), &start));
	ck_assert_uint_eq(start, MIB(256));
	ck_assert(!layout_find_extent(used, 3, GIB(1), 0, MIB(16), &start));
}
END_TEST

START_TEST(places_start_at_a_multiple_of_the_unit)
{
	static const struct extent used[] = {{0, MIB(5)}, {MIB(100), MIB(5)}};
	uint64_t start = 0;

	ck_assert_uint_eq(layout_largest_extent(used, 2, MIB(198), MIB(16)), MIB(80));
	ck_assert(layout_find_extent(used, 2, MIB(198), MIB(80), MIB(16), &start));
	ck_assert_uint_eq(start, MIB(112));
}
END_TEST

START_TEST(region_without_room_has_no_gap)
{
	static const struct extent all[] = {{0, MIB(64)}};
	static const struct extent beyond[] = {{MIB(32), MIB(4096)}};
	uint64_t start = 0;

	ck_assert_uint_eq(layout_largest_extent(all, 1, MIB(64), MIB(16)), 0);
	ck_assert(!layout_find_extent(all, 1, MIB(64), MIB(16), MIB(16), &start));
	ck_assert_uint_eq(layout_largest_extent(NULL, 0, MIB(15), MIB(16)), 0);
	ck_assert_uint_eq(layout_largest_extent(NULL, 0, MIB(64), MIB(16)), MIB(64));
	ck_assert_uint_eq(layout_largest_extent(beyond, 1, MIB(64), MIB(16)), MIB(32));
	ck_assert_uint_eq(layout_largest_extent(NULL, 0, MIB(64), UINT64_MAX), 0);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static size_t random_extents(struct extent used[static 8], uint64_t region_bytes, uint64_t *state)
{
	uint64_t at = 0;
	size_t n = 0;

	while (n < 8) {
		at += next_random(state) % (region_bytes / 8) / 4096 * 4096;
		uint64_t size = 4096 + next_random(state) % (region_bytes / 8) / 4096 * 4096;
		if (at + size > region_bytes)
			break;
		used[n++] = (struct extent){at, size};
		at += size;
	}
	return n;
}

static bool overlaps(const struct extent *used, size_t n, struct extent e)
{
	for (size_t i = 0; i < n; i++)
		if (e.start_bytes < used[i].start_bytes + used[i].size_bytes &&
			used[i].start_bytes < e.start_bytes + e.size_bytes)
			return true;
	return false;
}

START_TEST(largest_gap_can_be_placed_and_nothing_larger)
{
	uint64_t unit = unit_number(_i);
	uint64_t state = (uint64_t)_i + 1;

	for (int round = 0; round < 100; round++) {
		struct extent used[8];
		uint64_t region_bytes = unit + next_random(&state) % (32 * unit);
		size_t n = random_extents(used, region_bytes, &state);
		struct extent e = {.size_bytes = layout_largest_extent(used, n, region_bytes, unit)};

		ck_assert_uint_eq(e.size_bytes % unit, 0);
		ck_assert(!layout_find_extent(
			used, n, region_bytes, e.size_bytes + unit, unit, &e.start_bytes));
		if (e.size_bytes == 0)
			continue;
		ck_assert(layout_find_extent(used, n, region_bytes, e.size_bytes, unit, &e.start_bytes));
		ck_assert_uint_eq(e.start_bytes % unit, 0);
		ck_assert_uint_le(e.start_bytes + e.size_bytes, region_bytes);
		ck_assert(!overlaps(used, n, e));
	}
}
END_TEST

START_TEST(gaps_are_told_largest_first_and_only_the_largest)
{
	uint64_t extents[LAYOUT_EXTENTS_MAX];
	struct extent used[40];

	used[0] = (struct extent){MIB(3), MIB(1)};
	used[1] = (struct extent){MIB(10), MIB(1)};
	ck_assert_uint_eq(layout_free_extents(used, 2, MIB(16), MIB(2), extents), 3);
	ck_assert_uint_eq(extents[0], MIB(6));
	ck_assert_uint_eq(extents[1], MIB(4));
	ck_assert_uint_eq(extents[2], MIB(2));
	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		used[i] = (struct extent){MIB(100) * i + MIB(2) * i, MIB(100)};
	ck_assert_uint_eq(
		layout_free_extents(used, 40, MIB(100) * 40 + MIB(2) * 39 + MIB(8), MIB(2), extents),
		LAYOUT_EXTENTS_MAX);
	ck_assert_uint_eq(extents[0], MIB(8));
	ck_assert_uint_eq(extents[LAYOUT_EXTENTS_MAX - 1], MIB(2));
	ck_assert_uint_eq(layout_free_extents(NULL, 0, MIB(1), MIB(2), extents), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("layout");
	TCase *tc = tcase_create("layout");

	tcase_add_test(tc, alignment_is_the_least_common_multiple);
	tcase_add_test(tc, alignment_replaces_what_the_kernel_does_not_tell);
	tcase_add_test(tc, alignment_that_does_not_fit_is_the_largest_number);
	tcase_add_loop_test(tc, unit_is_a_multiple_of_both_alignments, 0, EACH_UNIT);
	tcase_add_loop_test(tc, usable_sizes_are_those_of_the_kernel, 0, ARRAY_SIZE(measured));
	tcase_add_test(tc, what_is_too_small_has_nothing_usable);
	tcase_add_test(tc, large_sector_namespaces_have_several_arenas);
	tcase_add_test(tc, usable_never_shrinks_when_the_namespace_grows);
	tcase_add_test(tc, rounding_stops_at_the_ends);
	tcase_add_loop_test(tc, rounding_up_what_was_rounded_down_changes_nothing, 0, EACH_UNIT);
	tcase_add_test(tc, best_gap_is_the_smallest_that_holds_the_size);
	tcase_add_test(tc, places_start_at_a_multiple_of_the_unit);
	tcase_add_test(tc, region_without_room_has_no_gap);
	tcase_add_test(tc, gaps_are_told_largest_first_and_only_the_largest);
	tcase_add_loop_test(tc, largest_gap_can_be_placed_and_nothing_larger, 0, EACH_UNIT);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}

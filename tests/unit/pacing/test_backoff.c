/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "pacing/backoff.h"
#include "unit/unit.h"

#define NOW_NS (1000 * NS_PER_S)

/* The wait after a failure is between 80 % and 120 % of @us. */
static void assert_waits(struct backoff *b, uint64_t us)
{
	backoff_fail(b, NOW_NS);
	ck_assert(!backoff_is_over(b, NOW_NS));
	ck_assert(!backoff_is_over(b, NOW_NS + us * 800 - 1));
	ck_assert(backoff_is_over(b, NOW_NS + (us + 1) * 1200));
}

START_TEST(nothing_is_to_be_waited_for_before_a_failure)
{
	struct backoff b;

	backoff_init(&b, 0);
	ck_assert(backoff_is_over(&b, NOW_NS));
}
END_TEST

START_TEST(waits_grow_up_to_the_maximum)
{
	static const uint64_t waits_us[] = {1000000, 1600000, 2560000, 4096000, 6553600, 10485760, 16777216,
		26843545, 30000000, 30000000, 30000000};
	struct backoff b;

	backoff_init(&b, 0);
	for (size_t i = 0; i < ARRAY_SIZE(waits_us); i++)
		assert_waits(&b, waits_us[i]);
}
END_TEST

START_TEST(a_success_begins_anew)
{
	struct backoff b;

	backoff_init(&b, 1);
	assert_waits(&b, 1000);
	assert_waits(&b, 1600);
	assert_waits(&b, 2560);
	backoff_reset(&b);
	ck_assert(backoff_is_over(&b, NOW_NS));
	assert_waits(&b, 1000);
}
END_TEST

START_TEST(no_wait_is_longer_than_the_maximum)
{
	struct backoff b;

	backoff_init(&b, UINT64_MAX);
	assert_waits(&b, BACKOFF_MAX_MS * 1000);
}
END_TEST

START_TEST(waits_differ)
{
	uint64_t first_ns = 0;
	unsigned same = 0;

	for (unsigned i = 0; i < 100; i++) {
		struct backoff b;

		backoff_init(&b, 0);
		backoff_fail(&b, NOW_NS);
		if (i == 0)
			first_ns = b.until_ns;
		else if (b.until_ns == first_ns)
			same++;
	}
	ck_assert_uint_lt(same, 10);
}
END_TEST

UNIT_MAIN("pacing/backoff", nothing_is_to_be_waited_for_before_a_failure, waits_grow_up_to_the_maximum,
	a_success_begins_anew, no_wait_is_longer_than_the_maximum, waits_differ)

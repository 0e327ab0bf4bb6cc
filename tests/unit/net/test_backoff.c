#include "base/clock.h"
#include "net/backoff.h"
#include "unit/unit.h"

#define NOW_NS (1000 * NS_PER_S)

/* The wait after a failure is between 80 % and 120 % of @ms. */
static void assert_waits(struct backoff *b, uint64_t ms)
{
	backoff_fail(b, NOW_NS);
	ck_assert(!backoff_is_over(b, NOW_NS));
	ck_assert(!backoff_is_over(b, NOW_NS + ms * 8 / 10 * NS_PER_MS - 1));
	ck_assert(backoff_is_over(b, NOW_NS + (ms * 12 / 10 + 1) * NS_PER_MS));
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
	static const uint64_t waits_ms[] = {
		1000, 1600, 2560, 4096, 6553, 10484, 16774, 26838, 30000, 30000, 30000};
	struct backoff b;

	backoff_init(&b, 0);
	for (size_t i = 0; i < ARRAY_SIZE(waits_ms); i++)
		assert_waits(&b, waits_ms[i]);
}
END_TEST

START_TEST(a_success_begins_anew)
{
	struct backoff b;

	backoff_init(&b, 100);
	assert_waits(&b, 100);
	assert_waits(&b, 160);
	backoff_reset(&b);
	ck_assert(backoff_is_over(&b, NOW_NS));
	assert_waits(&b, 100);
}
END_TEST

START_TEST(no_wait_is_longer_than_the_maximum)
{
	struct backoff b;

	backoff_init(&b, UINT64_MAX);
	assert_waits(&b, BACKOFF_MAX_MS);
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

UNIT_MAIN("net/backoff", nothing_is_to_be_waited_for_before_a_failure, waits_grow_up_to_the_maximum,
	a_success_begins_anew, no_wait_is_longer_than_the_maximum, waits_differ)

#include "base/clock.h"
#include "net/log_quota.h"
#include "unit/unit.h"

#define NOW_NS (1000 * NS_PER_S)
#define MAX    3

static unsigned take(struct log_quota *q, unsigned n, uint64_t now_ns)
{
	unsigned shown = 0;
	uint64_t missed;

	for (unsigned i = 0; i < n; i++) {
		shown += log_quota_take(q, MAX, now_ns, &missed);
		ck_assert_uint_eq(missed, 0);
	}
	return shown;
}

START_TEST(only_so_many_lines_are_shown_in_a_second)
{
	struct log_quota q = {0};

	ck_assert_uint_eq(take(&q, 2, NOW_NS), 2);
	ck_assert_uint_eq(take(&q, 5, NOW_NS + NS_PER_S - 1), 1);
}
END_TEST

START_TEST(the_next_second_tells_how_many_were_missed)
{
	struct log_quota q = {0};
	uint64_t missed;

	take(&q, MAX + 7, NOW_NS);
	ck_assert(log_quota_take(&q, MAX, NOW_NS + NS_PER_S, &missed));
	ck_assert_uint_eq(missed, 7);
	ck_assert_uint_eq(take(&q, MAX, NOW_NS + NS_PER_S), MAX - 1);
}
END_TEST

START_TEST(nothing_was_missed_when_all_was_shown)
{
	struct log_quota q = {0};

	ck_assert_uint_eq(take(&q, MAX, NOW_NS), MAX);
	ck_assert_uint_eq(take(&q, MAX, NOW_NS + NS_PER_S), MAX);
}
END_TEST

UNIT_MAIN("net/log_quota", only_so_many_lines_are_shown_in_a_second,
	the_next_second_tells_how_many_were_missed, nothing_was_missed_when_all_was_shown)

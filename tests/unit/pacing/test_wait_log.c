/* SPDX-License-Identifier: Apache-2.0 */
/* That something waits, and for what, is logged once and then rarely. */
#include "base/clock.h"
#include "pacing/wait_log.h"
#include "unit/unit.h"

#define NOW       (5 * NS_PER_S)
#define AFTER(ms) (NOW + (ms) * NS_PER_MS)

START_TEST(the_first_reason_is_logged_and_the_same_one_after_ten_minutes)
{
	struct wait_log w = {0};

	ck_assert(wait_log_due(&w, "no route", NOW));
	ck_assert(!wait_log_due(&w, "no route", AFTER(1)));
	ck_assert(!wait_log_due(&w, "no route", AFTER(WAIT_LOG_SAME_MS - 1)));
	ck_assert(wait_log_due(&w, "no route", AFTER(WAIT_LOG_SAME_MS)));
	ck_assert(!wait_log_due(&w, "no route", AFTER(WAIT_LOG_SAME_MS + 1)));
	ck_assert_uint_eq(w.since_ns, NOW);
	wait_log_over(&w);
}
END_TEST

START_TEST(another_reason_is_logged_earlier_but_two_in_turn_do_not_fill_the_log)
{
	struct wait_log w = {0};
	unsigned lines = 0;

	for (uint64_t ms = 0; ms < WAIT_LOG_SAME_MS; ms += 1000)
		lines += wait_log_due(&w, ms / 1000 % 2 ? "no route" : "refused", AFTER(ms));
	ck_assert_uint_ge(lines, 2);
	ck_assert_uint_le(lines, WAIT_LOG_SAME_MS / WAIT_LOG_OTHER_MS + 1);
	wait_log_over(&w);
}
END_TEST

START_TEST(after_its_end_a_wait_begins_anew)
{
	struct wait_log w = {0};

	ck_assert(!wait_log_over(&w));
	ck_assert(wait_log_due(&w, "no route", NOW));
	ck_assert(wait_log_over(&w));
	ck_assert(!wait_log_over(&w));
	ck_assert(wait_log_due(&w, "no route", AFTER(1)));
	ck_assert_uint_eq(w.since_ns, AFTER(1));
	wait_log_over(&w);
}
END_TEST

UNIT_MAIN("pacing/wait_log", the_first_reason_is_logged_and_the_same_one_after_ten_minutes,
	another_reason_is_logged_earlier_but_two_in_turn_do_not_fill_the_log,
	after_its_end_a_wait_begins_anew)

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "pacing/claim_waits.h"
#include "unit/unit.h"

static bool see(struct claim_waits *w, const char *uid, const char *message, uint64_t now_s)
{
	bool tell = claim_waits_see(w, uid, message, now_s * NS_PER_S);

	claim_waits_end(w);
	return tell;
}

START_TEST(a_claim_is_reported_when_it_has_waited_and_once)
{
	struct claim_waits w = {0};

	ck_assert(!see(&w, "c", "full", 100));
	ck_assert(!see(&w, "c", "full", 109));
	ck_assert(see(&w, "c", "full", 110));
	ck_assert(!see(&w, "c", "full", 111));
	ck_assert(!see(&w, "c", "full", 110 + 1799));
	ck_assert(see(&w, "c", "full", 110 + 1800));
	claim_waits_done(&w);
}
END_TEST

START_TEST(a_change_is_reported_after_three_minutes)
{
	struct claim_waits w = {0};

	ck_assert(!see(&w, "c", "3Gi", 100));
	ck_assert(see(&w, "c", "3Gi", 110));
	ck_assert(!see(&w, "c", "2Gi", 289));
	ck_assert(see(&w, "c", "2Gi", 290));
	ck_assert(!see(&w, "c", "2Gi", 291));
	claim_waits_done(&w);
}
END_TEST

START_TEST(a_claim_that_waits_no_more_is_forgotten)
{
	struct claim_waits w = {0};

	ck_assert(!see(&w, "c", "full", 100));
	claim_waits_end(&w);
	ck_assert_uint_eq(w.n, 0);
	ck_assert(!see(&w, "c", "full", 110));
	ck_assert(see(&w, "c", "full", 120));
	claim_waits_done(&w);
}
END_TEST

START_TEST(a_crowd_is_bounded_and_takes_nobody_his_place)
{
	struct claim_waits w = {0};

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 2 * CLAIM_WAITS_MAX; i++) {
			char uid[16];

			snprintf(uid, sizeof(uid), "%u", i);
			ck_assert(claim_waits_see(&w, uid, "full", round * CLAIM_WAIT_NS) ==
				  (round == 1 && i < CLAIM_WAITS_MAX));
		}
		claim_waits_end(&w);
	}
	ck_assert_uint_eq(w.n, CLAIM_WAITS_MAX);
	claim_waits_done(&w);
}
END_TEST

UNIT_MAIN("claim waits", a_claim_is_reported_when_it_has_waited_and_once,
	a_change_is_reported_after_three_minutes, a_claim_that_waits_no_more_is_forgotten,
	a_crowd_is_bounded_and_takes_nobody_his_place)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "duties/driverless_claim_rules.h"
#include "unit/unit.h"

#define MINUTE (60 * NS_PER_S)

/* A round in which only that claim waits. */
static bool see(struct driverless_claim_rules *r, const char *node, const char *uid, uint64_t now)
{
	bool move;

	driverless_claim_rules_begin(r);
	move = driverless_claim_rules_see(r, node, uid, now);
	driverless_claim_rules_end(r);
	return move;
}

START_TEST(a_claim_is_moved_when_its_node_was_without_driver_for_two_minutes)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, MINUTE);
	ck_assert(!see(&r, "n", "c", 2 * MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE - 1);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE - 1));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE);
	ck_assert(see(&r, "n", "c", 3 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(time_that_passed_without_a_look_proves_nothing)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, MINUTE);
	ck_assert(!see(&r, "n", "c", 60 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(a_driver_that_was_seen_meanwhile_starts_the_time_again)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, MINUTE);
	driverless_claim_rules_looked(&r, "n", /* absent= */ false, 2 * MINUTE);
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 4 * MINUTE);
	ck_assert(see(&r, "n", "c", 4 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(a_claim_that_comes_later_waits_as_long)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE);
	driverless_claim_rules_begin(&r);
	ck_assert(driverless_claim_rules_see(&r, "n", "c", 3 * MINUTE));
	ck_assert(!driverless_claim_rules_see(&r, "n", "late", 3 * MINUTE));
	driverless_claim_rules_end(&r);
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(a_claim_that_was_away_counts_as_new_and_a_node_without_claims_is_forgotten)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	ck_assert(!see(&r, "other", "d", 2 * MINUTE));
	ck_assert_uint_eq(r.n_nodes, 1);
	ck_assert_str_eq(r.nodes[0]->name, "other");
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(a_node_that_no_claim_waits_for_is_ignored)
{
	struct driverless_claim_rules r = {0};

	driverless_claim_rules_looked(&r, "n", /* absent= */ true, MINUTE);
	driverless_claim_rules_look_failed(&r, "n");
	ck_assert_uint_eq(r.n_nodes, 0);
	ck_assert(!see(&r, "n", "c", 5 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(a_claim_that_comes_back_to_the_node_waits_again)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE);
	ck_assert(see(&r, "n", "c", 3 * MINUTE));
	driverless_claim_rules_moved(&r, "n", "c", 3 * MINUTE);
	driverless_claim_rules_moved(&r, "n", "other", 3 * MINUTE);
	driverless_claim_rules_moved(&r, "other", "c", 3 * MINUTE);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 5 * MINUTE);
	ck_assert(see(&r, "n", "c", 5 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

START_TEST(after_a_look_that_failed_another_one_is_needed)
{
	struct driverless_claim_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 3 * MINUTE);
	driverless_claim_rules_look_failed(&r, "n");
	ck_assert(!see(&r, "n", "c", 4 * MINUTE));
	driverless_claim_rules_looked(&r, "n", /* absent= */ true, 4 * MINUTE);
	ck_assert(see(&r, "n", "c", 4 * MINUTE));
	driverless_claim_rules_done(&r);
}
END_TEST

UNIT_MAIN("driverless_claim_rules", a_claim_is_moved_when_its_node_was_without_driver_for_two_minutes,
	time_that_passed_without_a_look_proves_nothing,
	a_driver_that_was_seen_meanwhile_starts_the_time_again, a_claim_that_comes_later_waits_as_long,
	a_claim_that_was_away_counts_as_new_and_a_node_without_claims_is_forgotten,
	a_node_that_no_claim_waits_for_is_ignored, after_a_look_that_failed_another_one_is_needed,
	a_claim_that_comes_back_to_the_node_waits_again)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "duties/reschedule_rules.h"
#include "unit/unit.h"

#define MINUTE (60 * NS_PER_S)

/* A round in which only that claim waits. */
static bool see(struct reschedule_rules *r, const char *node, const char *uid, uint64_t now)
{
	bool move;

	reschedule_begin(r);
	move = reschedule_see(r, node, uid, now);
	reschedule_end(r);
	return move;
}

START_TEST(a_claim_is_moved_when_its_node_was_without_driver_for_two_minutes)
{
	struct reschedule_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, MINUTE);
	ck_assert(!see(&r, "n", "c", 2 * MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, 3 * MINUTE - 1);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE - 1));
	reschedule_looked(r.nodes[0], /* absent= */ true, 3 * MINUTE);
	ck_assert(see(&r, "n", "c", 3 * MINUTE));
	reschedule_rules_done(&r);
}
END_TEST

START_TEST(time_that_passed_without_a_look_proves_nothing)
{
	struct reschedule_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, MINUTE);
	ck_assert(!see(&r, "n", "c", 60 * MINUTE));
	reschedule_rules_done(&r);
}
END_TEST

START_TEST(a_driver_that_was_seen_meanwhile_starts_the_time_anew)
{
	struct reschedule_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, MINUTE);
	reschedule_looked(r.nodes[0], /* absent= */ false, 2 * MINUTE);
	reschedule_looked(r.nodes[0], /* absent= */ true, 3 * MINUTE);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, 4 * MINUTE);
	ck_assert(see(&r, "n", "c", 4 * MINUTE));
	reschedule_rules_done(&r);
}
END_TEST

START_TEST(a_claim_that_comes_later_waits_as_long)
{
	struct reschedule_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, 3 * MINUTE);
	reschedule_begin(&r);
	ck_assert(reschedule_see(&r, "n", "c", 3 * MINUTE));
	ck_assert(!reschedule_see(&r, "n", "late", 3 * MINUTE));
	reschedule_end(&r);
	reschedule_rules_done(&r);
}
END_TEST

START_TEST(a_claim_that_was_away_counts_as_new_and_a_node_without_claims_is_forgotten)
{
	struct reschedule_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	ck_assert(!see(&r, "other", "d", 2 * MINUTE));
	ck_assert_uint_eq(r.n_nodes, 1);
	ck_assert_str_eq(r.nodes[0]->name, "other");
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	reschedule_looked(r.nodes[0], /* absent= */ true, 3 * MINUTE);
	ck_assert(!see(&r, "n", "c", 3 * MINUTE));
	reschedule_rules_done(&r);
}
END_TEST

START_TEST(a_node_that_somebody_looks_at_stays)
{
	struct reschedule_rules r = {0};

	ck_assert(!see(&r, "n", "c", MINUTE));
	r.nodes[0]->looking = true;
	reschedule_begin(&r);
	reschedule_end(&r);
	ck_assert_uint_eq(r.n_nodes, 1);
	ck_assert_uint_eq(r.nodes[0]->n_claims, 0);
	r.nodes[0]->looking = false;
	reschedule_end(&r);
	ck_assert_uint_eq(r.n_nodes, 0);
	reschedule_rules_done(&r);
}
END_TEST

UNIT_MAIN("reschedule rules", a_claim_is_moved_when_its_node_was_without_driver_for_two_minutes,
	time_that_passed_without_a_look_proves_nothing, a_driver_that_was_seen_meanwhile_starts_the_time_anew,
	a_claim_that_comes_later_waits_as_long,
	a_claim_that_was_away_counts_as_new_and_a_node_without_claims_is_forgotten,
	a_node_that_somebody_looks_at_stays)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "unit/nodes/reports.h"
#include "unit/scheduler/cluster_rig.h"
#include "unit/unit.h"

static struct cluster_rig rig;

static void set_up(void)
{
	cluster_rig_open(&rig);
	cluster_rig_node(&rig, "a", 8, 8, NULL);
	cluster_rig_node(&rig, "b", 8, 8, NULL);
}

static void tear_down(void)
{
	cluster_rig_close(&rig);
}

/* GiB charged to the node. */
static uint64_t load(const char *node, bool undecided)
{
	struct sched_load l = sched_charges_load(rig.charges, cluster_rig_get(&rig, node), undecided);

	ck_assert_uint_eq(l.size_bytes, l.raw_bytes);
	return l.size_bytes / RIG_GIB;
}

static void pass(const char *pod, const char *volume, uint64_t gib, bool both)
{
	const struct sched_node *nodes[] = {cluster_rig_get(&rig, "a"), cluster_rig_get(&rig, "b")};
	struct pod_needs needs = rig_needs(volume, 2, (uint64_t[]){gib, gib});

	sched_charges_pod(rig.charges, pod, &needs, nodes, both ? 2 : 1, 0);
	pod_needs_done(&needs);
}

START_TEST(pod_counts_on_each_node_until_it_is_decided)
{
	pass("pod", "v", 1, true);
	ck_assert_uint_eq(load("a", true), 2);
	ck_assert_uint_eq(load("b", true), 2);
	ck_assert_uint_eq(load("a", false), 0);
	sched_charges_decided(rig.charges, "v", "b", RIG_GIB, false);
	ck_assert_uint_eq(load("a", true), 0);
	ck_assert_uint_eq(load("b", false), 2);
}
END_TEST

START_TEST(one_node_is_a_decision)
{
	pass("pod", "v", 1, false);
	ck_assert_uint_eq(load("a", false), 2);
	ck_assert_uint_eq(load("b", true), 0);
	sched_charges_drop(rig.charges, "pod");
	ck_assert_uint_eq(load("a", true), 0);
}
END_TEST

START_TEST(same_decision_again_is_no_news)
{
	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	rig.n_changed = 0;
	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	ck_assert_uint_eq(rig.n_changed, 0);
	ck_assert_uint_eq(load("a", false), 1);
	sched_charges_decided(rig.charges, "v", "b", RIG_GIB, false);
	ck_assert_uint_eq(load("a", false), 0);
	ck_assert_uint_eq(load("b", false), 1);
	ck_assert_uint_eq(rig.n_changed, 1);
}
END_TEST

START_TEST(volume_counts_until_the_inventory_has_it)
{
	struct node_report *r = report_new("a");

	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	report_add_volume(r, "v", "v")->phase = PHASE_CREATING;
	sched_nodes_put(rig.nodes, r);
	ck_assert_uint_eq(load("a", false), 1);
	cluster_rig_node(&rig, "b", 8, 8, "v");
	ck_assert_uint_eq(load("a", false), 1);
	cluster_rig_node(&rig, "a", 7, 8, "v");
	ck_assert_uint_eq(load("a", false), 0);
	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	ck_assert_uint_eq(load("a", false), 0);
}
END_TEST

START_TEST(decision_waits_for_a_node_that_is_not_known_yet)
{
	sched_charges_decided(rig.charges, "v", "c", RIG_GIB, false);
	cluster_rig_node(&rig, "c", 8, 0, NULL);
	ck_assert_uint_eq(load("c", false), 1);
}
END_TEST

START_TEST(what_a_claim_says_outlives_its_pod)
{
	pass("pod", "v", 1, true);
	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	sched_charges_drop(rig.charges, "pod");
	ck_assert_uint_eq(load("a", true), 1);
	sched_charges_undecided(rig.charges, "v");
	ck_assert_uint_eq(load("a", true), 0);
}
END_TEST

START_TEST(claim_without_a_node_does_not_speak_for_its_pod)
{
	pass("pod", "v", 1, false);
	sched_charges_undecided(rig.charges, "v");
	ck_assert_uint_eq(load("a", false), 2);
}
END_TEST

START_TEST(pod_that_may_go_elsewhere_has_no_selected_node_any_more)
{
	cluster_rig_node(&rig, "c", 8, 8, NULL);
	sched_charges_decided(rig.charges, "v", "c", RIG_GIB, false);
	pass("pod", "v", 1, true);
	ck_assert_uint_eq(load("c", true), 0);
	ck_assert_uint_eq(load("a", true), 2);
	ck_assert_uint_eq(load("b", true), 2);
	sched_charges_undecided(rig.charges, "v");
	ck_assert_uint_eq(load("a", true), 2);
	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	pass("pod", "v", 1, true);
	ck_assert_uint_eq(load("a", true), 2);
	ck_assert_uint_eq(load("a", false), 1);
}
END_TEST

START_TEST(pod_that_passes_again_counts_once)
{
	pass("pod", "v", 1, true);
	pass("pod", "v", 2, true);
	ck_assert_uint_eq(load("a", true), 4);
}
END_TEST

START_TEST(charges_expire)
{
	pass("pod", "v", 1, true);
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS - 1);
	ck_assert_uint_eq(load("a", true), 2);
	rig.n_changed = 0;
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS);
	ck_assert_uint_eq(load("a", true), 0);
	ck_assert_uint_eq(rig.n_changed, 1);
	ck_assert_uint_eq(sched_charges_count(rig.charges).pods_undecided, 0);
}
END_TEST

START_TEST(decided_pods_count_as_long_as_they_are_seen)
{
	pass("pod", "v", 1, false);
	sched_charges_seen(rig.charges, "pod", 1);
	sched_charges_seen(rig.charges, "nobody", 1);
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS);
	ck_assert_uint_eq(load("a", false), 2);
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS + 1);
	ck_assert_uint_eq(load("a", false), 0);
	pass("pod", "v", 1, true);
	sched_charges_seen(rig.charges, "pod", 1);
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS);
	ck_assert_uint_eq(load("a", true), 0);
}
END_TEST

static void pass_as_of(uint64_t version)
{
	const struct sched_node *nodes[] = {cluster_rig_get(&rig, "a")};
	struct pod_needs needs = rig_needs("v", 1, (uint64_t[]){1});

	needs.pod_version = version;
	memcpy(needs.looked_at, "2026-01-02T03:04:05", sizeof(needs.looked_at));
	sched_charges_pod(rig.charges, "pod", &needs, nodes, 1, 0);
	pod_needs_done(&needs);
}

START_TEST(failures_of_earlier_attempts_come_late)
{
	pass_as_of(7);
	sched_charges_unscheduled(rig.charges, "pod", 6, NULL, false);
	sched_charges_unscheduled(rig.charges, "pod", 7, NULL, false);
	sched_charges_unscheduled(rig.charges, "nobody", 8, NULL, false);
	ck_assert_uint_eq(load("a", false), 1);
	sched_charges_unscheduled(rig.charges, "pod", 8, NULL, false);
	ck_assert_uint_eq(load("a", false), 0);
	pass_as_of(7);
	sched_charges_unscheduled(rig.charges, "pod", 0, NULL, false);
	ck_assert_uint_eq(load("a", false), 0);
	pass_as_of(7);
	sched_charges_unscheduled(rig.charges, "pod", 8, "2026-01-02T03:04:04Z", false);
	ck_assert_uint_eq(load("a", false), 1);
	sched_charges_unscheduled(rig.charges, "pod", 8, "2026-01-02T03:04:05Z", false);
	ck_assert_uint_eq(load("a", false), 0);
}
END_TEST

/* The time of the condition is that of the first failure: this may be of any. */
START_TEST(a_pod_that_says_anew_that_it_found_no_node_counts_a_minute_at_most)
{
	const struct sched_node *a = cluster_rig_get(&rig, "a");
	struct pod_needs needs = rig_needs("v", 1, &(uint64_t){1});

	needs.pod_version = 7;
	sched_charges_pod(rig.charges, "pod", &needs, &a, 1, 0);
	sched_charges_seen(rig.charges, "pod", 1);
	sched_charges_unscheduled(rig.charges, "pod", 7, NULL, true);
	sched_charges_seen(rig.charges, "pod", 2);
	sched_charges_unscheduled(rig.charges, "pod", 8, NULL, true);
	sched_charges_seen(rig.charges, "pod", SCHED_CHARGE_NS);
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS + 1);
	ck_assert_uint_eq(load("a", false), 1);
	sched_charges_expire(rig.charges, SCHED_CHARGE_NS + 2);
	ck_assert_uint_eq(load("a", false), 0);
	pod_needs_done(&needs);
}
END_TEST

START_TEST(pods_that_wait_for_long_are_late)
{
	pass("pod", "v", 1, true);
	sched_charges_expire(rig.charges, SCHED_LATE_NS - 1);
	ck_assert_uint_eq(sched_charges_late(rig.charges), 0);
	sched_charges_expire(rig.charges, SCHED_LATE_NS);
	ck_assert_uint_eq(sched_charges_late(rig.charges), 1);
	sched_charges_drop(rig.charges, "pod");
	sched_charges_expire(rig.charges, SCHED_LATE_NS);
	ck_assert_uint_eq(sched_charges_late(rig.charges), 0);
}
END_TEST

START_TEST(pods_that_share_a_claim_go_where_it_goes)
{
	pass("pod-1", "v", 1, true);
	pass("pod-2", "v", 1, true);
	ck_assert_uint_eq(load("a", true), 4);
	sched_charges_decided(rig.charges, "v", "a", RIG_GIB, false);
	ck_assert_uint_eq(load("a", true), 2);
	ck_assert_uint_eq(load("b", true), 0);
}
END_TEST

START_TEST(node_that_is_forgotten_takes_its_charges_along_until_it_is_back)
{
	sched_charges_decided(rig.charges, "w", "a", RIG_GIB, false);
	pass("pod", "v", 1, true);
	sched_nodes_end(rig.nodes, "a");
	sched_nodes_begin_table(rig.nodes);
	sched_nodes_end_table(rig.nodes);
	cluster_rig_node(&rig, "c", 8, 8, NULL);
	ck_assert_uint_eq(load("c", true), 0);
	cluster_rig_node(&rig, "a", 8, 8, NULL);
	ck_assert_uint_eq(load("a", true), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_charges");
	TCase *tcase = tcase_create("sched_charges");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, pod_counts_on_each_node_until_it_is_decided);
	tcase_add_test(tcase, one_node_is_a_decision);
	tcase_add_test(tcase, same_decision_again_is_no_news);
	tcase_add_test(tcase, volume_counts_until_the_inventory_has_it);
	tcase_add_test(tcase, decision_waits_for_a_node_that_is_not_known_yet);
	tcase_add_test(tcase, what_a_claim_says_outlives_its_pod);
	tcase_add_test(tcase, claim_without_a_node_does_not_speak_for_its_pod);
	tcase_add_test(tcase, pod_that_may_go_elsewhere_has_no_selected_node_any_more);
	tcase_add_test(tcase, pod_that_passes_again_counts_once);
	tcase_add_test(tcase, charges_expire);
	tcase_add_test(tcase, decided_pods_count_as_long_as_they_are_seen);
	tcase_add_test(tcase, failures_of_earlier_attempts_come_late);
	tcase_add_test(tcase, a_pod_that_says_anew_that_it_found_no_node_counts_a_minute_at_most);
	tcase_add_test(tcase, pods_that_wait_for_long_are_late);
	tcase_add_test(tcase, pods_that_share_a_claim_go_where_it_goes);
	tcase_add_test(tcase, node_that_is_forgotten_takes_its_charges_along_until_it_is_back);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

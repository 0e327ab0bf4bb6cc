/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "unit/scheduler/cluster_rig.h"
#include "unit/unit.h"

static struct cluster_rig rig;

static void set_up(void)
{
	cluster_rig_open(&rig);
	cluster_rig_node(&rig, "a", 8, 8, 1);
	cluster_rig_node(&rig, "b", 8, 8, 1);
}

static void tear_down(void)
{
	cluster_rig_close(&rig);
}

/* GiB reserved on the node. */
static uint64_t load(const char *node, bool undecided)
{
	struct sched_load l = reservations_load(rig.reservations, cluster_rig_get(&rig, node), undecided);

	ck_assert_uint_eq(l.size_bytes, l.raw_bytes);
	return l.size_bytes / RIG_GIB;
}

static void pass(const char *pod, const char *volume, uint64_t gib, bool both)
{
	const struct sched_node *nodes[] = {cluster_rig_get(&rig, "a"), cluster_rig_get(&rig, "b")};
	struct pod_needs needs = rig_needs(volume, 2, (uint64_t[]){gib, gib});

	reservations_add_pod(rig.reservations, pod, &needs, nodes, both ? 2 : 1, 0);
	pod_needs_done(&needs);
}

START_TEST(pod_counts_on_each_node_until_it_is_decided)
{
	pass("pod", "v", 1, true);
	ck_assert_uint_eq(load("a", true), 2);
	ck_assert_uint_eq(load("b", true), 2);
	ck_assert_uint_eq(load("a", false), 0);
	cluster_rig_place(&rig, "v", "b", 1);
	ck_assert_uint_eq(load("a", true), 0);
	ck_assert_uint_eq(load("b", false), 2);
}
END_TEST

START_TEST(one_node_is_a_decision)
{
	pass("pod", "v", 1, false);
	ck_assert_uint_eq(load("a", false), 2);
	ck_assert_uint_eq(load("b", true), 0);
	reservations_drop_pod(rig.reservations, "pod");
	ck_assert_uint_eq(load("a", true), 0);
}
END_TEST

START_TEST(same_decision_again_is_no_news)
{
	cluster_rig_place(&rig, "v", "a", 1);
	rig.n_changed = 0;
	cluster_rig_place(&rig, "v", "a", 1);
	ck_assert_uint_eq(rig.n_changed, 0);
	ck_assert_uint_eq(load("a", false), 1);
	cluster_rig_place(&rig, "v", "b", 1);
	ck_assert_uint_eq(load("a", false), 0);
	ck_assert_uint_eq(load("b", false), 1);
	ck_assert_uint_eq(rig.n_changed, 1);
}
END_TEST

/* The watches of PmemVolume and PmemNode may deliver their events in either order. */
START_TEST(volume_counts_until_its_node_shows_the_report_that_has_it)
{
	cluster_rig_place(&rig, "v", "a", 1);
	cluster_rig_node(&rig, "a", 7, 8, 2);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_made(rig.reservations, "v", "b", 1);
	reservations_made(rig.reservations, "w", "a", 1);
	reservations_made(rig.reservations, "v", "a", 3);
	cluster_rig_node(&rig, "b", 7, 8, 4);
	ck_assert_uint_eq(load("a", false), 1);
	rig.n_changed = 0;
	cluster_rig_node(&rig, "a", 7, 8, 4);
	ck_assert_uint_eq(load("a", false), 0);
	ck_assert_uint_eq(rig.n_changed, 1);
	cluster_rig_place(&rig, "v", "a", 1);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_made(rig.reservations, "v", "a", 4);
	ck_assert_uint_eq(load("a", false), 0);
	ck_assert_uint_eq(rig.n_changed, 3);
}
END_TEST

START_TEST(what_was_made_elsewhere_counts_where_it_is_placed_next)
{
	cluster_rig_place(&rig, "v", "a", 1);
	reservations_made(rig.reservations, "v", "a", 3);
	cluster_rig_place(&rig, "v", "b", 1);
	cluster_rig_node(&rig, "b", 7, 8, 4);
	ck_assert_uint_eq(load("a", false), 0);
	ck_assert_uint_eq(load("b", false), 1);
}
END_TEST

START_TEST(the_volume_of_a_pod_ends_when_it_is_shown_and_the_others_stay)
{
	pass("pod", "v", 1, false);
	reservations_made(rig.reservations, "v", "a", 1);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_made(rig.reservations, "v1", "a", 1);
	ck_assert_uint_eq(reservations_count(rig.reservations).pods, 0);
	ck_assert_uint_eq(reservations_count(rig.reservations).volumes_decided, 0);
}
END_TEST

START_TEST(what_an_object_says_ends_at_its_time)
{
	const struct sched_item item = {RIG_GIB, false, false};

	reservations_place(rig.reservations, "v", "a", &item, 5);
	reservations_place(rig.reservations, "w", "unknown", &item, 5);
	reservations_expire(rig.reservations, 4, NULL, NULL);
	ck_assert_uint_eq(reservations_count(rig.reservations).volumes_decided, 2);
	reservations_place(rig.reservations, "v", "a", &item, 7);
	reservations_expire(rig.reservations, 6, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 1);
	ck_assert_uint_eq(reservations_count(rig.reservations).volumes_decided, 1);
	rig.n_changed = 0;
	reservations_expire(rig.reservations, 7, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 0);
	ck_assert_uint_eq(rig.n_changed, 1);
}
END_TEST

START_TEST(decision_waits_for_a_node_that_is_not_known_yet)
{
	cluster_rig_place(&rig, "v", "c", 1);
	cluster_rig_node(&rig, "c", 8, 0, 1);
	ck_assert_uint_eq(load("c", false), 1);
}
END_TEST

START_TEST(what_a_claim_says_outlives_its_pod)
{
	pass("pod", "v", 1, true);
	cluster_rig_place(&rig, "v", "a", 1);
	reservations_drop_pod(rig.reservations, "pod");
	ck_assert_uint_eq(load("a", true), 1);
	reservations_withdraw(rig.reservations, "v");
	ck_assert_uint_eq(load("a", true), 0);
}
END_TEST

START_TEST(claim_without_a_node_does_not_speak_for_its_pod)
{
	pass("pod", "v", 1, false);
	reservations_withdraw(rig.reservations, "v");
	ck_assert_uint_eq(load("a", false), 2);
}
END_TEST

START_TEST(pod_that_may_go_elsewhere_has_no_selected_node_any_more)
{
	cluster_rig_node(&rig, "c", 8, 8, 1);
	cluster_rig_place(&rig, "v", "c", 1);
	pass("pod", "v", 1, true);
	ck_assert_uint_eq(load("c", true), 0);
	ck_assert_uint_eq(load("a", true), 2);
	ck_assert_uint_eq(load("b", true), 2);
	reservations_withdraw(rig.reservations, "v");
	ck_assert_uint_eq(load("a", true), 2);
	cluster_rig_place(&rig, "v", "a", 1);
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

START_TEST(reservations_of_pods_expire)
{
	pass("pod", "v", 1, true);
	reservations_expire(rig.reservations, RESERVATION_NS - 1, NULL, NULL);
	ck_assert_uint_eq(load("a", true), 2);
	rig.n_changed = 0;
	reservations_expire(rig.reservations, RESERVATION_NS, NULL, NULL);
	ck_assert_uint_eq(load("a", true), 0);
	ck_assert_uint_eq(rig.n_changed, 1);
	ck_assert_uint_eq(reservations_count(rig.reservations).pods_undecided, 0);
}
END_TEST

START_TEST(decided_pods_count_as_long_as_they_are_seen)
{
	pass("pod", "v", 1, false);
	reservations_seen(rig.reservations, "pod", 1);
	reservations_seen(rig.reservations, "unknown", 1);
	reservations_expire(rig.reservations, RESERVATION_NS, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 2);
	reservations_expire(rig.reservations, RESERVATION_NS + 1, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 0);
	pass("pod", "v", 1, true);
	reservations_seen(rig.reservations, "pod", 1);
	reservations_expire(rig.reservations, RESERVATION_NS, NULL, NULL);
	ck_assert_uint_eq(load("a", true), 0);
}
END_TEST

static void pass_as_of(uint64_t version)
{
	const struct sched_node *nodes[] = {cluster_rig_get(&rig, "a")};
	struct pod_needs needs = rig_needs("v", 1, (uint64_t[]){1});

	needs.pod_version = version;
	memcpy(needs.looked_at, "2026-01-02T03:04:05", sizeof(needs.looked_at));
	reservations_add_pod(rig.reservations, "pod", &needs, nodes, 1, 0);
	pod_needs_done(&needs);
}

START_TEST(failures_of_earlier_attempts_come_late)
{
	pass_as_of(7);
	reservations_unscheduled(rig.reservations, "pod", 6, NULL, false);
	reservations_unscheduled(rig.reservations, "pod", 7, NULL, false);
	reservations_unscheduled(rig.reservations, "unknown", 8, NULL, false);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_unscheduled(rig.reservations, "pod", 8, NULL, false);
	ck_assert_uint_eq(load("a", false), 0);
	pass_as_of(7);
	reservations_unscheduled(rig.reservations, "pod", 0, NULL, false);
	ck_assert_uint_eq(load("a", false), 0);
	pass_as_of(7);
	reservations_unscheduled(rig.reservations, "pod", 8, "2026-01-02T03:04:04Z", false);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_unscheduled(rig.reservations, "pod", 8, "2026-01-02T03:04:05Z", false);
	ck_assert_uint_eq(load("a", false), 0);
}
END_TEST

/* The time of the condition is that of the first failure: this may be of any. */
START_TEST(a_pod_that_says_again_that_it_found_no_node_counts_a_minute_at_most)
{
	const struct sched_node *a = cluster_rig_get(&rig, "a");
	struct pod_needs needs = rig_needs("v", 1, &(uint64_t){1});

	needs.pod_version = 7;
	reservations_add_pod(rig.reservations, "pod", &needs, &a, 1, 0);
	reservations_seen(rig.reservations, "pod", 1);
	reservations_unscheduled(rig.reservations, "pod", 7, NULL, true);
	reservations_seen(rig.reservations, "pod", 2);
	reservations_unscheduled(rig.reservations, "pod", 8, NULL, true);
	reservations_seen(rig.reservations, "pod", RESERVATION_NS);
	reservations_expire(rig.reservations, RESERVATION_NS + 1, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_expire(rig.reservations, RESERVATION_NS + 2, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 0);
	pod_needs_done(&needs);
}
END_TEST

static bool keep_v(void *user, const char *name)
{
	ck_assert_ptr_eq(user, &rig);
	return str_eq(name, "v");
}

START_TEST(what_is_kept_goes_on)
{
	const struct sched_item item = {RIG_GIB, false, false};

	reservations_place(rig.reservations, "v", "a", &item, RESERVATION_FOR_EVER);
	reservations_place(rig.reservations, "w", "a", &item, 9);
	reservations_end_at(rig.reservations, "v", 5);
	reservations_end_at(rig.reservations, "v", 7);
	reservations_end_at(rig.reservations, "w", 7);
	reservations_end_at(rig.reservations, "unknown", 7);
	reservations_expire(rig.reservations, 7, keep_v, &rig);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_expire(rig.reservations, 6 + RESERVATION_NS, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 1);
	reservations_expire(rig.reservations, 7 + RESERVATION_NS, NULL, NULL);
	ck_assert_uint_eq(load("a", false), 0);
}
END_TEST

/* The provisioner has not written the PersistentVolume yet, and the claim's selected node is the only one. */
START_TEST(a_volume_that_the_only_node_has_is_not_reserved_there)
{
	const struct sched_node *a = cluster_rig_get(&rig, "a");
	struct pod_needs needs = rig_needs("v", 2, (uint64_t[]){1, 2});

	strv_add(&needs.v[0].nodes, "a");
	reservations_add_pod(rig.reservations, "pod", &needs, &a, 1, 0);
	ck_assert_uint_eq(load("a", false), 2);
	pod_needs_done(&needs);
}
END_TEST

START_TEST(sizes_that_no_volume_has_do_not_overflow)
{
	const struct sched_item item = {UINT64_MAX, false, false};

	for (unsigned i = 0; i < 1000; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("v%u", i);

		reservations_place(rig.reservations, name, "a", &item, RESERVATION_FOR_EVER);
	}
	ck_assert_uint_eq(load("a", false), 1000 * (SCHED_SIZE_MAX / RIG_GIB));
}
END_TEST

START_TEST(a_claim_that_pods_share_counts_once_when_it_is_placed)
{
	pass("pod-1", "v", 1, true);
	pass("pod-2", "v", 1, true);
	ck_assert_uint_eq(load("a", true), 4);
	reservations_drop_pod(rig.reservations, "pod-1");
	ck_assert_uint_eq(load("a", true), 2);
	pass("pod-1", "v", 1, true);
	cluster_rig_place(&rig, "v", "a", 1);
	ck_assert_uint_eq(load("a", true), 3);
	ck_assert_uint_eq(load("b", true), 0);
}
END_TEST

START_TEST(node_that_is_forgotten_takes_its_volumes_along_until_it_is_back)
{
	cluster_rig_place(&rig, "w", "a", 1);
	pass("pod", "v", 1, true);
	sched_nodes_remove(rig.nodes, "a");
	cluster_rig_node(&rig, "c", 8, 8, 1);
	ck_assert_uint_eq(load("c", true), 0);
	cluster_rig_node(&rig, "a", 8, 8, 1);
	ck_assert_uint_eq(load("a", true), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reservations");
	TCase *tcase = tcase_create("reservations");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, pod_counts_on_each_node_until_it_is_decided);
	tcase_add_test(tcase, one_node_is_a_decision);
	tcase_add_test(tcase, same_decision_again_is_no_news);
	tcase_add_test(tcase, volume_counts_until_its_node_shows_the_report_that_has_it);
	tcase_add_test(tcase, what_was_made_elsewhere_counts_where_it_is_placed_next);
	tcase_add_test(tcase, the_volume_of_a_pod_ends_when_it_is_shown_and_the_others_stay);
	tcase_add_test(tcase, what_an_object_says_ends_at_its_time);
	tcase_add_test(tcase, what_is_kept_goes_on);
	tcase_add_test(tcase, a_volume_that_the_only_node_has_is_not_reserved_there);
	tcase_add_test(tcase, sizes_that_no_volume_has_do_not_overflow);
	tcase_add_test(tcase, decision_waits_for_a_node_that_is_not_known_yet);
	tcase_add_test(tcase, what_a_claim_says_outlives_its_pod);
	tcase_add_test(tcase, claim_without_a_node_does_not_speak_for_its_pod);
	tcase_add_test(tcase, pod_that_may_go_elsewhere_has_no_selected_node_any_more);
	tcase_add_test(tcase, pod_that_passes_again_counts_once);
	tcase_add_test(tcase, reservations_of_pods_expire);
	tcase_add_test(tcase, decided_pods_count_as_long_as_they_are_seen);
	tcase_add_test(tcase, failures_of_earlier_attempts_come_late);
	tcase_add_test(tcase, a_pod_that_says_again_that_it_found_no_node_counts_a_minute_at_most);
	tcase_add_test(tcase, a_claim_that_pods_share_counts_once_when_it_is_placed);
	tcase_add_test(tcase, node_that_is_forgotten_takes_its_volumes_along_until_it_is_back);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

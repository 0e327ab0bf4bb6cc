/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/node_choice.h"
#include "unit/scheduler/cluster_rig.h"
#include "unit/scheduler/pmem_nodes.h"
#include "unit/unit.h"

#define MAX_NODES 8

static struct cluster_rig rig;
static struct pod_needs needs;
static struct node_candidate candidates[MAX_NODES];
static struct node_choice q;
static enum sched_fit fits[MAX_NODES];

static void set_up(void)
{
	cluster_rig_open(&rig);
	q = (struct node_choice){.reservations = rig.reservations, .needs = &needs, .candidates = candidates};
}

static void tear_down(void)
{
	pod_needs_done(&needs);
	cluster_rig_close(&rig);
}

static enum sched_outcome decide(size_t n, const char *const *names)
{
	q.n = n;
	for (size_t i = 0; i < n; i++)
		candidates[i] = (struct node_candidate){span_of(names[i]), cluster_rig_get(&rig, names[i])};
	return node_choice_filter(&q, fits);
}

#define DECIDE(...)                                                                                          \
	decide(ARRAY_SIZE(((const char *const[]){__VA_ARGS__})), (const char *const[]){__VA_ARGS__})

static void need(size_t n, const uint64_t *gib)
{
	pod_needs_done(&needs);
	needs = rig_needs("v", n, gib);
}

#define NEED(...) need(ARRAY_SIZE(((uint64_t[]){__VA_ARGS__})), (const uint64_t[]){__VA_ARGS__})

static void assert_reason(size_t i, const char *text)
{
	struct buf out = BUF_INIT(1024);

	node_choice_explain(&q, i, fits[i], &out);
	ck_assert_msg(strstr(buf_str(&out), text), "\"%s\" lacks \"%s\"", buf_str(&out), text);
	buf_done(&out);
}

START_TEST(volumes_are_packed_together_not_summed_against_the_largest)
{
	cluster_rig_node(&rig, "a", 4, 4, 1);
	cluster_rig_node(&rig, "b", 8, 0, 1);
	NEED(3, 3, 1);
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
	NEED(3, 3, 2);
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_NEVER);
	ck_assert_int_eq(fits[1], SCHED_FITS);
	assert_reason(0, "do not fit together: 8Gi needed, 8Gi free in 2 pieces");
}
END_TEST

/* If the volume of 4 is made first, it takes the region of 5, and one of the others finds no place. */
START_TEST(volumes_must_fit_in_whatever_order_they_are_made)
{
	cluster_rig_node(&rig, "a", 10, 5, 1);
	cluster_rig_node(&rig, "b", 11, 4, 1);
	cluster_rig_node(&rig, "c", 11, 4, 1);
	NEED(4, 5, 6);
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_NEVER);
	ck_assert_int_eq(fits[1], SCHED_FITS);
	assert_reason(0, "do not fit together");
	/* more are tried the smallest and the largest first */
	NEED(1, 3, 3, 3, 5);
	ck_assert_int_eq(DECIDE("a"), SCHED_REFUSE);
	/* reserved ones are there before: one of 2 in 4 */
	cluster_rig_place(&rig, "x", "c", 2);
	NEED(2, 9);
	ck_assert_int_eq(DECIDE("c"), SCHED_PASS);
	NEED(3, 9);
	ck_assert_int_eq(DECIDE("c"), SCHED_REFUSE);
}
END_TEST

START_TEST(search_finds_what_best_fit_does_not)
{
	cluster_rig_node(&rig, "a", 6, 7, 1);
	NEED(4, 3, 2, 2, 2);
	ck_assert_int_eq(DECIDE("a"), SCHED_PASS);
}
END_TEST

static void silence(const char *name)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new(name);

	pmem_node_set_ready(n, "Unknown");
	sched_nodes_put(rig.nodes, n);
}

START_TEST(reasons_name_sizes_and_regions)
{
	cluster_rig_node(&rig, "a", 2, 3, 1);
	NEED(4);
	ck_assert_int_eq(DECIDE("a", "unknown"), SCHED_REFUSE);
	ck_assert_int_eq(fits[0], SCHED_NEVER);
	assert_reason(0, "largest creatable volume 3Gi in region1, 4Gi needed for claim default/v");
	ck_assert_int_eq(fits[1], SCHED_UNKNOWN_NODE);
	assert_reason(1, "has not registered");
	silence("a");
	ck_assert_int_eq(DECIDE("a"), SCHED_REFUSE);
	ck_assert_int_eq(fits[0], SCHED_STALE);
}
END_TEST

#define N_POOLS 192

/* A piece of 8 GiB and thousands of 1 GiB: to look for a place in each order would take too long. */
START_TEST(node_that_is_too_long_to_look_at_is_not_full_for_good)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new("a");

	for (size_t i = 0; i < N_POOLS; i++) {
		struct pmem_region *r = pmem_node_set_region(n, i, 8);

		r->unit_bytes = 1 << 20;
		for (size_t k = 0; k < LAYOUT_EXTENTS_MAX; k++)
			strv_add(&r->free_extents, i == 0 && k == 0 ? "8589934592" : "1073741824");
	}
	sched_nodes_put(rig.nodes, n);
	NEED(7, 7, 1, 1, 1);
	ck_assert_int_eq(DECIDE("a"), SCHED_REFUSE);
	ck_assert_int_eq(fits[0], SCHED_FITS_WITHOUT_RESERVATIONS);
	NEED(9);
	ck_assert_int_eq(DECIDE("a"), SCHED_REFUSE);
	ck_assert_int_eq(fits[0], SCHED_NEVER);
}
END_TEST

START_TEST(volume_that_exists_costs_nothing_there)
{
	cluster_rig_node(&rig, "a", 1, 0, 1);
	cluster_rig_node(&rig, "b", 1, 0, 1);
	NEED(4);
	strv_add(&needs.v[0].nodes, "a");
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
	ck_assert_int_eq(fits[1], SCHED_NEVER);
}
END_TEST

static void add_home(const char *node, const char *why)
{
	struct pod_home home = {.why = x_strdup(why)};

	strv_add(&home.nodes, node);
	pod_needs_add_home(&needs, &home);
}

START_TEST(bound_volume_keeps_the_pod_to_its_nodes)
{
	cluster_rig_node(&rig, "a", 8, 0, 1);
	cluster_rig_node(&rig, "b", 8, 0, 1);
	NEED(1);
	add_home("b", NULL);
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_ELSEWHERE);
	ck_assert_int_eq(fits[1], SCHED_FITS);
	assert_reason(0, "a volume of the pod exists on other nodes only");
	/* and then it can be nowhere */
	add_home("a", "the source of the clone is on node a");
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_REFUSE);
	assert_reason(0, "a volume of the pod exists on other nodes only");
	assert_reason(1, "the source of the clone is on node a");
}
END_TEST

START_TEST(pod_without_new_volumes_may_go_anywhere)
{
	ck_assert_int_eq(DECIDE("unknown"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
}
END_TEST

static void reserve(const char *pod, const char *volume, uint64_t gib, size_t n, const char *const *names)
{
	const struct sched_node *nodes[MAX_NODES];
	struct pod_needs reserved = rig_needs(volume, 1, &gib);

	for (size_t i = 0; i < n; i++)
		nodes[i] = cluster_rig_get(&rig, names[i]);
	reservations_add_pod(rig.reservations, pod, &reserved, nodes, n, 0);
	pod_needs_done(&reserved);
}

START_TEST(undecided_reservations_are_waited_for_and_decided_ones_are_not)
{
	cluster_rig_node(&rig, "a", 4, 0, 1);
	cluster_rig_node(&rig, "b", 4, 0, 1);
	reserve("other", "w", 3, 2, (const char *const[]){"a", "b"});
	NEED(2);
	ck_assert_int_eq(DECIDE("a"), SCHED_WAIT);
	ck_assert_int_eq(fits[0], SCHED_FITS_WITHOUT_UNDECIDED);
	cluster_rig_place(&rig, "w", "b", 3);
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
	ck_assert_int_eq(fits[1], SCHED_FITS_WITHOUT_RESERVATIONS);
	assert_reason(1, "volumes of other pods");
	ck_assert_int_eq(DECIDE("b"), SCHED_REFUSE);
}
END_TEST

START_TEST(own_decision_of_an_earlier_round_does_not_count_twice)
{
	cluster_rig_node(&rig, "a", 4, 0, 1);
	NEED(3);
	cluster_rig_place(&rig, "v", "a", 3);
	ck_assert_int_eq(DECIDE("a"), SCHED_PASS);
}
END_TEST

START_TEST(best_node_is_alone_where_no_second_such_pod_fits)
{
	cluster_rig_node(&rig, "a", 16, 0, 1);
	cluster_rig_node(&rig, "b", 3, 0, 1);
	cluster_rig_node(&rig, "c", 12, 0, 1);
	NEED(2);
	ck_assert_int_eq(DECIDE("a", "b", "c"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_HELD_BACK);
	ck_assert_int_eq(fits[1], SCHED_FITS);
	ck_assert_int_eq(fits[2], SCHED_HELD_BACK);
	assert_reason(0, "another node is a better fit");
	q.policy = SCHED_SPREAD;
	ck_assert_int_eq(DECIDE("a", "b", "c"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
	ck_assert_int_eq(fits[1], SCHED_HELD_BACK);
	ck_assert_int_eq(fits[2], SCHED_FITS);
}
END_TEST

static const char *const three[] = {"p", "q", "r"};

/* They may go to a and c. On b there is room for two pods, and for one more for each of two of the three. */
static void three_pods_pass(void)
{
	cluster_rig_node(&rig, "a", 16, 0, 1);
	cluster_rig_node(&rig, "b", 8, 0, 1);
	cluster_rig_node(&rig, "c", 16, 0, 1);
	NEED(2);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
		ck_assert_int_eq(fits[0], SCHED_FITS);
		ck_assert_int_eq(fits[1], SCHED_FITS);
		reserve(three[i], three[i], 1, 2, (const char *const[]){"a", "c"});
	}
}

START_TEST(best_node_is_alone_where_not_all_on_their_way_would_fit_once_more)
{
	three_pods_pass();
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_HELD_BACK);
	ck_assert_int_eq(fits[1], SCHED_FITS);
	q.all = true;
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
}
END_TEST

/* kube-scheduler has their decisions to record, too, before it comes to the next one. */
START_TEST(pods_that_got_one_node_are_on_their_way_until_an_object_places_them)
{
	three_pods_pass();
	for (size_t i = 0; i < 3; i++)
		reserve(three[i], three[i], 1, 1, (const char *const[]){"a"});
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_HELD_BACK);
	ck_assert_int_eq(fits[1], SCHED_FITS);
	cluster_rig_place(&rig, three[0], "a", 1);
	ck_assert_int_eq(DECIDE("a", "b"), SCHED_PASS);
	ck_assert_int_eq(fits[0], SCHED_FITS);
	ck_assert_int_eq(fits[1], SCHED_FITS);
}
END_TEST

#define FILL_NODES 5
#define FILL_EACH  8
#define FILL_PODS  ((size_t)FILL_NODES * FILL_EACH)
#define FILL_LAG   16

static const char *const fill_names[FILL_NODES] = {"a", "b", "c", "d", "e"};

/* Pods by node, as kube-scheduler has decided. */
struct filled {
	size_t node_of[FILL_PODS];
	size_t count[FILL_NODES];
};

/* Chooses the node with the fewest pods, as kube-scheduler spreads the pods of a ReplicaSet. */
static size_t least_filled(const struct filled *f)
{
	size_t at = FILL_NODES;

	for (size_t i = 0; i < FILL_NODES; i++) {
		if (fits[i] == SCHED_FITS && (at == FILL_NODES || f->count[i] < f->count[at]))
			at = i;
	}
	ck_assert_uint_lt(at, FILL_NODES);
	return at;
}

static void fill_with(struct filled *f, size_t pod)
{
	CLEANUP(free_charp) char *name = x_asprintf("p%zu", pod);
	const char *passing[FILL_NODES];
	size_t n = 0;

	ck_assert_int_eq(decide(FILL_NODES, fill_names), SCHED_PASS);
	for (size_t i = 0; i < FILL_NODES; i++) {
		if (fits[i] == SCHED_FITS)
			passing[n++] = fill_names[i];
	}
	f->node_of[pod] = least_filled(f);
	f->count[f->node_of[pod]]++;
	reserve(name, name, 1, n, passing);
}

/* kube-scheduler records its decisions in the order in which it made them, many pods later. */
START_TEST(nodes_fill_to_the_last_volume_without_waiting_for_decisions)
{
	struct filled f = {0};

	for (size_t i = 0; i < FILL_NODES; i++)
		cluster_rig_node(&rig, fill_names[i], FILL_EACH, 0, 1);
	NEED(1);
	for (size_t pod = 0; pod < FILL_PODS; pod++) {
		if (pod >= FILL_LAG) {
			CLEANUP(free_charp) char *decided = x_asprintf("p%zu", pod - FILL_LAG);

			cluster_rig_place(&rig, decided, fill_names[f.node_of[pod - FILL_LAG]], 1);
		}
		fill_with(&f, pod);
	}
	for (size_t i = 0; i < FILL_NODES; i++)
		ck_assert_uint_eq(f.count[i], FILL_EACH);
}
END_TEST

START_TEST(scores_follow_the_policy)
{
	int scores[5];

	cluster_rig_node(&rig, "large", 16, 0, 1);
	cluster_rig_node(&rig, "small", 4, 0, 1);
	cluster_rig_node(&rig, "has", 1, 0, 1);
	cluster_rig_node(&rig, "full", 1, 0, 1);
	cluster_rig_node(&rig, "stale", 16, 0, 1);
	silence("stale");
	NEED(3);
	strv_add(&needs.v[0].nodes, "has");
	DECIDE("large", "small", "has", "full", "stale");
	node_choice_score(&q, scores);
	ck_assert_int_lt(scores[0], scores[1]);
	ck_assert_int_eq(scores[2], SCHED_SCORE_MAX);
	ck_assert_int_eq(scores[3], 0);
	ck_assert_int_eq(scores[4], 0);
	q.policy = SCHED_SPREAD;
	node_choice_score(&q, scores);
	ck_assert_int_gt(scores[0], scores[1]);
	ck_assert_int_lt(scores[0], SCHED_SCORE_MAX);
	ck_assert_int_eq(scores[2], SCHED_SCORE_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("node_choice_filter");
	TCase *tcase = tcase_create("node_choice_filter");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, volumes_are_packed_together_not_summed_against_the_largest);
	tcase_add_test(tcase, volumes_must_fit_in_whatever_order_they_are_made);
	tcase_add_test(tcase, search_finds_what_best_fit_does_not);
	tcase_add_test(tcase, reasons_name_sizes_and_regions);
	tcase_add_test(tcase, node_that_is_too_long_to_look_at_is_not_full_for_good);
	tcase_add_test(tcase, volume_that_exists_costs_nothing_there);
	tcase_add_test(tcase, bound_volume_keeps_the_pod_to_its_nodes);
	tcase_add_test(tcase, pod_without_new_volumes_may_go_anywhere);
	tcase_add_test(tcase, undecided_reservations_are_waited_for_and_decided_ones_are_not);
	tcase_add_test(tcase, own_decision_of_an_earlier_round_does_not_count_twice);
	tcase_add_test(tcase, best_node_is_alone_where_no_second_such_pod_fits);
	tcase_add_test(tcase, best_node_is_alone_where_not_all_on_their_way_would_fit_once_more);
	tcase_add_test(tcase, pods_that_got_one_node_are_on_their_way_until_an_object_places_them);
	tcase_add_test(tcase, nodes_fill_to_the_last_volume_without_waiting_for_decisions);
	tcase_add_test(tcase, scores_follow_the_policy);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

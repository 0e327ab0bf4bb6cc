/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the reservations on nodes that result from sequences of events about objects of the cluster. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/cluster_view.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/scheduler/pmem_nodes.h"
#include "unit/unit.h"

#define DRIVER "pmem"
#define GIB    (1ULL << 30)
#define DAY_NS (86400 * NS_PER_S)

#define CLAIM  "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"a\"}}"
#define INLINE "{\"name\":\"i\",\"csi\":{\"driver\":\"" DRIVER "\",\"volumeAttributes\":{\"size\":\"1Gi\"}}}"

static struct loop *loop;
static struct kube_client *client;
static struct sched_nodes *nodes;
static struct reservations *reservations;
static struct cluster_view *cluster;
static struct error *err;

static struct informer *of(const char *what)
{
	return fake_kube_informer(client, what);
}

/* Takes @json. */
static void put(const char *what, char *json)
{
	fake_informer_put(of(what), json);
	free(json);
}

static void sync_all(void)
{
	static const char *const kinds[] = {"persistentvolumeclaims", "persistentvolumes", "storageclasses",
		"csidrivers", "pods", "pmemnodes", "pmemvolumes"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		fake_informer_sync(of(kinds[i]));
}

static void put_node(const char *name, uint64_t report)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new(name);

	pmem_node_set_region(n, 0, 16);
	n->report = report;
	put("pmemnodes", pmem_node_json(n));
}

/* Puts a claim of 4 GiB. */
static void put_claim(const char *node, const char *volume)
{
	put("persistentvolumeclaims", kube_json_claim("a", "late", node, volume));
}

static void put_record(const char *phase, uint64_t report)
{
	put("pmemvolumes", pmem_volume_json("pvc-uid-a", "n1", phase, report));
}

static void set_up(void)
{
	ASSERT_OK(loop_new(&loop, &err));
	client = fake_kube_new(loop);
	nodes = sched_nodes_new();
	reservations = reservations_new(nodes, NULL, NULL);
	cluster = cluster_view_new(client, DRIVER, nodes, reservations);
	put("storageclasses", kube_json_class("late", DRIVER, "{}"));
	put_node("n1", 10);
	put_node("n2", 10);
}

static void tear_down(void)
{
	cluster_view_free(cluster);
	reservations_free(reservations);
	sched_nodes_free(nodes);
	kube_client_free(client);
	loop_free(loop);
}

static void reserved_is(uint64_t gib)
{
	const struct sched_node *n1 = sched_nodes_get(nodes, span_of("n1"));

	ck_assert_uint_eq(reservations_load(reservations, n1, true).size_bytes / GIB, gib);
}

static void let_pass(uint64_t ns)
{
	cluster_view_tick(cluster, clock_ns() + ns);
}

static char *pod(const char *phase, const char *node, const char *volumes)
{
	return x_asprintf(
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"pod-uid\"},\"spec\":{%s%s%s"
		"\"volumes\":[%s]},\"status\":{\"phase\":\"%s\"}}",
		node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"," : "", volumes, phase);
}

/* The pod may go to the @n first nodes. */
static void pass(const char *volumes, size_t n)
{
	CLEANUP(free_charp) char *json = pod("Pending", NULL, volumes);
	CLEANUP(pod_needs_done) struct pod_needs needs = {0};
	CLEANUP(free_charp) char *uid = NULL;
	const struct sched_node *both[] = {
		sched_nodes_get(nodes, span_of("n1")), sched_nodes_get(nodes, span_of("n2"))};

	ASSERT_OK(cluster_view_pod_needs(cluster, span_of(json), &needs, &uid, &err));
	reservations_add_pod(reservations, uid, &needs, both, n, clock_ns());
}

START_TEST(a_volume_is_reserved_until_its_node_shows_it)
{
	sync_all();
	put_claim("n1", NULL);
	put_record("Ready", 0);
	reserved_is(4);
	put_claim("n1", "pvc-uid-a");
	put_record("Ready", 11);
	reserved_is(4);
	put_node("n1", 10);
	reserved_is(4);
	put_node("n1", 12);
	reserved_is(0);
}
END_TEST

static void put_node_with(const char *volume)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new("n1");

	pmem_node_set_region(n, 0, 12);
	n->report = 11;
	strv_add(&n->new_volumes, volume);
	put("pmemnodes", pmem_node_json(n));
}

/* Free space and names come with one event, whatever the record says yet. */
START_TEST(a_volume_that_its_node_names_as_new_is_not_reserved)
{
	sync_all();
	put_claim("n1", NULL);
	put_record("Ready", 0);
	put_node_with("pvc-other");
	reserved_is(4);
	put_node_with("pvc-uid-a");
	reserved_is(0);
	put_claim("n1", "pvc-uid-a");
	reserved_is(0);
}
END_TEST

START_TEST(what_is_not_shown_outlasts_the_time_of_a_bound_claim)
{
	sync_all();
	put_claim("n1", NULL);
	put_record("Ready", 11);
	put_claim("n1", "pvc-uid-a");
	let_pass(2 * RESERVATION_NS);
	reserved_is(4);
	put_record("Ready", 0);
	let_pass(4 * RESERVATION_NS);
	reserved_is(0);
}
END_TEST

START_TEST(the_claim_may_be_deleted_before_its_node_shows_the_volume)
{
	sync_all();
	put_claim("n1", NULL);
	put_record("Ready", 11);
	put_claim("n1", "pvc-uid-a");
	fake_informer_remove(of("persistentvolumeclaims"), "ns/a");
	reserved_is(4);
	put_record("Erasing", 11);
	let_pass(2 * RESERVATION_NS);
	reserved_is(0);
}
END_TEST

START_TEST(what_was_bound_before_the_beginning_and_is_not_shown_is_reserved)
{
	put_claim("n1", "pvc-uid-a");
	put_record("Ready", 11);
	sync_all();
	reserved_is(4);
	put_node("n1", 11);
	reserved_is(0);
}
END_TEST

START_TEST(a_claim_that_binds_to_another_volume_needs_none)
{
	sync_all();
	put_claim("n1", NULL);
	reserved_is(4);
	put_claim(NULL, "static");
	reserved_is(0);
}
END_TEST

START_TEST(a_claim_whose_class_has_gone_is_not_waited_for)
{
	sync_all();
	put_claim("n1", NULL);
	fake_informer_remove(of("storageclasses"), "late");
	put_claim("n1", "pvc-uid-a");
	reserved_is(4);
	let_pass(2 * RESERVATION_NS);
	reserved_is(0);
}
END_TEST

START_TEST(a_pod_that_has_a_node_is_not_waited_for)
{
	put_claim(NULL, NULL);
	sync_all();
	put("pods", pod("Pending", NULL, CLAIM "," INLINE));
	pass(CLAIM "," INLINE, 2);
	put_claim(NULL, "static");
	put("pods", pod("Running", "n1", CLAIM "," INLINE));
	for (unsigned i = 1; i < 6; i++)
		let_pass(i * RESERVATION_NS);
	reserved_is(0);
	ck_assert_uint_eq(reservations_count(reservations).pods, 0);
}
END_TEST

START_TEST(a_volume_that_is_shown_is_not_reserved_for_the_next_attempt)
{
	sync_all();
	put_claim("n1", NULL);
	put_record("Ready", 10);
	reserved_is(0);
	put("pods", pod("Pending", NULL, CLAIM));
	pass(CLAIM, 1);
	reserved_is(0);
}
END_TEST

START_TEST(an_inline_volume_outlasts_a_change_of_leader)
{
	sync_all();
	put("pods", pod("Pending", NULL, INLINE));
	put("pods", pod("Pending", "n1", INLINE));
	put("pods", pod("Running", "n1", INLINE));
	let_pass(20 * NS_PER_S);
	reserved_is(1);
	let_pass(RESERVATION_NS);
	reserved_is(0);
}
END_TEST

START_TEST(an_inline_pod_that_runs_late_reserves_nothing_again)
{
	sync_all();
	put("pods", pod("Pending", NULL, INLINE));
	put("pods", pod("Pending", "n1", INLINE));
	reserved_is(1);
	let_pass(RESERVATION_NS + NS_PER_S);
	reserved_is(0);
	put("pods", pod("Running", "n1", INLINE));
	reserved_is(0);
}
END_TEST

START_TEST(an_object_of_another_name_says_nothing_of_a_node)
{
	sync_all();
	put("pmemnodes", x_strdup("{\"metadata\":{\"name\":\"other.pmem\"},\"spec\":{\"node\":\"n1\","
				  "\"driver\":\"pmem\"}}"));
	ck_assert_uint_eq(sched_nodes_get(nodes, span_of("n1"))->n_pools, 1);
	fake_informer_remove(of("pmemnodes"), "other.pmem");
	ck_assert_ptr_nonnull(sched_nodes_get(nodes, span_of("n1")));
}
END_TEST

/* It was asked to make the volume and is silent since. */
START_TEST(a_node_that_may_have_nothing_needs_room)
{
	CLEANUP(free_charp) char *json = pod("Pending", NULL, CLAIM);
	CLEANUP(pod_needs_done) struct pod_needs needs = {0};
	CLEANUP(free_charp) char *uid = NULL;
	CLEANUP(free_charp) char *object = pmem_volume_object_name_for("pvc-uid-a", DRIVER);

	put_claim(NULL, NULL);
	put("pmemvolumes",
		x_asprintf(
			"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"volumeName\":\"pvc-uid-a\"},"
			"\"status\":{\"nodes\":[{\"node\":\"n1\",\"phase\":\"Unreachable\",\"size\":\"0\"}]}}",
			object));
	sync_all();
	ASSERT_OK(cluster_view_pod_needs(cluster, span_of(json), &needs, &uid, &err));
	ck_assert_uint_eq(strv_len(needs.v[0].nodes), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_volume_is_reserved_until_its_node_shows_it,
		a_volume_that_its_node_names_as_new_is_not_reserved,
		what_is_not_shown_outlasts_the_time_of_a_bound_claim,
		the_claim_may_be_deleted_before_its_node_shows_the_volume,
		what_was_bound_before_the_beginning_and_is_not_shown_is_reserved,
		a_claim_that_binds_to_another_volume_needs_none,
		a_claim_whose_class_has_gone_is_not_waited_for, a_pod_that_has_a_node_is_not_waited_for,
		a_volume_that_is_shown_is_not_reserved_for_the_next_attempt,
		an_inline_volume_outlasts_a_change_of_leader,
		an_inline_pod_that_runs_late_reserves_nothing_again,
		an_object_of_another_name_says_nothing_of_a_node, a_node_that_may_have_nothing_needs_room};
	Suite *suite = suite_create("scheduler reservation_events");
	TCase *tcase = tcase_create("scheduler reservation_events");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

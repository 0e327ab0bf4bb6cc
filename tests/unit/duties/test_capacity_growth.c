/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity objects grow up to what others know of the node. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/capacity_objects.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define GIB (1ULL << 30)
/* The name of the object of class fast on node n1. */
#define OBJECT "csisc-20b52678ab94d95aa6fe5bee079fe78f"

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *classes;
static struct informer *objects;
static struct capacity_objects *capacity;
static uint64_t now;
static struct capacity known; /* to others */
static bool is_limited;

static uint64_t get_now(void *user)
{
	(void)user;
	return now;
}

static bool shown(void *user, const char *node_id, bool sync, struct capacity *ret)
{
	ck_assert(sync);
	ck_assert_ptr_eq(user, &known);
	ck_assert_str_eq(node_id, "n1");
	*ret = known;
	return is_limited;
}

static struct cluster_nodes cluster;

static void put_node(uint64_t available_gib, uint64_t maximum_gib)
{
	struct node_report *r = report_new("n1");

	r->pools[0].capacity.available_bytes = available_gib * GIB;
	r->pools[0].capacity.max_volume_bytes = maximum_gib * GIB;
	node_table_put(nodes, r, now);
}

static void set_up(void)
{
	static const struct informer_events none;

	now = 1000 * NS_PER_S;
	known = (struct capacity){0};
	is_limited = true;
	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	classes = informer_new(client, &kube_kind_classes, &none, NULL);
	fake_informer_put(classes,
		"{\"metadata\":{\"name\":\"fast\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
		"\"provisioner\":\"pmem\",\"volumeBindingMode\":\"WaitForFirstConsumer\"}");
	capacity = capacity_objects_new(&(struct capacity_objects_config){.client = client,
		.namespace = "ns",
		.driver_name = "pmem",
		.nodes = nodes,
		.classes = classes,
		.cluster = &cluster,
		.shown = shown,
		.shown_user = &known,
		.now_ns = get_now});
	objects = fake_kube_informer(client, "csistoragecapacities");
	put_node(8, 5);
	fake_informer_sync(classes);
	fake_informer_sync(objects);
	capacity_objects_tick(capacity);
}

static void tear_down(void)
{
	capacity_objects_free(capacity);
	informer_free(classes);
	node_table_free(nodes);
	kube_client_free(client);
}

static void nothing_is_written(void)
{
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 0);
}

/* The API server does what is asked, and the watch shows it. */
static void is_written(uint64_t available_gib, uint64_t maximum_gib)
{
	CLEANUP(free_charp)
	char *amounts = x_asprintf("\"capacity\":\"%llu\",\"maximumVolumeSize\":\"%llu\"",
		(unsigned long long)(available_gib * GIB), (unsigned long long)(maximum_gib * GIB));
	CLEANUP(free_charp)
	char *json = x_asprintf(
		"{\"metadata\":{\"name\":\"" OBJECT
		"\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"7\","
		"\"labels\":{\"csi.storage.k8s.io/drivername\":\"pmem\","
		"\"csi.storage.k8s.io/managed-by\":\"pmem-controller\"}},\"nodeTopology\":{\"matchLabels\":"
		"{\"pmem/node\":\"n1\"}},\"storageClassName\":\"fast\",%s}",
		amounts);

	ck_assert_uint_eq(fake_kube_count(client), 1);
	ck_assert_ptr_nonnull(strstr(fake_kube_next(client)->body, amounts));
	fake_kube_answer(client, 200, "{}");
	fake_informer_put(objects, json);
}

static void know(uint64_t available_gib, uint64_t maximum_gib)
{
	known = (struct capacity){16 * GIB, available_gib * GIB, maximum_gib * GIB, maximum_gib * GIB};
	capacity_objects_node_changed(capacity, "n1");
}

START_TEST(the_first_object_waits_until_others_know_of_the_node)
{
	nothing_is_written();
	know(8, 5);
	is_written(8, 5);
	nothing_is_written();
}
END_TEST

START_TEST(a_node_without_room_is_shown_at_once)
{
	put_node(0, 0);
	is_written(0, 0);
	nothing_is_written();
}
END_TEST

START_TEST(more_waits_and_less_does_not)
{
	know(8, 5);
	is_written(8, 5);
	put_node(8, 6);
	nothing_is_written();
	put_node(7, 6);
	is_written(7, 5);
	put_node(9, 4);
	is_written(8, 4);
	know(9, 4);
	is_written(9, 4);
	/* what others still offer is no reason to show more than there is */
	put_node(6, 3);
	is_written(6, 3);
	nothing_is_written();
}
END_TEST

START_TEST(without_a_limit_nothing_waits)
{
	is_limited = false;
	now += 60 * NS_PER_S;
	capacity_objects_tick(capacity);
	is_written(8, 5);
	put_node(9, 6);
	is_written(9, 6);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties capacity_growth");
	TCase *tcase = tcase_create("duties capacity_growth");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, the_first_object_waits_until_others_know_of_the_node);
	tcase_add_test(tcase, a_node_without_room_is_shown_at_once);
	tcase_add_test(tcase, more_waits_and_less_does_not);
	tcase_add_test(tcase, without_a_limit_nothing_waits);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

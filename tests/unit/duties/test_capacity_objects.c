/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/capacity_objects.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define GIB    (1ULL << 30)
#define MINUTE (60 * NS_PER_S)
#define PATH   "/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities/"
#define APPLY  "?force=true&fieldManager=pmem-controller"

/* The first 32 digits of sha224("class/node"): what other releases have to find. */
#define FAST_N1 "csisc-20b52678ab94d95aa6fe5bee079fe78f"
#define FAST_N2 "csisc-3756910ce7b30c98aa461673f30e7ad6"
#define SLOW_N1 "csisc-8cee8793e348ac333db209cfda994294"

#define MAX_RUNNING 16 /* as capacity_objects.c has it */

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *classes;
static struct informer *objects;
static struct capacity_objects *capacity;
static uint64_t now;
static const char *out_of_service;
static bool node_exists;
static bool nodes_are_known;

static uint64_t get_now(void *user)
{
	(void)user;
	return now;
}

static bool cluster_ready(void *self)
{
	(void)self;
	return nodes_are_known;
}

static bool cluster_has(void *self, const char *node_id)
{
	(void)self;
	(void)node_id;
	return node_exists;
}

static bool is_out_of_service(void *self, const char *node_id)
{
	(void)self;
	return str_eq(out_of_service, node_id);
}

static struct cluster_nodes cluster = {
	.ready = cluster_ready, .has = cluster_has, .out_of_service = is_out_of_service};

static void class_changed(void *user, const char *key, const void *old, const void *new)
{
	(void)user;
	(void)key;
	(void)old;
	(void)new;
	if (capacity)
		capacity_objects_class_changed(capacity);
}

/* The controller leads. */
static void begin_duty(bool remove_foreign)
{
	const struct capacity_objects_config config = {.client = client,
		.namespace = "ns",
		.driver_name = "pmem",
		.nodes = nodes,
		.classes = classes,
		.cluster = &cluster,
		.remove_foreign = remove_foreign,
		.now_ns = get_now};

	capacity = capacity_objects_new(&config);
	objects = fake_kube_informer(client, "csistoragecapacities");
	ck_assert_ptr_nonnull(objects);
}

static void end_duty(void)
{
	capacity_objects_free(TAKE_PTR(capacity));
}

static void set_up(void)
{
	static const struct informer_events events = {.changed = class_changed};

	now = 1000 * MINUTE;
	node_exists = true;
	nodes_are_known = true;
	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	classes = informer_new(client, &kube_kind_classes, &events, NULL);
	begin_duty(/* remove_foreign= */ false);
}

static void tear_down(void)
{
	end_duty();
	informer_free(classes);
	node_table_free(nodes);
	kube_client_free(client);
}

static void put_class_binding(const char *name, const char *provisioner, const char *mode)
{
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
				"\"provisioner\":\"%s\",\"volumeBindingMode\":\"%s\"}",
		name, provisioner, mode);

	fake_informer_put(classes, json);
}

static void put_class(const char *name)
{
	put_class_binding(name, "pmem", "WaitForFirstConsumer");
}

/* @meta, @spec: further members, each after a comma */
static void put_odd(const char *name, const char *manager, const char *meta, const char *spec)
{
	CLEANUP(free_charp)
	char *json =
		x_asprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
			   "\"resourceVersion\":\"7\",\"labels\":{\"csi.storage.k8s.io/drivername\":\"pmem\","
			   "\"csi.storage.k8s.io/managed-by\":\"%s\"}%s}%s}",
			name, name, manager, meta, spec);

	fake_informer_put(objects, json);
}

static void put_managed(
	const char *name, const char *manager, const char *node, uint64_t available, uint64_t maximum)
{
	CLEANUP(free_charp)
	char *spec =
		x_asprintf(",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"%s\"}},"
			   "\"storageClassName\":\"fast\",\"capacity\":\"%ju\",\"maximumVolumeSize\":\"%ju\"",
			node, (uintmax_t)available, (uintmax_t)maximum);

	put_odd(name, manager, /* meta= */ "", spec);
}

/* Adds an object for the storage class fast on node n1. */
static void put_object(const char *name, uint64_t available, uint64_t maximum)
{
	put_managed(name, "pmem-controller", "n1", available, maximum);
}

static void remove_object(const char *name)
{
	CLEANUP(free_charp) char *key = x_asprintf("ns/%s", name);

	fake_informer_remove(objects, key);
}

static void put_node(const char *id, uint64_t available, uint64_t maximum)
{
	struct node_report *r = report_new(id);

	r->pools[0].capacity.available_bytes = available;
	r->pools[0].capacity.max_volume_bytes = maximum;
	node_table_put(nodes, r, now);
}

static void sync_all(void)
{
	fake_informer_sync(classes);
	fake_informer_sync(objects);
}

static void wait_for(uint64_t ns)
{
	now += ns;
	capacity_objects_tick(capacity);
}

static void assert_idle(void)
{
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 0);
}

static void assert_next(const char *method, const char *name)
{
	CLEANUP(free_charp)
	char *path = x_asprintf(PATH "%s%s", name, str_eq(method, "PATCH") ? APPLY : "");
	const struct fake_request *r = fake_kube_next(client);

	ck_assert_ptr_nonnull(r);
	ck_assert_str_eq(r->method, method);
	ck_assert_str_eq(r->path, path);
}

static void assert_body_has(const char *text)
{
	ck_assert_msg(strstr(fake_kube_next(client)->body, text), "%s is not in %s", text,
		fake_kube_next(client)->body);
}

static void assert_applies(const char *name, uint64_t available, uint64_t maximum)
{
	CLEANUP(free_charp)
	char *amounts = x_asprintf("\"capacity\":\"%ju\",\"maximumVolumeSize\":\"%ju\"", (uintmax_t)available,
		(uintmax_t)maximum);

	assert_next("PATCH", name);
	assert_body_has(amounts);
}

/* The server does what was asked; the watch does not say so yet. */
static void answer_ok(void)
{
	fake_kube_answer(client, 200, "{}");
}

static void answer_deleted(const char *name)
{
	assert_next("DELETE", name);
	answer_ok();
	remove_object(name);
}

/* One class and one live node with 8 GiB, of which 5 GiB in one piece. */
static void have_slot(void)
{
	put_class("fast");
	put_node("n1", 8 * GIB, 5 * GIB);
}

/* The same, and its object. */
static void publish(void)
{
	have_slot();
	sync_all();
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	assert_idle();
}

START_TEST(a_class_that_binds_at_once_gets_no_objects)
{
	put_class_binding("now", "pmem", "Immediate");
	put_node("n1", 8 * GIB, 5 * GIB);
	sync_all();
	capacity_objects_class_changed(capacity);
	put_node("n1", 7 * GIB, 5 * GIB);
	assert_idle();
}
END_TEST

START_TEST(each_node_and_class_of_ours_gets_an_object)
{
	have_slot();
	put_class_binding("other", "another.example", "WaitForFirstConsumer");
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_next("PATCH", FAST_N1);
	ck_assert_str_eq(fake_kube_next(client)->content_type, "application/apply-patch+yaml");
	assert_body_has("\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSIStorageCapacity\"");
	assert_body_has("\"name\":\"" FAST_N1 "\",\"namespace\":\"ns\"");
	assert_body_has("\"csi.storage.k8s.io/drivername\":\"pmem\"");
	assert_body_has("\"csi.storage.k8s.io/managed-by\":\"pmem-controller\"");
	assert_body_has("\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}}");
	assert_body_has("\"storageClassName\":\"fast\"");
	assert_body_has("\"capacity\":\"8589934592\"");
	assert_body_has("\"maximumVolumeSize\":\"5368709120\"");
	answer_ok();
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	put_class("slow");
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_next("PATCH", SLOW_N1);
	assert_body_has("\"storageClassName\":\"slow\"");
	put_node("n2", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 3);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 3);
	answer_ok();
	assert_next("PATCH", FAST_N2);
	assert_body_has("\"pmem/node\":\"n2\"");
}
END_TEST

START_TEST(nothing_is_written_before_all_is_known)
{
	have_slot();
	fake_informer_sync(objects);
	put_object("csisc-x", 1, 1);
	put_node("n1", 7 * GIB, 5 * GIB);
	wait_for(MINUTE);
	assert_idle();
	fake_informer_sync(classes);
	wait_for(NS_PER_S);
	assert_applies(FAST_N1, 7 * GIB, 5 * GIB);
}
END_TEST

START_TEST(what_is_published_already_is_not_written_again)
{
	have_slot();
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	sync_all();
	assert_idle();
	wait_for(MINUTE);
	assert_idle();
}
END_TEST

START_TEST(what_was_left_out_of_date_is_written_at_the_beginning)
{
	have_slot();
	put_object(FAST_N1, 7 * GIB, 5 * GIB);
	sync_all();
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
}
END_TEST

START_TEST(changes_are_written_at_once_and_only_the_latest_one_waits)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	assert_applies(FAST_N1, 7 * GIB, 5 * GIB);
	put_node("n1", 6 * GIB, 5 * GIB);
	put_node("n1", 5 * GIB, 4 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_ok();
	put_object(FAST_N1, 7 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_applies(FAST_N1, 5 * GIB, 4 * GIB);
	put_object(FAST_N1, 5 * GIB, 4 * GIB);
	answer_ok();
	assert_idle();
	put_node("n1", 5 * GIB, 3 * GIB);
	assert_applies(FAST_N1, 5 * GIB, 3 * GIB);
}
END_TEST

START_TEST(a_watch_that_lags_behind_ends_in_the_right_state)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	answer_ok();
	put_node("n1", 6 * GIB, 5 * GIB);
	assert_applies(FAST_N1, 6 * GIB, 5 * GIB);
	answer_ok();
	/* what the watch still shows is what is wanted again */
	put_node("n1", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_object(FAST_N1, 7 * GIB, 5 * GIB);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	put_object(FAST_N1, 6 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_ok();
	/* sent once more, since the watch shows the older state */
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	assert_idle();
	wait_for(MINUTE);
	assert_idle();
}
END_TEST

START_TEST(an_object_that_appears_after_its_node_has_ended_gets_0)
{
	have_slot();
	sync_all();
	answer_ok();
	node_table_end(nodes, "n1");
	assert_idle();
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	assert_applies(FAST_N1, 0, 0);
}
END_TEST

START_TEST(what_others_change_is_set_back)
{
	publish();
	put_object(FAST_N1, 1, 5 * GIB);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	put_object(FAST_N1, 8 * GIB, 1);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	put_odd(FAST_N1, "pmem-controller", /* meta= */ "",
		",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}},\"storageClassName\":\"fast\"");
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	put_managed(FAST_N1, "another", "n1", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	wait_for(MINUTE);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
}
END_TEST

START_TEST(an_object_without_amounts_gets_them)
{
	publish();
	put_node("n1", 0, 0);
	answer_ok();
	put_odd(FAST_N1, "pmem-controller", /* meta= */ "",
		",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}},\"storageClassName\":\"fast\","
		"\"maximumVolumeSize\":\"0\"");
	assert_applies(FAST_N1, 0, 0);
	answer_ok();
	put_odd(FAST_N1, "pmem-controller", /* meta= */ "",
		",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}},\"storageClassName\":\"fast\","
		"\"capacity\":\"0\"");
	assert_applies(FAST_N1, 0, 0);
}
END_TEST

static const unsigned failures[] = {0, 404, 409, 422, 500};

START_TEST(a_failure_is_tried_again_after_a_while)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	fake_kube_answer(client, failures[_i], NULL);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 1);
	capacity_objects_tick(capacity);
	put_node("n1", 6 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_node("n2", 6 * GIB, 5 * GIB);
	assert_applies(FAST_N2, 6 * GIB, 5 * GIB);
	answer_ok();
	put_managed(FAST_N2, "pmem-controller", "n2", 6 * GIB, 5 * GIB);
	wait_for(2 * NS_PER_S);
	assert_applies(FAST_N1, 6 * GIB, 5 * GIB);
	fake_kube_answer(client, failures[_i], NULL);
	wait_for(NS_PER_S);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	wait_for(NS_PER_S);
	assert_applies(FAST_N1, 6 * GIB, 5 * GIB);
}
END_TEST

START_TEST(a_deletion_that_fails_is_tried_again)
{
	publish();
	fake_informer_remove(classes, "fast");
	assert_next("DELETE", FAST_N1);
	fake_kube_answer(client, 0, NULL);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	wait_for(2 * NS_PER_S);
	answer_deleted(FAST_N1);
	assert_idle();
}
END_TEST

START_TEST(an_object_whose_creation_was_not_answered_is_found)
{
	have_slot();
	sync_all();
	fake_kube_answer(client, 0, NULL);
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	wait_for(MINUTE);
	assert_idle();
}
END_TEST

START_TEST(an_object_that_was_deleted_by_hand_is_created_again)
{
	publish();
	remove_object(FAST_N1);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	assert_idle();
}
END_TEST

START_TEST(a_node_whose_lease_ended_has_nothing_and_its_object_goes_with_its_node)
{
	publish();
	node_table_end(nodes, "n1");
	assert_applies(FAST_N1, 0, 0);
	answer_ok();
	put_object(FAST_N1, 0, 0);
	wait_for(MINUTE);
	assert_idle();
	nodes_are_known = false;
	node_exists = false;
	wait_for(MINUTE);
	assert_idle();
	nodes_are_known = true;
	wait_for(MINUTE);
	answer_deleted(FAST_N1);
	assert_idle();
	wait_for(MINUTE);
	assert_idle();
	put_node("n1", 8 * GIB, 5 * GIB);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
}
END_TEST

START_TEST(a_node_out_of_service_has_nothing_while_it_reports)
{
	publish();
	out_of_service = "n1";
	capacity_objects_node_changed(capacity, "n1");
	assert_applies(FAST_N1, 0, 0);
	answer_ok();
}
END_TEST

START_TEST(the_object_of_a_node_that_stays_away_goes_after_ten_minutes)
{
	publish();
	node_table_end(nodes, "n1");
	answer_ok();
	put_object(FAST_N1, 0, 0);
	wait_for(9 * MINUTE);
	assert_idle();
	wait_for(MINUTE);
	assert_next("DELETE", FAST_N1);
}
END_TEST

START_TEST(a_node_that_comes_back_while_its_object_is_deleted_gets_it_back)
{
	publish();
	node_table_end(nodes, "n1");
	answer_ok();
	put_object(FAST_N1, 0, 0);
	wait_for(10 * MINUTE);
	assert_next("DELETE", FAST_N1);
	put_node("n1", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_ok();
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	remove_object(FAST_N1);
	answer_ok();
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	assert_idle();
}
END_TEST

START_TEST(an_object_that_is_being_deleted_is_not_deleted_again)
{
	publish();
	fake_informer_remove(classes, "fast");
	answer_ok();
	put_odd(FAST_N1, "pmem-controller", ",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"",
		",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}},\"storageClassName\":\"fast\"");
	put_odd("csisc-x", "pmem-controller", ",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"",
		/* spec= */ "");
	assert_idle();
	wait_for(MINUTE);
	assert_idle();
}
END_TEST

START_TEST(objects_of_nodes_that_have_not_registered_yet_are_left_alone)
{
	put_class("fast");
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	put_managed("csisc-x", "pmem-controller", "n2", 8 * GIB, 5 * GIB);
	sync_all();
	wait_for(9 * MINUTE);
	assert_idle();
	wait_for(MINUTE);
	ck_assert_uint_eq(fake_kube_count(client), 2);
	if (strstr(fake_kube_next(client)->path, "csisc-x")) {
		answer_deleted("csisc-x");
		answer_deleted(FAST_N1);
	} else {
		answer_deleted(FAST_N1);
		answer_deleted("csisc-x");
	}
	assert_idle();
}
END_TEST

START_TEST(objects_go_with_their_class)
{
	publish();
	fake_informer_remove(classes, "fast");
	assert_next("DELETE", FAST_N1);
	fake_kube_answer(client, 404, NULL);
	remove_object(FAST_N1);
	assert_idle();
}
END_TEST

START_TEST(objects_go_when_their_class_binds_at_once)
{
	publish();
	put_class_binding("fast", "pmem", "Immediate");
	answer_deleted(FAST_N1);
	assert_idle();
}
END_TEST

/* As earlier releases named them. */
START_TEST(an_object_of_another_name_goes_when_its_successor_exists)
{
	have_slot();
	put_object("csisc-x7k2p", 8 * GIB, 5 * GIB);
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	fake_kube_answer(client, 500, NULL);
	wait_for(MINUTE);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
	answer_ok();
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	wait_for(30 * NS_PER_S);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_deleted("csisc-x7k2p");
	assert_idle();
	wait_for(MINUTE);
	assert_idle();
}
END_TEST

START_TEST(an_object_of_another_name_goes_at_once_when_its_node_is_away)
{
	have_slot();
	put_object("csisc-x7k2p", 8 * GIB, 5 * GIB);
	node_table_end(nodes, "n1");
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_deleted("csisc-x7k2p");
	assert_idle();
}
END_TEST

START_TEST(an_object_of_another_name_goes_at_once_without_its_class)
{
	put_node("n1", 8 * GIB, 5 * GIB);
	put_object("csisc-x7k2p", 8 * GIB, 5 * GIB);
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_next("DELETE", "csisc-x7k2p");
	fake_kube_answer(client, 404, NULL);
	remove_object("csisc-x7k2p");
	assert_idle();
}
END_TEST

START_TEST(of_several_objects_for_the_same_only_the_one_of_the_right_name_stays)
{
	publish();
	put_object("csisc-b", 8 * GIB, 5 * GIB);
	put_object("csisc-c", 1, 1);
	ck_assert_uint_eq(fake_kube_count(client), 2);
	assert_next("DELETE", "csisc-b");
	fake_kube_answer(client, 0, NULL);
	answer_deleted("csisc-c");
	wait_for(MINUTE);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_deleted("csisc-b");
	assert_idle();
}
END_TEST

/* Specs of objects that the controller never makes. If a spec names a node, that node has not registered: an
 * object of the usual form would be left alone for such a node. */
static const char *const odd_specs[] = {
	"",
	",\"storageClassName\":\"fast\"",
	",\"nodeTopology\":{\"matchLabels\":{\"zone\":\"n2\"}},\"storageClassName\":\"fast\"",
	(",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n2\"},\"matchExpressions\":[{\"key\":\"a\"}]},"
	 "\"storageClassName\":\"fast\""),
	",\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n2\"}}",
};

START_TEST(an_object_that_cannot_be_understood_is_deleted)
{
	publish();
	put_managed("csisc-y", "pmem-controller", "n2", 8 * GIB, 5 * GIB);
	put_odd("csisc-x", "pmem-controller", /* meta= */ "", odd_specs[_i]);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_deleted("csisc-x");
	assert_idle();
}
END_TEST

START_TEST(an_object_that_has_the_name_of_another_is_replaced)
{
	put_odd(FAST_N1, "pmem-controller", /* meta= */ "",
		",\"storageClassName\":\"fast\",\"capacity\":\"8Gi\",\"maximumVolumeSize\":\"5Gi\"");
	have_slot();
	sync_all();
	answer_deleted(FAST_N1);
	wait_for(30 * NS_PER_S);
	assert_applies(FAST_N1, 8 * GIB, 5 * GIB);
}
END_TEST

START_TEST(node_ids_may_have_capitals_and_slashes)
{
	const char *name = "csisc-6ab8a6c91fe4795d9637f424df955dde";

	put_class("fast");
	put_node("Rack-7/N.1", 8 * GIB, 5 * GIB);
	sync_all();
	assert_applies(name, 8 * GIB, 5 * GIB);
	assert_body_has("\"pmem/node\":\"Rack-7/N.1\"");
	assert_body_has("\"storageClassName\":\"fast\"");
	answer_ok();
	put_managed(name, "pmem-controller", "Rack-7/N.1", 8 * GIB, 5 * GIB);
	assert_idle();
	fake_informer_remove(classes, "fast");
	answer_deleted(name);
	assert_idle();
}
END_TEST

START_TEST(objects_of_others_are_left_alone)
{
	publish();
	put_managed("csisc-a", "external-provisioner", "n1", 1, 1);
	put_managed("csisc-b", "external-provisioner-n1", "n1", 1, 1);
	put_managed("csisc-c", "another", "n1", 1, 1);
	assert_idle();
	wait_for(MINUTE);
	assert_idle();
	fake_informer_remove(classes, "fast");
	answer_deleted(FAST_N1);
	assert_idle();
}
END_TEST

/* While its deletion waits to be tried again. */
START_TEST(an_object_that_becomes_anothers_is_not_deleted)
{
	publish();
	put_object("csisc-x", 8 * GIB, 5 * GIB);
	fake_kube_answer(client, 500, NULL);
	put_managed("csisc-x", "external-provisioner", "n1", 8 * GIB, 5 * GIB);
	wait_for(MINUTE);
	assert_idle();
	fake_informer_remove(classes, "fast");
	fake_kube_answer(client, 500, NULL);
	put_managed(FAST_N1, "another", "n1", 8 * GIB, 5 * GIB);
	wait_for(MINUTE);
	assert_idle();
}
END_TEST

START_TEST(objects_of_external_provisioner_are_removed_where_that_was_asked_for)
{
	end_duty();
	begin_duty(/* remove_foreign= */ true);
	have_slot();
	put_managed("csisc-a", "external-provisioner", "n1", 1, 1);
	put_managed("csisc-b", "external-provisioner-n1", "n1", 1, 1);
	put_managed("csisc-c", "another", "n1", 1, 1);
	put_object(FAST_N1, 8 * GIB, 5 * GIB);
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), 2);
	answer_deleted("csisc-a");
	answer_deleted("csisc-b");
	assert_idle();
}
END_TEST

START_TEST(a_leader_that_ends_gives_up_its_requests_and_the_next_one_goes_on)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	put_node("n2", 7 * GIB, 5 * GIB);
	put_object("csisc-x", 1, 1);
	ck_assert_uint_eq(fake_kube_count(client), 3);
	end_duty();
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_node("n1", 6 * GIB, 5 * GIB);
	begin_duty(/* remove_foreign= */ false);
	/* two of the three requests had come in */
	put_object(FAST_N1, 7 * GIB, 5 * GIB);
	put_managed(FAST_N2, "pmem-controller", "n2", 7 * GIB, 5 * GIB);
	put_object("csisc-x", 1, 1);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), 2);
	assert_applies(FAST_N1, 6 * GIB, 5 * GIB);
	answer_ok();
	put_object(FAST_N1, 6 * GIB, 5 * GIB);
	answer_deleted("csisc-x");
	assert_idle();
}
END_TEST

START_TEST(requests_are_limited_and_all_get_their_turn)
{
	put_class("fast");
	for (unsigned i = 0; i < 2 * MAX_RUNNING; i++) {
		CLEANUP(free_charp) char *id = x_asprintf("m%u", i);

		put_node(id, 8 * GIB, 5 * GIB);
	}
	sync_all();
	ck_assert_uint_eq(fake_kube_count(client), MAX_RUNNING);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 2 * MAX_RUNNING);
	for (unsigned i = 0; i < MAX_RUNNING; i++) {
		put_node("m0", (7 * GIB) + i, 5 * GIB);
		answer_ok();
		ck_assert_uint_eq(fake_kube_count(client), MAX_RUNNING);
		ck_assert_ptr_null(strstr(fake_kube_next(client)->body, "\"pmem/node\":\"m0\""));
	}
	for (unsigned i = 0; i < MAX_RUNNING; i++)
		answer_ok();
	assert_body_has("\"pmem/node\":\"m0\"");
	ck_assert_uint_eq(fake_kube_count(client), 1);
}
END_TEST

/* With all requests in use: what is queued then is counted. */
START_TEST(a_look_queues_nothing_that_is_right)
{
	put_class("fast");
	put_class_binding("now", "pmem", "Immediate");
	put_node("away", 8 * GIB, 5 * GIB);
	node_table_end(nodes, "away");
	for (unsigned i = 0; i <= MAX_RUNNING; i++) {
		CLEANUP(free_charp) char *key = x_asprintf("fast/m%u", i);
		char hash[SHA224_HEX_LEN + 1];

		sha224_hex(key, strlen(key), hash);
		CLEANUP(free_charp) char *name = x_asprintf("csisc-%.32s", hash);
		put_node(key + strlen("fast/"), 8 * GIB, 5 * GIB);
		put_managed(name, "pmem-controller", key + strlen("fast/"), 8 * GIB, 5 * GIB);
	}
	sync_all();
	assert_idle();
	for (unsigned i = 0; i < MAX_RUNNING; i++) {
		CLEANUP(free_charp) char *id = x_asprintf("m%u", i);

		put_node(id, 7 * GIB, 5 * GIB);
	}
	ck_assert_uint_eq(fake_kube_count(client), MAX_RUNNING);
	wait_for(MINUTE);
	ck_assert_uint_eq(capacity_objects_pending(capacity), MAX_RUNNING);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_class_that_binds_at_once_gets_no_objects,
		each_node_and_class_of_ours_gets_an_object, nothing_is_written_before_all_is_known,
		what_is_published_already_is_not_written_again,
		what_was_left_out_of_date_is_written_at_the_beginning,
		changes_are_written_at_once_and_only_the_latest_one_waits,
		a_watch_that_lags_behind_ends_in_the_right_state,
		an_object_that_appears_after_its_node_has_ended_gets_0, what_others_change_is_set_back,
		an_object_without_amounts_gets_them, a_look_queues_nothing_that_is_right,
		a_deletion_that_fails_is_tried_again, an_object_whose_creation_was_not_answered_is_found,
		an_object_that_was_deleted_by_hand_is_created_again,
		a_node_whose_lease_ended_has_nothing_and_its_object_goes_with_its_node,
		a_node_out_of_service_has_nothing_while_it_reports,
		the_object_of_a_node_that_stays_away_goes_after_ten_minutes,
		a_node_that_comes_back_while_its_object_is_deleted_gets_it_back,
		an_object_that_is_being_deleted_is_not_deleted_again,
		objects_of_nodes_that_have_not_registered_yet_are_left_alone, objects_go_with_their_class,
		objects_go_when_their_class_binds_at_once,
		an_object_of_another_name_goes_when_its_successor_exists,
		an_object_of_another_name_goes_at_once_when_its_node_is_away,
		an_object_of_another_name_goes_at_once_without_its_class,
		of_several_objects_for_the_same_only_the_one_of_the_right_name_stays,
		an_object_that_has_the_name_of_another_is_replaced, node_ids_may_have_capitals_and_slashes,
		objects_of_others_are_left_alone, an_object_that_becomes_anothers_is_not_deleted,
		objects_of_external_provisioner_are_removed_where_that_was_asked_for,
		a_leader_that_ends_gives_up_its_requests_and_the_next_one_goes_on,
		requests_are_limited_and_all_get_their_turn};
	Suite *suite = suite_create("capacity objects");
	TCase *tcase = tcase_create("capacity objects");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, a_failure_is_tried_again_after_a_while, 0, (int)ARRAY_SIZE(failures));
	tcase_add_loop_test(
		tcase, an_object_that_cannot_be_understood_is_deleted, 0, (int)ARRAY_SIZE(odd_specs));
	return unit_runner_finish(srunner_create(suite));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/capacity_objects.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define GIB    (1ULL << 30)
#define MINUTE (60 * NS_PER_S)
#define PATH   "/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities"

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *classes;
static struct informer *objects;
static struct capacity_objects *capacity;
static uint64_t now;
static bool node_exists;

static uint64_t get_now(void *user)
{
	(void)user;
	return now;
}

static bool owners_ready(void *self)
{
	(void)self;
	return true;
}

static size_t owners_list(void *self, const char *const **ret)
{
	(void)self;
	*ret = NULL;
	return 0;
}

static bool owners_exists(void *self, const char *node_id)
{
	(void)self;
	(void)node_id;
	return node_exists;
}

static void class_changed(void *user, const char *key, const void *old, const void *new)
{
	(void)user;
	(void)old;
	(void)new;
	if (capacity)
		capacity_objects_class_changed(capacity, key);
}

static void begin(bool remove_foreign)
{
	static const struct informer_events events = {.changed = class_changed};
	const struct possible_owners owners = {
		.ready = owners_ready, .list = owners_list, .exists = owners_exists};

	now = 1000 * MINUTE;
	node_exists = true;
	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	classes = informer_new(client, &kube_kind_classes, &events, NULL);
	const struct capacity_objects_config config = {.client = client,
		.namespace = "ns",
		.driver_name = "pmem",
		.nodes = nodes,
		.classes = classes,
		.owners = owners,
		.remove_foreign = remove_foreign,
		.now_ns = get_now};
	capacity = capacity_objects_new(&config);
	objects = fake_kube_informer(client, "csistoragecapacities");
	ck_assert_ptr_nonnull(objects);
}

static void end(void)
{
	capacity_objects_free(TAKE_PTR(capacity));
	informer_free(classes);
	node_table_free(nodes);
	kube_client_free(client);
}

static void set_up(void)
{
	begin(/* remove_foreign= */ false);
}

static void put_class_binding(const char *name, const char *provisioner, const char *mode)
{
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
				"\"provisioner\":\"%s\",\"volumeBindingMode\":\"%s\"}",
		name, provisioner, mode);

	fake_informer_put(classes, json);
}

static void put_class(const char *name, const char *provisioner)
{
	put_class_binding(name, provisioner, "WaitForFirstConsumer");
}

static char *object_json(const char *name, const char *version, const char *manager, const char *node,
	uint64_t available, uint64_t maximum)
{
	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
			  "\"resourceVersion\":\"%s\",\"labels\":{\"csi.storage.k8s.io/drivername\":\"pmem\","
			  "\"csi.storage.k8s.io/managed-by\":\"%s\"}},"
			  "\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"%s\"}},"
			  "\"storageClassName\":\"fast\",\"capacity\":\"%ju\",\"maximumVolumeSize\":\"%ju\"}",
		name, name, version, manager, node, (uintmax_t)available, (uintmax_t)maximum);
}

static void put_object(const char *name, const char *version, const char *manager, const char *node,
	uint64_t available, uint64_t maximum)
{
	CLEANUP(free_charp) char *json = object_json(name, version, manager, node, available, maximum);

	fake_informer_put(objects, json);
}

static void put_node(const char *id, uint64_t available, uint64_t maximum)
{
	struct node_report *r = report_new(id);

	r->pools[0].capacity.available_bytes = available;
	r->pools[0].capacity.max_volume_bytes = maximum;
	node_table_put(nodes, r, now);
}

static void lead(void)
{
	fake_informer_sync(classes);
	fake_informer_sync(objects);
	capacity_objects_lead(capacity, true);
}

static void assert_next(const char *method, const char *path)
{
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

/* The server has made or changed the object, and both reply and watch tell so. */
static void answer_written(const char *name, const char *version, uint64_t available, uint64_t maximum)
{
	CLEANUP(free_charp)
	char *json = object_json(name, version, "pmem-controller", "n1", available, maximum);

	fake_kube_answer(client, 200, json);
	fake_informer_put(objects, json);
}

/* One class, one live node with 8 GiB, of which 5 GiB in one piece, and its object. */
static void publish(void)
{
	put_class("fast", "pmem");
	put_node("n1", 8 * GIB, 5 * GIB);
	lead();
	assert_next("POST", PATH);
	answer_written("csisc-1", "7", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}

START_TEST(a_class_that_binds_at_once_gets_no_objects)
{
	put_class_binding("now", "pmem", "Immediate");
	put_node("n1", 8 * GIB, 5 * GIB);
	lead();
	capacity_objects_class_changed(capacity, "now");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(each_node_and_class_of_ours_gets_an_object)
{
	put_class("fast", "pmem");
	put_class("other", "somebody.else");
	put_node("n1", 8 * GIB, 5 * GIB);
	lead();
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_next("POST", PATH);
	assert_body_has("\"generateName\":\"csisc-\"");
	assert_body_has("\"csi.storage.k8s.io/drivername\":\"pmem\"");
	assert_body_has("\"csi.storage.k8s.io/managed-by\":\"pmem-controller\"");
	assert_body_has("\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}}");
	assert_body_has("\"storageClassName\":\"fast\"");
	assert_body_has("\"capacity\":\"8589934592\"");
	assert_body_has("\"maximumVolumeSize\":\"5368709120\"");
	answer_written("csisc-1", "7", 8 * GIB, 5 * GIB);
	put_class("slow", "pmem");
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_body_has("\"storageClassName\":\"slow\"");
	put_node("n2", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 3);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 3);
}
END_TEST

START_TEST(nothing_is_written_without_the_lead_or_before_all_is_known)
{
	put_class("fast", "pmem");
	put_node("n1", 8 * GIB, 5 * GIB);
	capacity_objects_lead(capacity, true);
	fake_informer_sync(objects);
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	fake_informer_sync(classes);
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	capacity_objects_lead(capacity, false);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_node("n1", 7 * GIB, 5 * GIB);
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(what_is_published_already_is_not_written_again)
{
	put_class("fast", "pmem");
	put_node("n1", 8 * GIB, 5 * GIB);
	put_object("csisc-1", "7", "pmem-controller", "n1", 8 * GIB, 5 * GIB);
	lead();
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(changes_are_written_at_once_and_one_after_the_other)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	assert_next("PATCH", PATH "/csisc-1");
	ck_assert_str_eq(fake_kube_next(client)->content_type, "application/merge-patch+json");
	assert_body_has("\"resourceVersion\":\"7\"");
	assert_body_has("\"capacity\":\"7516192768\"");
	put_node("n1", 6 * GIB, 5 * GIB);
	put_node("n1", 5 * GIB, 4 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	answer_written("csisc-1", "8", 7 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_body_has("\"resourceVersion\":\"8\"");
	assert_body_has("\"capacity\":\"5368709120\"");
	answer_written("csisc-1", "9", 5 * GIB, 4 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_watch_that_lags_behind_does_not_undo_what_was_written)
{
	CLEANUP(free_charp)
	char *newer = object_json("csisc-1", "9", "pmem-controller", "n1", 6 * GIB, 5 * GIB);
	CLEANUP(free_charp)
	char *old = object_json("csisc-1", "8", "pmem-controller", "n1", 7 * GIB, 5 * GIB);

	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	fake_kube_answer(client, 200, old);
	put_node("n1", 6 * GIB, 5 * GIB);
	fake_kube_answer(client, 200, newer);
	fake_informer_put(objects, old);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	fake_informer_put(objects, newer);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_object("csisc-1", "10", "pmem-controller", "n1", 1, 1);
	assert_next("PATCH", PATH "/csisc-1");
	assert_body_has("\"resourceVersion\":\"10\"");
}
END_TEST

START_TEST(somebody_elses_change_is_looked_at_before_ours_is_repeated)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	fake_kube_answer(client, 409, NULL);
	put_object("csisc-1", "8", "pmem-controller", "n1", 1, 1);
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("PATCH", PATH "/csisc-1");
	assert_body_has("\"resourceVersion\":\"8\"");
}
END_TEST

START_TEST(a_failure_is_tried_again_after_a_while)
{
	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	fake_kube_answer(client, 0, NULL);
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("PATCH", PATH "/csisc-1");
}
END_TEST

START_TEST(an_object_that_somebody_deleted_is_made_anew)
{
	publish();
	fake_informer_remove(objects, "ns/csisc-1");
	assert_next("POST", PATH);
	answer_written("csisc-2", "9", 8 * GIB, 5 * GIB);
	put_node("n1", 7 * GIB, 5 * GIB);
	fake_kube_answer(client, 404, NULL);
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("POST", PATH);
}
END_TEST

START_TEST(a_node_whose_lease_ended_has_nothing_and_its_object_goes_with_its_node)
{
	publish();
	node_table_end(nodes, "n1");
	assert_next("PATCH", PATH "/csisc-1");
	assert_body_has("\"capacity\":\"0\"");
	assert_body_has("\"maximumVolumeSize\":\"0\"");
	answer_written("csisc-1", "8", 0, 0);
	now += MINUTE;
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	node_exists = false;
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("DELETE", PATH "/csisc-1");
	fake_kube_answer(client, 200, "{}");
	fake_informer_remove(objects, "ns/csisc-1");
	ck_assert_uint_eq(fake_kube_count(client), 0);
	put_node("n1", 8 * GIB, 5 * GIB);
	assert_next("POST", PATH);
}
END_TEST

START_TEST(the_object_of_a_node_that_stays_away_goes_after_ten_minutes)
{
	publish();
	node_table_end(nodes, "n1");
	answer_written("csisc-1", "8", 0, 0);
	now += 9 * MINUTE;
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("DELETE", PATH "/csisc-1");
}
END_TEST

START_TEST(objects_of_nodes_that_have_not_registered_yet_are_left_alone)
{
	put_class("fast", "pmem");
	put_object("csisc-1", "7", "pmem-controller", "n1", 8 * GIB, 5 * GIB);
	lead();
	now += 9 * MINUTE;
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("DELETE", PATH "/csisc-1");
}
END_TEST

START_TEST(objects_go_with_their_class)
{
	publish();
	fake_informer_remove(classes, "fast");
	assert_next("DELETE", PATH "/csisc-1");
	fake_kube_answer(client, 404, NULL);
	fake_informer_remove(objects, "ns/csisc-1");
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert_uint_eq(capacity_objects_pending(capacity), 0);
}
END_TEST

START_TEST(of_two_objects_for_the_same_one_goes)
{
	publish();
	put_object("csisc-2", "9", "pmem-controller", "n1", 8 * GIB, 5 * GIB);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_next("DELETE", PATH "/csisc-2");
	fake_kube_answer(client, 0, NULL);
	now += MINUTE;
	capacity_objects_tick(capacity);
	assert_next("DELETE", PATH "/csisc-2");
	fake_kube_answer(client, 200, "{}");
	fake_informer_remove(objects, "ns/csisc-2");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_second_object_goes_also_while_the_watch_lags_behind)
{
	CLEANUP(free_charp)
	char *json = object_json("csisc-1", "8", "pmem-controller", "n1", 7 * GIB, 5 * GIB);

	publish();
	put_node("n1", 7 * GIB, 5 * GIB);
	fake_kube_answer(client, 200, json);
	put_object("csisc-2", "9", "pmem-controller", "n1", 1, 1);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	assert_next("DELETE", PATH "/csisc-2");
}
END_TEST

START_TEST(an_object_whose_making_was_not_answered_is_found)
{
	put_class("fast", "pmem");
	put_node("n1", 8 * GIB, 5 * GIB);
	lead();
	fake_kube_answer(client, 0, NULL);
	put_object("csisc-1", "7", "pmem-controller", "n1", 8 * GIB, 5 * GIB);
	now += MINUTE;
	capacity_objects_tick(capacity);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(objects_of_others_are_left_alone)
{
	publish();
	put_object("csisc-a", "9", "external-provisioner", "n1", 1, 1);
	put_object("csisc-b", "9", "external-provisioner-n1", "n1", 1, 1);
	put_object("csisc-c", "9", "somebody", "n1", 1, 1);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(objects_of_external_provisioner_are_removed_where_that_was_asked_for)
{
	end();
	begin(/* remove_foreign= */ true);
	put_object("csisc-a", "9", "external-provisioner", "n1", 1, 1);
	put_object("csisc-b", "9", "external-provisioner-n1", "n1", 1, 1);
	put_object("csisc-c", "9", "somebody", "n1", 1, 1);
	lead();
	ck_assert_uint_eq(fake_kube_count(client), 2);
	assert_next("DELETE", PATH "/csisc-a");
	fake_kube_answer(client, 200, "{}");
	assert_next("DELETE", PATH "/csisc-b");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {each_node_and_class_of_ours_gets_an_object,
		nothing_is_written_without_the_lead_or_before_all_is_known,
		what_is_published_already_is_not_written_again,
		changes_are_written_at_once_and_one_after_the_other,
		a_watch_that_lags_behind_does_not_undo_what_was_written,
		somebody_elses_change_is_looked_at_before_ours_is_repeated,
		a_failure_is_tried_again_after_a_while, an_object_that_somebody_deleted_is_made_anew,
		a_class_that_binds_at_once_gets_no_objects,
		a_node_whose_lease_ended_has_nothing_and_its_object_goes_with_its_node,
		the_object_of_a_node_that_stays_away_goes_after_ten_minutes,
		objects_of_nodes_that_have_not_registered_yet_are_left_alone, objects_go_with_their_class,
		of_two_objects_for_the_same_one_goes, a_second_object_goes_also_while_the_watch_lags_behind,
		an_object_whose_making_was_not_answered_is_found, objects_of_others_are_left_alone,
		objects_of_external_provisioner_are_removed_where_that_was_asked_for};
	Suite *suite = suite_create("capacity objects");
	TCase *tcase = tcase_create("capacity objects");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, end);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

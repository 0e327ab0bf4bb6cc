/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/informer.h"
#include "nodes/cluster_nodes.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/unit.h"

static void put(struct informer *i, const char *name, const char *label, const char *value)
{
	CLEANUP(free_charp) char *json = kube_json_node(name, label, value);

	fake_informer_put(i, json);
}

static char notified[64];

static void note(void *user, const char *node_id)
{
	size_t n = strlen(notified);

	(void)user;
	snprintf(notified + n, sizeof(notified) - n, "%s ", node_id);
}

/* @expected: "a b ", sorted */
static void assert_list(const struct cluster_nodes *c, const char *expected)
{
	const char *id;
	char all[64] = "";
	size_t at = 0;

	while ((id = cluster_nodes_next(c, &at)) != NULL)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", id);
	ck_assert_str_eq(all, expected);
}

START_TEST(nodes_with_the_label_are_in_the_list)
{
	struct kube_client *client = fake_kube_new(/* loop= */ NULL);
	struct cluster_nodes *c = cluster_nodes_new(client, "pmem", note, NULL);
	struct informer *i = fake_kube_informer(client, "nodes");

	ck_assert_str_eq(fake_informer_kind(i)->label_selector, "pmem/node");
	ck_assert(!cluster_nodes_ready(c));
	ck_assert(cluster_nodes_have(c, "unknown"));
	put(i, "b", "pmem/node", "id-b");
	put(i, "a", "pmem/node", "id-a");
	fake_informer_sync(i);
	ck_assert(cluster_nodes_ready(c));
	assert_list(c, "id-a id-b ");
	ck_assert(cluster_nodes_have(c, "id-a"));
	ck_assert(!cluster_nodes_have(c, "unknown"));
	put(i, "b", "pmem/node", "id-c");
	assert_list(c, "id-a id-c ");
	fake_informer_remove(i, "a");
	assert_list(c, "id-c ");
	ck_assert(!cluster_nodes_have(c, "id-a"));
	put(i, "b", "other", "x");
	assert_list(c, "");
	cluster_nodes_free(c);
	kube_client_free(client);
}
END_TEST

START_TEST(an_id_that_two_nodes_bear_stays_until_both_have_gone)
{
	struct kube_client *client = fake_kube_new(/* loop= */ NULL);
	struct cluster_nodes *c = cluster_nodes_new(client, "pmem", note, NULL);
	struct informer *i = fake_kube_informer(client, "nodes");

	put(i, "a", "pmem/node", "same");
	put(i, "b", "pmem/node", "same");
	assert_list(c, "same ");
	fake_informer_remove(i, "a");
	assert_list(c, "same ");
	fake_informer_remove(i, "b");
	assert_list(c, "");
	cluster_nodes_free(c);
	kube_client_free(client);
}
END_TEST

static void put_taint(struct informer *i, const char *name, const char *taint)
{
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\","
				"\"labels\":{\"pmem/node\":\"id\"}},\"spec\":{\"taints\":[{\"key\":\"%s\","
				"\"value\":\"nodeshutdown\",\"effect\":\"NoExecute\"}]}}",
		name, taint);

	fake_informer_put(i, json);
}

START_TEST(the_taint_out_of_service_is_known_of_each_node)
{
	struct kube_client *client = fake_kube_new(/* loop= */ NULL);
	struct cluster_nodes *c = cluster_nodes_new(client, "pmem", note, NULL);
	struct informer *i = fake_kube_informer(client, "nodes");

	put_taint(i, "a", "node.kubernetes.io/unschedulable");
	ck_assert(!cluster_nodes_out_of_service(c, "id"));
	put_taint(i, "a", "node.kubernetes.io/out-of-service");
	ck_assert(cluster_nodes_out_of_service(c, "id"));
	ck_assert(!cluster_nodes_out_of_service(c, "other"));
	put_taint(i, "b", "other");
	ck_assert(cluster_nodes_out_of_service(c, "id"));
	fake_informer_remove(i, "a");
	ck_assert(!cluster_nodes_out_of_service(c, "id"));
	put_taint(i, "b", "node.kubernetes.io/out-of-service");
	ck_assert(cluster_nodes_out_of_service(c, "id"));
	put_taint(i, "b", "other");
	ck_assert(!cluster_nodes_out_of_service(c, "id"));
	cluster_nodes_free(c);
	kube_client_free(client);
}
END_TEST

START_TEST(changes_of_nodes_and_of_the_taint_are_notified)
{
	struct kube_client *client = fake_kube_new(/* loop= */ NULL);
	struct cluster_nodes *c = cluster_nodes_new(client, "pmem", note, NULL);
	struct informer *i = fake_kube_informer(client, "nodes");

	notified[0] = '\0';
	put_taint(i, "a", "other");
	put_taint(i, "a", "another");
	ck_assert_str_eq(notified, "id ");
	put_taint(i, "a", "node.kubernetes.io/out-of-service");
	ck_assert_str_eq(notified, "id id ");
	put(i, "a", "pmem/node", "id-a");
	ck_assert_str_eq(notified, "id id id-a id ");
	fake_informer_remove(i, "a");
	ck_assert_str_eq(notified, "id id id-a id id-a ");
	cluster_nodes_free(c);
	kube_client_free(client);
}
END_TEST

UNIT_MAIN("cluster_nodes", nodes_with_the_label_are_in_the_list,
	an_id_that_two_nodes_bear_stays_until_both_have_gone, the_taint_out_of_service_is_known_of_each_node,
	changes_of_nodes_and_of_the_taint_are_notified)

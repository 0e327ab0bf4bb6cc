/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "duties/owners.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/unit.h"

static void put(struct informer *i, const char *name, const char *label, const char *value)
{
	CLEANUP(free_charp) char *json = kube_json_node(name, label, value);

	fake_informer_put(i, json);
}

static void assert_list(struct owners *owners, const char *first, const char *second)
{
	const struct possible_owners o = owners_possible(owners);
	const char *const *ids;
	size_t n = o.list(o.self, &ids);

	ck_assert_uint_eq(n, (first != NULL) + (second != NULL));
	if (first)
		ck_assert_str_eq(ids[0], first);
	if (second)
		ck_assert_str_eq(ids[1], second);
}

START_TEST(nodes_with_the_label_may_own_volumes)
{
	struct kube_client *client = fake_kube_new(/* loop= */ NULL);
	struct owners *owners = owners_watch(client, "pmem");
	const struct possible_owners o = owners_possible(owners);
	struct informer *i = fake_kube_informer(client, "nodes");

	ck_assert_str_eq(fake_informer_kind(i)->label_selector, "pmem/node");
	ck_assert(fake_informer_kind(i)->metadata_only);
	ck_assert(!o.ready(o.self));
	ck_assert(o.exists(o.self, "nobody"));
	put(i, "b", "pmem/node", "id-b");
	put(i, "a", "pmem/node", "id-a");
	fake_informer_sync(i);
	ck_assert(o.ready(o.self));
	assert_list(owners, "id-a", "id-b");
	ck_assert(o.exists(o.self, "id-a"));
	ck_assert(!o.exists(o.self, "nobody"));
	put(i, "b", "pmem/node", "id-c");
	assert_list(owners, "id-a", "id-c");
	fake_informer_remove(i, "a");
	assert_list(owners, "id-c", NULL);
	ck_assert(!o.exists(o.self, "id-a"));
	put(i, "b", "other", "x");
	assert_list(owners, NULL, NULL);
	owners_free(owners);
	kube_client_free(client);
}
END_TEST

START_TEST(an_id_that_two_nodes_bear_stays_until_both_have_gone)
{
	struct kube_client *client = fake_kube_new(/* loop= */ NULL);
	struct owners *owners = owners_watch(client, "pmem");
	struct informer *i = fake_kube_informer(client, "nodes");

	put(i, "a", "pmem/node", "same");
	put(i, "b", "pmem/node", "same");
	assert_list(owners, "same", NULL);
	fake_informer_remove(i, "a");
	assert_list(owners, "same", NULL);
	fake_informer_remove(i, "b");
	assert_list(owners, NULL, NULL);
	owners_free(owners);
	kube_client_free(client);
}
END_TEST

START_TEST(nodes_that_were_named_exist_for_ever)
{
	CLEANUP(strv_freep) char **ids = NULL;
	struct owners *owners;

	strv_add(&ids, "b");
	strv_add(&ids, "a");
	strv_add(&ids, "b");
	owners = owners_expect(ids);
	const struct possible_owners o = owners_possible(owners);
	ck_assert(o.ready(o.self));
	ck_assert(o.exists(o.self, "a"));
	ck_assert(o.exists(o.self, "other"));
	assert_list(owners, "a", "b");
	owners_free(owners);
}
END_TEST

START_TEST(without_names_nothing_is_known)
{
	struct owners *owners = owners_expect(NULL);
	const struct possible_owners o = owners_possible(owners);

	ck_assert(!o.ready(o.self));
	assert_list(owners, NULL, NULL);
	owners_free(owners);
}
END_TEST

UNIT_MAIN("owners", nodes_with_the_label_may_own_volumes,
	an_id_that_two_nodes_bear_stays_until_both_have_gone, nodes_that_were_named_exist_for_ever,
	without_names_nothing_is_known)

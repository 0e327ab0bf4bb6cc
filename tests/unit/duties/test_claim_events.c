/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/claim_events.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define GIB (1ULL << 30)
#define MIB (1ULL << 20)

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *classes;
static struct informer *claims;
static struct claim_events *events;
static unsigned reported;
static const char *out_of_service;
static char last[256];

static bool is_out_of_service(void *self, const char *node_id)
{
	(void)self;
	return str_eq(out_of_service, node_id);
}

static struct cluster_nodes cluster = {.out_of_service = is_out_of_service};

static void tell(void *user, const struct kube_meta *claim, const char *message, uint64_t now_ns)
{
	(void)user;
	(void)now_ns;
	reported++;
	snprintf(last, sizeof(last), "%s: %s", claim->name, message);
}

static void put_class(const char *name, const char *provisioner, const char *parameters)
{
	CLEANUP(free_charp) char *json = kube_json_class(name, provisioner, parameters);

	fake_informer_put(classes, json);
}

static void put_claim(const char *name, const char *class_name, const char *volume)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, class_name, NULL, volume);

	fake_informer_put(claims, json);
}

static void put_node(const char *id, uint64_t maximum)
{
	struct node_report *r = report_new(id);

	r->pools[0].capacity.max_volume_bytes = maximum;
	node_table_put(nodes, r, 1);
}

static void set_up(void)
{
	static const struct informer_events none = {0};

	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	classes = informer_new(client, &kube_kind_classes, &none, NULL);
	claims = informer_new(client, &kube_kind_claims, &none, NULL);
	put_class("fast", "pmem", "{}");
	put_class("other", "another.example", "{}");
	put_class("file", "pmem", "{\"usage\":\"FileIO\"}");
	put_class("xfs", "pmem", "{\"csi.storage.k8s.io/fstype\":\"xfs\"}");
	fake_informer_sync(classes);
	fake_informer_sync(claims);
	const struct claim_events_config config = {.driver_name = "pmem",
		.nodes = nodes,
		.cluster = &cluster,
		.classes = classes,
		.claims = claims,
		.tell = tell};
	events = claim_events_new(&config);
}

static void tear_down(void)
{
	claim_events_free(events);
	informer_free(claims);
	informer_free(classes);
	node_table_free(nodes);
	kube_client_free(client);
}

/* Long enough for all Events that are due. */
static void wait(void)
{
	static uint64_t now = 1000 * NS_PER_S;

	for (unsigned i = 0; i < 5; i++) {
		now += 5 * NS_PER_S;
		claim_events_tick(events, now);
	}
}

START_TEST(a_claim_that_fits_nowhere_is_told_what_would_fit)
{
	put_node("n1", 2 * GIB);
	put_node("n2", 3 * GIB);
	put_node("n3", 64 * GIB);
	node_table_end(nodes, "n3");
	put_claim("c", "fast", NULL);
	wait();
	ck_assert_uint_eq(reported, 1);
	ck_assert_str_eq(last, "c: the largest volume that can be made is 3Gi, on n2; 4Gi needed");
}
END_TEST

START_TEST(a_node_out_of_service_is_not_offered)
{
	put_node("n1", 2 * GIB);
	put_node("n2", 64 * GIB);
	out_of_service = "n2";
	put_claim("c", "fast", NULL);
	wait();
	ck_assert_str_eq(last, "c: the largest volume that can be made is 2Gi, on n1; 4Gi needed");
}
END_TEST

START_TEST(nothing_is_told_of_claims_that_fit_or_are_not_ours_or_bound)
{
	put_node("n1", 4 * GIB);
	put_claim("fits", "fast", NULL);
	put_claim("other", "other", NULL);
	put_claim("bound", "file", "pv");
	wait();
	ck_assert_uint_eq(reported, 0);
}
END_TEST

START_TEST(without_nodes_that_is_the_reason)
{
	put_claim("c", "fast", NULL);
	wait();
	ck_assert_str_eq(last, "c: there is no node with persistent memory");
}
END_TEST

START_TEST(a_class_for_file_io_has_its_own_maximum)
{
	put_node("n1", 64 * GIB);
	put_claim("c", "file", NULL);
	wait();
	ck_assert_str_eq(last, "c: the largest volume that can be made is 3Gi, on n1; 4Gi needed");
}
END_TEST

START_TEST(what_is_too_small_for_the_file_system_is_nothing)
{
	put_node("n1", 16 * MIB);
	put_claim("c", "xfs", NULL);
	wait();
	ck_assert_str_eq(last, "c: no node has room for a volume of this class; 4Gi needed");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_claim_that_fits_nowhere_is_told_what_would_fit,
		a_node_out_of_service_is_not_offered,
		nothing_is_told_of_claims_that_fit_or_are_not_ours_or_bound, without_nodes_that_is_the_reason,
		a_class_for_file_io_has_its_own_maximum, what_is_too_small_for_the_file_system_is_nothing};
	Suite *suite = suite_create("claim events");
	TCase *tcase = tcase_create("claim events");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

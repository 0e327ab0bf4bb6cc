/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "duties/driverless_claims.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define STEP_NS (30 * NS_PER_S)

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *classes;
static struct informer *claims;
static struct node_terms selector;
static struct driverless_claims *driverless_claims;
static uint64_t now;

static void set_up(void)
{
	static const struct informer_events none = {0};
	CLEANUP(free_charp) char *class = kube_json_class("fast", "pmem", "{}");

	now = 1000 * NS_PER_S;
	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	classes = informer_new(client, &kube_kind_classes, &none, NULL);
	claims = informer_new(client, &kube_kind_claims, &none, NULL);
	fake_informer_put(classes, class);
	fake_informer_sync(classes);
	fake_informer_sync(claims);
	ck_assert_int_eq(node_terms_parse("{\"storage\":\"pmem\"}", &selector, NULL), 0);
	const struct driverless_claims_config config = {.client = client,
		.driver_name = "pmem",
		.node_selector = &selector,
		.nodes = nodes,
		.classes = classes,
		.claims = claims};
	driverless_claims = driverless_claims_new(&config);
}

static void tear_down(void)
{
	driverless_claims_free(driverless_claims);
	informer_free(claims);
	informer_free(classes);
	node_table_free(nodes);
	node_terms_done(&selector);
	kube_client_free(client);
}

static void put_claim(const char *name, const char *class_name, const char *node, const char *volume)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, class_name, node, volume);

	fake_informer_put(claims, json);
}

static void answer_csi_node(const char *driver)
{
	CLEANUP(free_charp) char *json = kube_json_csi_node("n1", driver);

	ck_assert_str_eq(fake_kube_next(client)->path, "/apis/storage.k8s.io/v1/csinodes/n1");
	fake_kube_answer(client, 200, json);
}

static void answer_node(const char *storage)
{
	CLEANUP(free_charp) char *json = kube_json_node("n1", "storage", storage);

	ck_assert_str_eq(fake_kube_next(client)->path, "/api/v1/nodes/n1");
	fake_kube_answer(client, 200, json);
}

static void step(void)
{
	now += STEP_NS;
	driverless_claims_tick(driverless_claims, now);
}

/* Two minutes in which the node has neither driver nor labels. */
static void wait_without_driver(void)
{
	driverless_claims_tick(driverless_claims, now);
	for (unsigned i = 0; i < 5; i++) {
		answer_csi_node("other");
		answer_node("none");
		ck_assert_uint_eq(fake_kube_count(client), 0);
		step();
	}
}

/* The next request removes the selected node from the claim at @path. */
static void assert_moves(const char *path)
{
	ck_assert_ptr_nonnull(fake_kube_next(client));
	ck_assert_str_eq(fake_kube_next(client)->method, "PATCH");
	ck_assert_str_eq(fake_kube_next(client)->path, path);
	ck_assert_str_eq(fake_kube_next(client)->content_type, "application/merge-patch+json");
	ck_assert_str_eq(fake_kube_next(client)->body,
		"{\"metadata\":{\"resourceVersion\":\"5\",\"annotations\":"
		"{\"volume.kubernetes.io/selected-node\":null}}}");
}

START_TEST(what_cannot_be_a_node_is_not_asked_for)
{
	static const char *const names[] = {
		"../../api/v1/secrets", "n1?watch=true", "n1 x", "n1\\nx", ".", "..", "n..1", "-n1", "N1"};
	CLEANUP(buf_done) struct buf longest = BUF_INIT(1024);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		put_claim("c", "fast", names[i], NULL);
		driverless_claims_tick(driverless_claims, now);
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
	for (unsigned i = 0; i < 253; i++)
		buf_addc(&longest, 'n');
	put_claim("d", "fast", buf_str(&longest), NULL);
	buf_addc(&longest, 'n');
	put_claim("c", "fast", buf_str(&longest), NULL);
	driverless_claims_tick(driverless_claims, now);
	ck_assert_uint_eq(fake_kube_count(client), 1);
}
END_TEST

START_TEST(a_claim_on_a_node_without_driver_is_given_back)
{
	put_claim("c", "fast", "n1", NULL);
	wait_without_driver();
	assert_moves("/api/v1/namespaces/ns/persistentvolumeclaims/c");
	driverless_claims_tick(driverless_claims, now);
	fake_kube_answer(client, 200, "{}");
	put_claim("c", "fast", NULL, NULL);
	answer_csi_node(NULL);
	answer_node("none");
	step();
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_claim_that_has_changed_meanwhile_is_tried_again)
{
	put_claim("c", "fast", "n1", NULL);
	wait_without_driver();
	fake_kube_answer(client, 409, NULL);
	answer_csi_node(NULL);
	answer_node("none");
	driverless_claims_tick(driverless_claims, now);
	assert_moves("/api/v1/namespaces/ns/persistentvolumeclaims/c");
}
END_TEST

START_TEST(a_claim_that_cannot_be_changed_is_tried_again_later)
{
	put_claim("c", "fast", "n1", NULL);
	wait_without_driver();
	assert_moves("/api/v1/namespaces/ns/persistentvolumeclaims/c");
	fake_kube_answer(client, 403, NULL);
	answer_csi_node(NULL);
	answer_node("none");
	driverless_claims_tick(driverless_claims, now);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	step();
	assert_moves("/api/v1/namespaces/ns/persistentvolumeclaims/c");
}
END_TEST

START_TEST(other_claims_are_not_looked_at)
{
	put_claim("not-ours", "slow", "n1", NULL);
	put_claim("bound", "fast", "n1", "pv");
	put_claim("not-scheduled", "fast", NULL, NULL);
	driverless_claims_tick(driverless_claims, now);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_registered_node_is_not_asked_about)
{
	node_table_put(nodes, report_new("n1"), now);
	put_claim("c", "fast", "n1", NULL);
	driverless_claims_tick(driverless_claims, now);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	node_table_end(nodes, "n1");
	driverless_claims_tick(driverless_claims, now);
	ck_assert_uint_eq(fake_kube_count(client), 1);
}
END_TEST

START_TEST(a_node_with_driver_or_labels_keeps_its_claims)
{
	put_claim("c", "fast", "n1", NULL);
	driverless_claims_tick(driverless_claims, now);
	for (unsigned i = 0; i < 10; i++) {
		if (i % 2 == 0) {
			answer_csi_node("pmem");
		} else {
			answer_csi_node(NULL);
			answer_node("pmem");
		}
		ck_assert_uint_eq(fake_kube_count(client), 0);
		step();
	}
}
END_TEST

START_TEST(a_node_that_does_not_exist_has_no_driver)
{
	put_claim("c", "fast", "n1", NULL);
	driverless_claims_tick(driverless_claims, now);
	for (unsigned i = 0; i < 5; i++) {
		fake_kube_answer(client, 404, NULL);
		fake_kube_answer(client, 404, NULL);
		step();
	}
	assert_moves("/api/v1/namespaces/ns/persistentvolumeclaims/c");
}
END_TEST

START_TEST(nothing_is_moved_where_nodes_cannot_be_read)
{
	unsigned asked = 0;

	put_claim("c", "fast", "n1", NULL);
	driverless_claims_tick(driverless_claims, now);
	for (unsigned i = 0; i < 20; i++) {
		if (fake_kube_count(client) > 0) {
			ck_assert_str_eq(fake_kube_next(client)->method, "GET");
			fake_kube_answer(client, 403, NULL);
			asked++;
		}
		ck_assert_uint_eq(fake_kube_count(client), 0);
		step();
	}
	ck_assert_uint_ge(asked, 5);
}
END_TEST

START_TEST(without_a_selector_no_label_keeps_claims)
{
	node_terms_done(&selector);
	put_claim("c", "fast", "n1", NULL);
	wait_without_driver();
	assert_moves("/api/v1/namespaces/ns/persistentvolumeclaims/c");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {what_cannot_be_a_node_is_not_asked_for,
		a_claim_on_a_node_without_driver_is_given_back,
		a_claim_that_has_changed_meanwhile_is_tried_again,
		a_claim_that_cannot_be_changed_is_tried_again_later, other_claims_are_not_looked_at,
		a_registered_node_is_not_asked_about, a_node_with_driver_or_labels_keeps_its_claims,
		a_node_that_does_not_exist_has_no_driver, nothing_is_moved_where_nodes_cannot_be_read,
		without_a_selector_no_label_keeps_claims};
	Suite *suite = suite_create("driverless_claims");
	TCase *tcase = tcase_create("driverless_claims");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/claim_release.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"
#include "volume/id.h"

#define LOOK_NS (30 * NS_PER_S)
#define PV      "/api/v1/persistentvolumes/pv-c"
#define NODE    "/api/v1/nodes/n1"
#define CLAIM   "/api/v1/namespaces/ns/persistentvolumeclaims/c"
#define TAINTED                                                                                              \
	"{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/out-of-service\"}]}}"
#define IN_ORDER "{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"taints\":[{\"key\":\"other\"}]}}"

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *claims;
static struct claim_release *duty;
static bool node_exists;
static uint64_t now;
static unsigned n_events;
static char event[1024];

static bool cluster_has(void *self, const char *node_id)
{
	(void)self;
	ck_assert_str_eq(node_id, "n1");
	return node_exists;
}

static struct cluster_nodes cluster = {.has = cluster_has};

static void tell(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t at)
{
	(void)user;
	(void)at;
	n_events++;
	snprintf(event, sizeof(event), "%s %s: %s", claim->name, reason, message);
}

static void put_claim(const char *uid, const char *annotation)
{
	CLEANUP(free_charp)
	char *json = x_asprintf(
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":"
		"\"5\",\"annotations\":{%s%s%s}},\"spec\":{\"volumeName\":\"pv-c\"}}",
		uid, annotation ? "\"" CLAIM_RELEASE_ANNOTATION "\":\"" : "", annotation ? annotation : "",
		annotation ? "\"" : "");

	fake_informer_put(claims, json);
}

static void set_up(void)
{
	static const struct informer_events none = {0};

	now = 1000 * NS_PER_S;
	n_events = 0;
	node_exists = false;
	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	claims = informer_new(client, &kube_kind_claims, &none, NULL);
	fake_informer_sync(claims);
	const struct claim_release_config config = {.client = client,
		.driver_name = "pmem",
		.nodes = nodes,
		.cluster = &cluster,
		.claims = claims,
		.tell = tell};
	duty = claim_release_new(&config);
	put_claim("u", "10m");
}

static void tear_down(void)
{
	claim_release_free(duty);
	informer_free(claims);
	node_table_free(nodes);
	kube_client_free(client);
}

static void pass(uint64_t ns)
{
	now += ns;
	claim_release_tick(duty, now);
}

static void expect(const char *method, const char *path)
{
	ck_assert_ptr_nonnull(fake_kube_next(client));
	ck_assert_str_eq(fake_kube_next(client)->method, method);
	ck_assert_str_eq(fake_kube_next(client)->path, path);
}

static void answer(const char *method, const char *path, unsigned status, const char *body)
{
	expect(method, path);
	fake_kube_answer(client, status, body);
}

static void answer_volume_of(const char *driver, const char *uid, const char *node, const char *values)
{
	char handle[VOLUME_ID_MAX + 1];
	CLEANUP(free_charp) char *json = NULL;

	volume_id_mint("pvc-c", node, handle);
	json = x_asprintf(
		"{\"metadata\":{\"name\":\"pv-c\",\"resourceVersion\":\"9\"},\"spec\":{\"csi\":{\"driver\":\"%s\","
		"\"volumeHandle\":\"%s\"},\"claimRef\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"%s\"},"
		"\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"some/key\","
		"\"operator\":\"In\",\"values\":[%s]}]}]}}}}",
		driver, handle, uid, values);
	answer("GET", PV, 200, json);
}

static void answer_volume(void)
{
	answer_volume_of("pmem", "u", "n1", "\"n1\"");
}

/* A look, in which the node is out of service. */
static void look(unsigned status, const char *node)
{
	pass(LOOK_NS);
	answer_volume();
	answer("GET", NODE, status, node);
}

static void wait_out_of_service(void)
{
	for (unsigned i = 0; i <= 19; i++) {
		look(200, TAINTED);
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
	look(200, TAINTED);
}

static char *pod(const char *name, const char *claim, const char *more)
{
	return x_asprintf(
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid-%s\"%s},\"spec\":{"
		"\"nodeName\":\"n1\",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
		"\"%s\"}}]}}",
		name, name, more, claim);
}

static void answer_pods(void)
{
	CLEANUP(free_charp) char *with = pod("with", "c", "");
	CLEANUP(free_charp) char *other = pod("other", "d", "");
	CLEANUP(free_charp)
	char *ending = pod("ending", "c", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
	CLEANUP(free_charp)
	char *all = x_asprintf(
		"{\"metadata\":{\"resourceVersion\":\"3\"},\"items\":[%s,%s,%s]}", with, other, ending);

	answer("GET",
		"/api/v1/namespaces/ns/pods?fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&limit=200",
		200, all);
}

START_TEST(a_claim_is_released_when_its_node_has_been_out_of_service_for_long)
{
	wait_out_of_service();
	expect("PATCH", PV);
	ck_assert_str_eq(fake_kube_next(client)->content_type, "application/merge-patch+json");
	ck_assert_str_eq(fake_kube_next(client)->body, "{\"metadata\":{\"resourceVersion\":\"9\"},\"spec\":{"
						       "\"persistentVolumeReclaimPolicy\":\"Retain\"}}");
	ck_assert_uint_eq(n_events, 0);
	fake_kube_answer(client, 200, "{}");
	ck_assert_uint_eq(n_events, 1);
	ck_assert_ptr_nonnull(strstr(event, "c ClaimReleased: node n1 is out of service"));
	ck_assert_ptr_nonnull(strstr(event, "PersistentVolume pv-c"));
	answer_pods();
	expect("DELETE", "/api/v1/namespaces/ns/pods/with");
	ck_assert_str_eq(fake_kube_next(client)->body, "{\"preconditions\":{\"uid\":\"uid-with\"}}");
	fake_kube_answer(client, 200, "{}");
	expect("DELETE", CLAIM);
	ck_assert_str_eq(fake_kube_next(client)->body,
		"{\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"5\"}}");
	fake_kube_answer(client, 200, "{}");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_node_that_was_removed_is_out_of_service_too)
{
	for (unsigned i = 0; i <= 20; i++)
		look(404, NULL);
	expect("PATCH", PV);
	fake_kube_answer(client, 409, NULL);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

/* Its ID is not its name. */
START_TEST(a_node_of_another_name_is_not_taken_for_removed)
{
	node_exists = true;
	for (unsigned i = 0; i < 40; i++)
		look(404, NULL);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_node_that_is_in_service_for_a_moment_begins_the_time_again)
{
	for (unsigned i = 0; i < 19; i++)
		look(200, TAINTED);
	look(200, IN_ORDER);
	wait_out_of_service();
	expect("PATCH", PV);
	fake_kube_answer(client, 409, NULL);
}
END_TEST

/* It may be running pods, whatever its taint says. */
START_TEST(a_node_that_is_registered_is_in_service)
{
	for (unsigned i = 0; i < 19; i++)
		look(200, TAINTED);
	node_table_put(nodes, report_new("n1"), now);
	for (unsigned i = 0; i < 40; i++) {
		pass(LOOK_NS);
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
	node_table_end(nodes, "n1");
	wait_out_of_service();
	expect("PATCH", PV);
	fake_kube_answer(client, 409, NULL);
}
END_TEST

START_TEST(a_node_that_registers_while_a_claim_is_released_keeps_it)
{
	wait_out_of_service();
	answer("PATCH", PV, 200, "{}");
	node_table_put(nodes, report_new("n1"), now);
	answer_pods();
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(a_claim_whose_annotation_is_removed_meanwhile_is_kept)
{
	wait_out_of_service();
	answer("PATCH", PV, 200, "{}");
	answer_pods();
	put_claim("u", NULL);
	answer("DELETE", "/api/v1/namespaces/ns/pods/with", 200, "{}");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

/* The node may have been in service while the API server was not read. */
START_TEST(a_gap_between_looks_begins_the_time_again)
{
	for (unsigned i = 0; i < 19; i++)
		look(200, TAINTED);
	for (unsigned i = 0; i < 4; i++) {
		pass(600 * NS_PER_S);
		answer("GET", PV, 503, NULL);
	}
	pass(600 * NS_PER_S);
	answer_volume();
	answer("GET", NODE, 200, TAINTED);
	for (unsigned i = 0; i < 19; i++) {
		look(200, TAINTED);
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
	look(200, TAINTED);
	expect("PATCH", PV);
	fake_kube_answer(client, 409, NULL);
}
END_TEST

START_TEST(failed_reads_decide_nothing)
{
	for (unsigned i = 0; i < 40; i++) {
		pass(600 * NS_PER_S);
		if (i % 2 == 0) {
			answer("GET", PV, 500, NULL);
		} else {
			answer_volume();
			answer("GET", NODE, 503, NULL);
		}
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
	ck_assert_uint_eq(n_events, 0);
}
END_TEST

/* The last but one is a PersistentVolume that was made by hand, by the name of a host that is not its ID. */
static const struct {
	const char *driver;
	const char *uid;
	const char *node; /* that the handle names */
	const char *values;
} others[] = {{"other", "u", "n1", "\"n1\""}, {"pmem", "v", "n1", "\"n1\""},
	{"pmem", "u", "n1", "\"n1\",\"n2\""}, {"pmem", "u", "n1", ""}, {"pmem", "u", "n1", "\"host1\""},
	{"pmem", "u", NULL, "\"n1\""}, {"pmem", "u", "../../secrets", "\"../../secrets\""}};

START_TEST(what_is_not_the_volume_of_the_claim_on_one_node_is_not_released)
{
	pass(LOOK_NS);
	answer_volume_of(others[_i].driver, others[_i].uid, others[_i].node, others[_i].values);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	pass(LOOK_NS);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(without_the_annotation_nothing_is_looked_at)
{
	put_claim("u", NULL);
	for (unsigned i = 0; i < 3; i++)
		pass(LOOK_NS);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(an_annotation_that_is_no_duration_is_reported_once)
{
	put_claim("u", "soon");
	for (unsigned i = 0; i < 40; i++)
		look(200, TAINTED);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert_uint_eq(n_events, 1);
	ck_assert_ptr_nonnull(strstr(event, "c ReleaseAfterInvalid: annotation " CLAIM_RELEASE_ANNOTATION));
	ck_assert_ptr_nonnull(strstr(event, "soon"));
}
END_TEST

/* The volume of a claim that was deleted and made again is another one. */
START_TEST(another_claim_of_that_name_begins_the_time_again)
{
	for (unsigned i = 0; i < 20; i++)
		look(200, TAINTED);
	put_claim("v", "10m");
	for (unsigned i = 0; i < 3; i++) {
		pass(LOOK_NS);
		answer_volume_of("pmem", "v", "n1", "\"n1\"");
		answer("GET", NODE, 200, TAINTED);
		ck_assert_uint_eq(fake_kube_count(client), 0);
	}
}
END_TEST

START_TEST(a_claim_that_goes_while_it_is_released_is_left_alone)
{
	wait_out_of_service();
	fake_informer_remove(claims, "ns/c");
	pass(0);
	answer("PATCH", PV, 200, "{}");
	ck_assert_uint_eq(fake_kube_count(client), 0);
	ck_assert_uint_eq(n_events, 0);
}
END_TEST

/* The second attempt repeats the steps of the first one, which are idempotent. */
START_TEST(a_release_that_fails_half_way_is_continued)
{
	wait_out_of_service();
	answer("PATCH", PV, 200, "{}");
	answer_pods();
	answer("DELETE", "/api/v1/namespaces/ns/pods/with", 500, NULL);
	ck_assert_uint_eq(fake_kube_count(client), 0);
	pass(2 * LOOK_NS);
	answer_volume();
	answer("GET", NODE, 200, TAINTED);
	answer("PATCH", PV, 200, "{}");
	answer_pods();
	answer("DELETE", "/api/v1/namespaces/ns/pods/with", 404, NULL);
	answer("DELETE", CLAIM, 200, "{}");
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

START_TEST(requests_that_run_end_with_the_duty)
{
	pass(LOOK_NS);
	expect("GET", PV);
	claim_release_free(TAKE_PTR(duty));
	ck_assert_uint_eq(fake_kube_count(client), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_claim_is_released_when_its_node_has_been_out_of_service_for_long,
		a_node_that_was_removed_is_out_of_service_too,
		a_node_of_another_name_is_not_taken_for_removed,
		a_node_that_is_in_service_for_a_moment_begins_the_time_again,
		a_node_that_is_registered_is_in_service,
		a_node_that_registers_while_a_claim_is_released_keeps_it,
		a_claim_whose_annotation_is_removed_meanwhile_is_kept,
		a_gap_between_looks_begins_the_time_again, failed_reads_decide_nothing,
		without_the_annotation_nothing_is_looked_at,
		an_annotation_that_is_no_duration_is_reported_once,
		another_claim_of_that_name_begins_the_time_again,
		a_claim_that_goes_while_it_is_released_is_left_alone,
		a_release_that_fails_half_way_is_continued, requests_that_run_end_with_the_duty};
	Suite *suite = suite_create("claim_release");
	TCase *tcase = tcase_create("claim_release");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, what_is_not_the_volume_of_the_claim_on_one_node_is_not_released, 0,
		(int)ARRAY_SIZE(others));
	return unit_runner_finish(srunner_create(suite));
}

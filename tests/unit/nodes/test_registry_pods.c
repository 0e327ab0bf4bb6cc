/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of DescribePod: which nodes get an answer, and with which facts about the pod. */
#include "base/mem.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/net/tls/certs.h"
#include "unit/nodes/registry_rig.h"

#define A    "tcp://192.0.2.1:10001"
#define GOOD "Bearer good.token.a"
#define UID  "11111111-2222-3333-4444-555555555555"

static struct loop *loop;
static struct kube_client *kube;
static struct cluster_nodes *cluster;
static struct pod_reader *pods;
static struct node_tokens *tokens;
static struct rig rig;
static struct rig_tls tls;

/* The answer of the last call. */
static struct {
	bool done;
	enum err_code code; /* 0: success */
	char *msg;
	char *runtime_class;
	char *policy;
	bool has_fs_group;
	uint32_t fs_group;
} answer;

static void ignore_change(void *user, const char *node_id)
{
	(void)user;
	(void)node_id;
}

static void put_node(const char *name, const char *id)
{
	CLEANUP(free_charp) char *json = kube_json_node(name, "pmem/node", id);

	fake_informer_put(fake_kube_informer(kube, "nodes"), json);
}

/* @leaf: certificate of the node's driver; NULL: without TLS */
static void open_all(const char *leaf)
{
	struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	kube = fake_kube_new(loop);
	cluster = cluster_nodes_new(kube, "pmem", ignore_change, NULL);
	put_node("machine-a", "a");
	put_node("machine-b", "b");
	fake_informer_sync(fake_kube_informer(kube, "nodes"));
	pods = pod_reader_new(kube, cluster);
	tokens = node_tokens_new(&(struct node_tokens_config){
		.client = kube, .audience = "pmem/registry", .user_name = "system:serviceaccount:ns:node"});
	tls = (struct rig_tls){.proof = REGISTRY_PROOF_TOKEN, .tokens = tokens, .pods = pods};
	if (leaf) {
		tls.handshakes = handshakes_new(loop);
		tls.server = certs_context(&(struct certs_choice){
			.role = TLS_SERVER, .ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"});
		tls.client = certs_context(
			&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = leaf, .alpn = "h2"});
	}
	rig_open_tls(&rig, loop, &tls);
}

static void forget(void)
{
	free(answer.msg);
	free(answer.runtime_class);
	free(answer.policy);
	memset(&answer, 0, sizeof(answer));
}

static void close_all(void)
{
	pod_reader_free(pods);
	rig_close(&rig);
	node_tokens_free(tokens);
	cluster_nodes_free(cluster);
	kube_client_free(kube);
	handshakes_free(tls.handshakes);
	tls_context_unref(tls.server);
	tls_context_unref(tls.client);
	loop_free(loop);
	forget();
}

static void on_answer(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	const Registry__V0__DescribePodReply *m = (const Registry__V0__DescribePodReply *)reply;

	(void)user;
	answer.done = true;
	answer.code = error ? error->code : 0;
	answer.msg = x_strdup(error ? error->msg : "");
	if (error)
		return;
	answer.runtime_class = x_strdup(m->runtime_class);
	answer.policy = x_strdup(m->fs_group_change_policy);
	answer.has_fs_group = m->has_fs_group;
	answer.fs_group = m->fs_group;
}

static void ask_as(const char *node_id, const char *namespace, const char *name, const char *uid)
{
	Registry__V0__DescribePodRequest m;
	CLEANUP(free_charp) char *asking = x_strdup(node_id);
	CLEANUP(free_charp) char *space = x_strdup(namespace);
	CLEANUP(free_charp) char *pod = x_strdup(name);
	CLEANUP(free_charp) char *id = x_strdup(uid);

	registry__v0__describe_pod_request__init(&m);
	m.node_id = asking;
	m.endpoint = (char[]){A};
	m.instance = (char[]){"1"};
	m.namespace_ = space;
	m.name = pod;
	m.uid = id;
	forget();
	grpc_client_call(rig.client, "/registry.v0.Registry/DescribePod", &m.base,
		&registry__v0__describe_pod_reply__descriptor, 0, on_answer, NULL);
}

static void until_asked(size_t n)
{
	while (fake_kube_count(kube) < n)
		rig_rounds(&rig);
	ck_assert_uint_eq(fake_kube_count(kube), n);
}

/* The API server has been asked, and answers. */
static void serve(unsigned status, const char *body)
{
	until_asked(1);
	fake_kube_answer(kube, status, body);
}

static void serve_pod(const char *uid, const char *spec)
{
	CLEANUP(free_charp)
	char *json = x_asprintf(
		"{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"1\"},"
		"\"spec\":{%s}}",
		uid, spec);

	serve(200, json);
}

static void until_answered(enum err_code code, const char *text)
{
	while (!answer.done)
		rig_rounds(&rig);
	ck_assert_msg(answer.code == code, "%d: %s", (int)answer.code, answer.msg);
	ck_assert_msg(strstr(answer.msg, text) != NULL, "\"%s\" lacks \"%s\"", answer.msg, text);
}

START_TEST(a_node_learns_how_its_pod_is_run)
{
	open_all(NULL);
	ask_as("a", "ns", "db", UID);
	until_asked(1);
	ck_assert_str_eq(fake_kube_next(kube)->method, "GET");
	ck_assert_str_eq(fake_kube_next(kube)->path, "/api/v1/namespaces/ns/pods/db");
	serve_pod(UID, "\"nodeName\":\"machine-a\",\"runtimeClassName\":\"kata-qemu\",\"securityContext\":{"
		       "\"fsGroup\":2000,\"fsGroupChangePolicy\":\"OnRootMismatch\"}");
	until_answered(0, "");
	ck_assert_str_eq(answer.runtime_class, "kata-qemu");
	ck_assert_str_eq(answer.policy, "OnRootMismatch");
	ck_assert(answer.has_fs_group && answer.fs_group == 2000);
	ask_as("a", "ns", "db", UID);
	serve_pod(UID, "\"nodeName\":\"machine-a\"");
	until_answered(0, "");
	ck_assert_str_eq(answer.runtime_class, "");
	ck_assert_str_eq(answer.policy, "");
	ck_assert(!answer.has_fs_group);
	close_all();
}
END_TEST

START_TEST(a_pod_of_another_node_is_not_described)
{
	open_all(NULL);
	ask_as("a", "ns", "db", UID);
	serve_pod(UID, "\"nodeName\":\"machine-b\",\"runtimeClassName\":\"kata\"");
	until_answered(ERR_PERMISSION, "pod ns/db does not run on node \"a\"");
	/* the ID counts, not the name */
	ask_as("machine-a", "ns", "db", UID);
	serve_pod(UID, "\"nodeName\":\"machine-a\"");
	until_answered(ERR_PERMISSION, "");
	ask_as("a", "ns", "db", UID);
	serve_pod(UID, "\"runtimeClassName\":\"kata\"");
	until_answered(ERR_PERMISSION, "");
	/* nor that it is another one than asked for */
	ask_as("a", "ns", "db", "another");
	serve_pod(UID, "\"nodeName\":\"machine-b\"");
	until_answered(ERR_PERMISSION, "");
	close_all();
}
END_TEST

START_TEST(a_pod_that_is_gone_is_not_found)
{
	open_all(NULL);
	ask_as("a", "ns", "db", UID);
	serve_pod("99999999-2222-3333-4444-555555555555", "\"nodeName\":\"machine-a\"");
	until_answered(ERR_NOT_FOUND, "is its successor");
	ask_as("a", "ns", "db", UID);
	serve(404, "");
	until_answered(ERR_NOT_FOUND, "404");
	close_all();
}
END_TEST

START_TEST(without_the_api_server_there_is_no_answer_yet)
{
	static const unsigned statuses[] = {0, 403, 401, 429, 500};

	open_all(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		ask_as("a", "ns", "db", UID);
		serve(statuses[i], "");
		until_answered(ERR_UNAVAILABLE, "kube");
	}
	ask_as("a", "ns", "db", UID);
	serve(200, "{\"metadata\":[");
	until_answered(ERR_UNAVAILABLE, "pods");
	ask_as("a", "ns", "db", UID);
	serve_pod(UID, "\"nodeName\":\"machine-a\",\"securityContext\":{\"fsGroup\":-1}");
	until_answered(ERR_UNAVAILABLE, "fsGroup");
	close_all();
}
END_TEST

START_TEST(fields_are_checked_before_anything_is_asked)
{
	char longest[400] = "";

	memset(longest, 'x', sizeof(longest) - 1);
	open_all(NULL);
	ask_as("", "ns", "db", UID);
	until_answered(ERR_INVALID_ARGUMENT, "node_id");
	ask_as(longest, "ns", "db", UID);
	until_answered(ERR_INVALID_ARGUMENT, "node_id");
	ask_as("a", "../nodes", "db", UID);
	until_answered(ERR_INVALID_ARGUMENT, "namespace");
	ask_as("a", "ns", "db/log", UID);
	until_answered(ERR_INVALID_ARGUMENT, "name");
	ask_as("a", "ns", longest, UID);
	until_answered(ERR_INVALID_ARGUMENT, "name");
	ask_as("a", "ns", "db", "");
	until_answered(ERR_INVALID_ARGUMENT, "uid");
	ask_as("a", "ns", "db", longest);
	until_answered(ERR_INVALID_ARGUMENT, "uid");
	ck_assert_uint_eq(fake_kube_count(kube), 0);
	close_all();
}
END_TEST

START_TEST(the_certificate_of_another_node_asks_about_none_of_its_pods)
{
	open_all("own/node-b");
	ask_as("a", "ns", "db", UID);
	until_answered(ERR_PERMISSION, "not for node \"a\"");
	ck_assert_uint_eq(fake_kube_count(kube), 0);
	ask_as("b", "ns", "db", UID);
	serve_pod(UID, "\"nodeName\":\"machine-b\"");
	until_answered(0, "");
	close_all();
}
END_TEST

START_TEST(the_certificate_of_all_nodes_needs_a_token)
{
	open_all("own/pmem-node-controller");
	ask_as("a", "ns", "db", UID);
	until_answered(ERR_UNAUTHENTICATED, "-registryTokenFile");
	grpc_client_authorize(rig.client, GOOD);
	ask_as("a", "ns", "db", UID);
	serve(201, "{\"status\":{\"authenticated\":true,\"audiences\":[\"pmem/registry\"],\"user\":{"
		   "\"username\":\"system:serviceaccount:ns:node\",\"extra\":{"
		   "\"authentication.kubernetes.io/node-name\":[\"a\"]}}}}");
	serve_pod(UID, "\"nodeName\":\"machine-a\"");
	until_answered(0, "");
	ask_as("b", "ns", "db", UID);
	until_answered(ERR_PERMISSION, "");
	ck_assert_uint_eq(fake_kube_count(kube), 0);
	close_all();
}
END_TEST

START_TEST(a_controller_that_ends_answers_what_is_open)
{
	open_all(NULL);
	ask_as("a", "ns", "db", UID);
	until_asked(1);
	pod_reader_free(TAKE_PTR(pods));
	until_answered(ERR_UNAVAILABLE, "another replica");
	close_all();
}
END_TEST

static size_t n_refused;

static void count_refusal(void *user, const struct kube_pod_runtime *pod, const struct error *error)
{
	(void)user;
	ck_assert_ptr_null(pod);
	if (strstr(error->msg, "limit"))
		n_refused++;
}

START_TEST(pods_that_are_asked_about_are_limited)
{
	static const char *const nodes[] = {"a", "b", "c", "d", "e"};
	struct pod_query query = {.namespace = "ns", .name = "db", .uid = UID};

	open_all(NULL);
	n_refused = 0;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		query.node_id = nodes[i];
		for (int k = 0; k < PODS_ASKING_NODE_MAX + 1; k++)
			pod_reader_ask(pods, &query, count_refusal, NULL);
		unsigned n = fake_kube_count(kube);
		ck_assert_uint_eq(n, i < 4 ? (i + 1) * PODS_ASKING_NODE_MAX : PODS_ASKING_MAX);
	}
	ck_assert_uint_eq(n_refused, 4 + PODS_ASKING_NODE_MAX + 1);
	n_refused = 0;
	fake_kube_answer(kube, 404, "");
	pod_reader_ask(pods, &query, count_refusal, NULL);
	ck_assert_uint_eq(n_refused, 0);
	close_all();
}
END_TEST

CERTS_MAIN("nodes/registry_pods", a_node_learns_how_its_pod_is_run, a_pod_of_another_node_is_not_described,
	a_pod_that_is_gone_is_not_found, without_the_api_server_there_is_no_answer_yet,
	fields_are_checked_before_anything_is_asked,
	the_certificate_of_another_node_asks_about_none_of_its_pods,
	the_certificate_of_all_nodes_needs_a_token, a_controller_that_ends_answers_what_is_open,
	pods_that_are_asked_about_are_limited)

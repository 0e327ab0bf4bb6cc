/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of nodes that prove their identity by tokens, over TLS. */
#include "base/mem.h"
#include "unit/kube/fake_kube.h"
#include "unit/net/tls/certs.h"
#include "unit/nodes/registry_rig.h"

#define A    "tcp://192.0.2.1:10001"
#define B    "tcp://192.0.2.2:10001"
#define GOOD "Bearer good.token.a"

static struct loop *loop;
static struct kube_client *kube;
static struct node_tokens *tokens;
static struct rig rig;
static struct rig_tls tls;

static void open_all(void)
{
	struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	kube = fake_kube_new(loop);
	tokens = node_tokens_new(&(struct node_tokens_config){
		.client = kube, .audience = "pmem/registry", .user_name = "system:serviceaccount:ns:node"});
	tls = (struct rig_tls){.handshakes = handshakes_new(loop),
		.proof = REGISTRY_PROOF_TOKEN,
		.tokens = tokens,
		.server = certs_context(&(struct certs_choice){
			.role = TLS_SERVER, .ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"}),
		.client = certs_context(&(struct certs_choice){
			.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"})};
	rig_open_tls(&rig, loop, &tls);
}

static void close_all(void)
{
	rig_close(&rig);
	node_tokens_free(tokens);
	kube_client_free(kube);
	handshakes_free(tls.handshakes);
	tls_context_unref(tls.server);
	tls_context_unref(tls.client);
	loop_free(loop);
}

static void until_reviewed(size_t n)
{
	while (fake_kube_count(kube) < n)
		rig_rounds(&rig);
	ck_assert_uint_eq(fake_kube_count(kube), n);
}

static void answer_node(const char *node)
{
	CLEANUP(free_charp)
	char *json =
		x_asprintf("{\"status\":{\"authenticated\":true,\"audiences\":[\"pmem/registry\"],\"user\":{"
			   "\"username\":\"system:serviceaccount:ns:node\",\"extra\":{"
			   "\"authentication.kubernetes.io/node-name\":[\"%s\"]}}}}",
			node);

	fake_kube_answer(kube, 201, json);
}

START_TEST(a_node_registers_by_its_token)
{
	struct rig_call *call;

	open_all();
	grpc_client_authorize(rig.client, GOOD);
	call = rig_register(&rig, "a", A, "1");
	until_reviewed(1);
	ck_assert_ptr_nonnull(strstr(fake_kube_next(kube)->body, "\"token\":\"good.token.a\""));
	ck_assert(!rig_is_live(&rig, "a"));
	answer_node("a");
	rig_done(&rig, call, 0, "");
	ck_assert(rig_is_live(&rig, "a"));
	/* its certificate, which the controller sees when it calls the node, is still that of any node */
	ck_assert(!node_table_get(rig.table, "a")->report.bound);
	/* heartbeat and end without another question */
	rig_done(&rig, rig_register(&rig, "a", A, "1"), 0, "");
	rig_done(&rig, rig_unregister(&rig, "a", A, "1"), 0, "");
	ck_assert(!rig_is_live(&rig, "a"));
	ck_assert_uint_eq(fake_kube_count(kube), 0);
	close_all();
}
END_TEST

START_TEST(a_role_alone_speaks_for_nobody)
{
	open_all();
	rig_done(&rig, rig_register(&rig, "a", A, "1"), ERR_UNAUTHENTICATED, "-registryTokenFile");
	rig_done(&rig, rig_unregister(&rig, "a", A, "1"), ERR_UNAUTHENTICATED, "-registryTokenFile");
	ck_assert_ptr_null(node_table_get(rig.table, "a"));
	close_all();
}
END_TEST

START_TEST(the_token_of_another_node_ends_no_lease)
{
	struct rig_call *call;

	open_all();
	grpc_client_authorize(rig.client, GOOD);
	call = rig_register(&rig, "a", A, "1");
	until_reviewed(1);
	answer_node("a");
	rig_done(&rig, call, 0, "");
	grpc_client_authorize(rig.client, "Bearer token.of.b");
	call = rig_unregister(&rig, "a", A, "1");
	until_reviewed(1);
	answer_node("b");
	rig_done(&rig, call, ERR_PERMISSION, "belongs to node \"b\"");
	rig_done(&rig, rig_register(&rig, "a", "tcp://192.0.2.66:1", "2"), ERR_PERMISSION,
		"belongs to node \"b\"");
	ck_assert(rig_is_live(&rig, "a"));
	ck_assert_str_eq(node_table_get(rig.table, "a")->report.endpoint, A);
	close_all();
}
END_TEST

START_TEST(a_driver_that_ends_while_its_token_is_checked_is_not_registered)
{
	struct rig_call *first;
	struct rig_call *second;

	open_all();
	grpc_client_authorize(rig.client, GOOD);
	first = rig_register(&rig, "a", A, "1");
	until_reviewed(1);
	second = rig_unregister(&rig, "a", A, "1");
	rig_rounds(&rig);
	ck_assert_uint_eq(fake_kube_count(kube), 1);
	answer_node("a");
	rig_done(&rig, first, 0, "");
	rig_done(&rig, second, 0, "");
	ck_assert(!rig_is_live(&rig, "a"));
	close_all();
}
END_TEST

START_TEST(a_caller_that_has_gone_while_its_token_is_checked_is_not_registered)
{
	struct error *err = NULL;
	struct rig_call *call;

	open_all();
	grpc_client_authorize(rig.client, GOOD);
	call = rig_register(&rig, "a", A, "1");
	until_reviewed(1);
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://127.0.0.1:%u", grpc_server_port(rig.server));
	grpc_client_free(rig.client);
	rig_done(&rig, call, ERR_CANCELLED, "");
	ASSERT_OK(grpc_client_new(&(struct h2_channel_config){.loop = loop,
					  .endpoint = endpoint,
					  .tls = tls.client,
					  .tls_name = "pmem-registry",
					  .handshakes = tls.handshakes},
		&rig.client, &err));
	/* the server notices the end before it answers this */
	rig_done(&rig, rig_register(&rig, "b", A, "1"), ERR_UNAUTHENTICATED, "");
	answer_node("a");
	rig_rounds(&rig);
	ck_assert_ptr_null(node_table_get(rig.table, "a"));
	close_all();
}
END_TEST

static void register_reviewed(const char *token, const char *id, const char *endpoint)
{
	struct rig_call *call;

	grpc_client_authorize(rig.client, token);
	call = rig_register(&rig, id, endpoint, "1");
	until_reviewed(1);
	answer_node(id);
	rig_done(&rig, call, 0, "");
}

START_TEST(a_token_takes_no_endpoint_of_a_live_node)
{
	open_all();
	register_reviewed(GOOD, "a", A);
	rig_done(&rig, rig_register(&rig, "a", B, "2"), ERR_ABORTED, "has a lease at " A);
	grpc_client_authorize(rig.client, "Bearer good.token.b");
	struct rig_call *call = rig_register(&rig, "b", A, "1");
	until_reviewed(1);
	answer_node("b");
	rig_done(&rig, call, ERR_ABORTED,
		"node \"a\" has a lease at " A ": node \"b\", which has registered from another address");
	ck_assert_str_eq(node_table_get(rig.table, "a")->report.endpoint, A);
	ck_assert_ptr_null(node_table_get(rig.table, "b"));
	close_all();
}
END_TEST

START_TEST(a_new_node_waits_while_the_api_server_is_silent)
{
	struct rig_call *call;

	open_all();
	grpc_client_authorize(rig.client, GOOD);
	call = rig_register(&rig, "a", A, "1");
	until_reviewed(1);
	fake_kube_answer(kube, 503, NULL);
	rig_done(&rig, call, ERR_UNAVAILABLE, "cannot be checked");
	ck_assert_ptr_null(node_table_get(rig.table, "a"));
	close_all();
}
END_TEST

CERTS_MAIN("registry tokens", a_node_registers_by_its_token, a_role_alone_speaks_for_nobody,
	the_token_of_another_node_ends_no_lease,
	a_driver_that_ends_while_its_token_is_checked_is_not_registered,
	a_caller_that_has_gone_while_its_token_is_checked_is_not_registered,
	a_token_takes_no_endpoint_of_a_live_node, a_new_node_waits_while_the_api_server_is_silent)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: what peers ask it, one step after the other.
 *
 * The first byte's lowest bit is TLS, and the next one the mode in which nodes need tokens. A step is a byte
 * that says what happens, and for a call which peer makes it with which token, two bytes of length, and the
 * message. After each step the table must be consistent, and a lease that was taken with a node's own
 * certificate must not have gone to another one without a token; at the end each call was answered once. As
 * long as the API server says what is true, a token serves its own node only, and so does what is said of
 * pods.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "fuzz/table_check.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/limits.h"
#include "nodes/registry_private.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "volume/id.h"

#define STEPS_MAX 24

#define BOUND_NODE "a"
#define AUDIENCE   "pmem/registry"
#define ACCOUNT    "system:serviceaccount:ns:node"

/* A step's byte: the lowest bits what happens, the next two the caller, then whether it has gone, and its
 * token. */
enum action { REGISTER, UNREGISTER, TICK, CREATED, DELETED, DESCRIBE, REVIEW, N_ACTIONS };
#define PEER_SHIFT  3
#define GONE        0x20
#define TOKEN_SHIFT 6

/* The token of a node is called after it. */
static const char *const tokens[] = {NULL, "Bearer token.of.a", "Bearer token.of.b", "Bearer forged"};
#define TOKEN_PREFIX "token.of."

static const char *const peers[][3] = {
	{"pmem-node-controller"}, {"x", "node-" BOUND_NODE}, {"pmem-scheduler"}, {NULL}};
#define PEER_BOUND 1

struct desk {
	struct loop *loop;
	struct node_table *table;
	struct registry *registry;
	struct cluster_nodes cluster;
	struct kube_client *kube;
	struct node_tokens *tokens;
	struct pod_reader *pods;
	struct call *calls;
	uint64_t now_ns;
	bool has_tls;
	bool needs_tokens;
	bool api_lies; /* the API server has said something else than what is true */
	bool is_bound; /* the live lease of BOUND_NODE */
};

struct call {
	struct grpc_call grpc;
	struct call *next;
	struct desk *desk;
	enum action action;
	const void *request;
	ProtobufCMessage *reply;
	bool bound;
	bool has_lease; /* its node had one with this endpoint when it began */
	bool gone;
	bool finished;
};

static struct call *call_of(const struct grpc_call *grpc)
{
	return (struct call *)(void *)((uintptr_t)grpc - offsetof(struct call, grpc));
}

/* A client that has its answer can be sure of this. */
static void check_registered(const struct call *c)
{
	const Registry__V0__RegisterControllerRequest *m = c->request;
	const struct node *node = node_table_get(c->desk->table, m->node_id);

	assert(node && node->live);
	assert(str_eq(node->report.endpoint, m->endpoint));
	assert(node->report.bound == c->bound);
}

/* In token mode, the certificate that all nodes share says nothing. */
static bool needs_token(const struct call *c)
{
	return c->desk->needs_tokens && c->desk->has_tls && !c->bound;
}

/* The node that @c names. @ret_endpoint: may be NULL */
static const char *node_of(const struct call *c, const char **ret_endpoint)
{
	const Registry__V0__RegisterControllerRequest *registering = c->request;
	const Registry__V0__UnregisterControllerRequest *leaving = c->request;
	const Registry__V0__DescribePodRequest *asking = c->request;
	const char *node_id = c->action == REGISTER     ? registering->node_id
			      : c->action == UNREGISTER ? leaving->node_id
							: asking->node_id;

	if (ret_endpoint)
		*ret_endpoint = c->action == REGISTER     ? registering->endpoint
				: c->action == UNREGISTER ? leaving->endpoint
							  : asking->endpoint;
	return node_id;
}

/* A driver that has the lease keeps it while the API server is silent. */
static void note_lease(struct call *c)
{
	const char *endpoint;
	const struct node *node = node_table_get_live(c->desk->table, node_of(c, &endpoint));

	c->has_lease = node && str_eq(node->report.endpoint, endpoint);
}

static void check_speaker(const struct call *c)
{
	const char *token = c->grpc.authorization;

	if (!needs_token(c) || c->desk->api_lies)
		return;
	assert(token && str_starts(token, "Bearer " TOKEN_PREFIX));
	assert(c->has_lease || str_eq(token + strlen("Bearer " TOKEN_PREFIX), node_of(c, NULL)));
}

static void check_success(const struct call *c)
{
	const Registry__V0__DescribePodRequest *asking = c->request;

	if (c->action == REGISTER && !c->gone)
		check_registered(c);
	if (c->action != REGISTER || !c->gone)
		check_speaker(c);
	/* pods are called after their nodes */
	if (c->action == DESCRIBE)
		assert(c->desk->api_lies || str_eq(asking->node_id, asking->name));
}

/* Stand for the server's. */
void __wrap_grpc_call_finish(struct grpc_call *grpc, struct error *error);
bool __wrap_grpc_call_is_wanted(const struct grpc_call *grpc);
void __wrap_grpc_call_peer(const struct grpc_call *grpc, struct buf *out);

void __wrap_grpc_call_finish(struct grpc_call *grpc, struct error *error)
{
	struct call *c = call_of(grpc);

	assert(!c->finished);
	c->finished = true;
	if (error)
		fuzz_error(error);
	else
		check_success(c);
}

void __wrap_grpc_call_peer(const struct grpc_call *grpc, struct buf *out)
{
	(void)grpc;
	buf_adds(out, "10.0.0.1:4711");
}

bool __wrap_grpc_call_is_wanted(const struct grpc_call *grpc)
{
	return !call_of(grpc)->gone;
}

static uint64_t now(void *user)
{
	return ((const struct desk *)user)->now_ns;
}

static void on_changed(void *user, const struct node *node)
{
	struct desk *d = user;

	if (!str_eq(node->report.node_id, BOUND_NODE))
		return;
	assert(!node->live || !d->is_bound || node->report.bound || d->needs_tokens);
	d->is_bound = node->live && node->report.bound;
}

static const struct grpc_method *method_of(const struct desk *d, enum action action)
{
	const char *path = action == REGISTER     ? "/registry.v0.Registry/RegisterController"
			   : action == UNREGISTER ? "/registry.v0.Registry/UnregisterController"
						  : "/registry.v0.Registry/DescribePod";
	const struct grpc_method *m = registry_service(d->registry).methods;

	while (!str_eq(m->path, path))
		m++;
	return m;
}

static struct call *call_new(struct desk *d, uint8_t choice, enum action action)
{
	struct call *c = x_calloc(1, sizeof(*c));
	unsigned peer = choice >> PEER_SHIFT & (ARRAY_SIZE(peers) - 1);

	*c = (struct call){.next = d->calls, .desk = d, .action = action, .gone = choice & GONE};
	c->grpc = (struct grpc_call){.arena = arena_new(LIMIT_ARENA_BYTES),
		.deadline_ns = DEADLINE_NONE,
		.peer_names = d->has_tls ? peers[peer] : NULL,
		.authorization = tokens[choice >> TOKEN_SHIFT]};
	c->bound = d->has_tls && peer == PEER_BOUND;
	d->calls = c;
	return c;
}

static void make_call(struct desk *d, uint8_t choice, enum action action, struct span message)
{
	const struct grpc_method *m = method_of(d, action);
	struct call *c = call_new(d, choice, action);
	struct error *err = NULL;
	ProtobufCMessage *request;

	if (grpc_protobuf_unpack(m->request, message, c->grpc.arena, &request, &err) < 0) {
		__wrap_grpc_call_finish(&c->grpc, err);
		return;
	}
	c->request = request;
	note_lease(c);
	c->reply = arena_alloc(c->grpc.arena, m->reply->sizeof_message);
	protobuf_c_message_init(m->reply, c->reply);
	if (m->kind == GRPC_ASYNC) {
		m->start(d->registry, &c->grpc, request, c->reply);
		return;
	}
	m->handle(d->registry, &c->grpc, request, c->reply, &err);
	__wrap_grpc_call_finish(&c->grpc, err);
}

static void review_token(struct desk *d, const char *body)
{
	CLEANUP(free_charp) char *json = NULL;
	const char *node = strstr(body, TOKEN_PREFIX);

	if (!node) {
		fake_kube_answer(d->kube, 201, "{\"status\":{\"authenticated\":false}}");
		return;
	}
	json = x_asprintf("{\"status\":{\"authenticated\":true,\"audiences\":[\"" AUDIENCE
			  "\"],\"user\":{\"username\":\"" ACCOUNT
			  "\",\"extra\":{\"authentication.kubernetes.io/node-name\":[\"%.1s\"]}}}}",
		node + strlen(TOKEN_PREFIX));
	fake_kube_answer(d->kube, 201, json);
}

/* A pod runs on the node with its name. */
static void describe_pod(struct desk *d, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid\","
				"\"resourceVersion\":\"1\"},\"spec\":{\"nodeName\":\"%s\","
				"\"runtimeClassName\":\"kata\"}}",
		name, name);

	fake_kube_answer(d->kube, 200, json);
}

/* The API server answers one request. @message: how, and a body that may say anything */
static void review(struct desk *d, struct span message)
{
	const struct fake_request *r = fake_kube_next(d->kube);
	uint8_t how = fuzz_byte(&message) % 4;
	CLEANUP(free_charp) char *body = fuzz_text(message);

	if (!r)
		return;
	switch (how) {
	case 1:
		fake_kube_answer(d->kube, 0, "");
		break;
	case 2:
		fake_kube_answer(d->kube, 403, "");
		break;
	case 3:
		d->api_lies = true;
		fake_kube_answer(d->kube, 200, body);
		break;
	default:
		if (str_eq(r->method, "POST"))
			review_token(d, r->body);
		else
			describe_pod(d, r->path);
		break;
	}
}

/* @message: which node, and the volume's ID */
static void note(struct desk *d, enum action action, struct span message)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(d->table, &nodes);
	size_t choice = fuzz_byte(&message);
	CLEANUP(free_charp) char *id = fuzz_text(message);
	const char *node_id = n > 0 ? nodes[choice % n]->report.node_id : BOUND_NODE;
	struct volume_report v = {.id = id, .name = id, .phase = PHASE_READY};

	if (!volume_handle_valid(id))
		return;
	if (action == CREATED)
		node_table_note_created(d->table, node_id, &v, d->now_ns);
	else
		node_table_note_deleted(d->table, node_id, id, d->now_ns);
}

static void run_step(struct desk *d, struct span *in)
{
	uint8_t choice = fuzz_byte(in);
	enum action action = (choice & ((1u << PEER_SHIFT) - 1)) % N_ACTIONS;
	size_t length = (size_t)fuzz_byte(in) << 8;

	length |= fuzz_byte(in);
	struct span message = fuzz_bytes(in, length);
	switch (action) {
	case REGISTER:
	case UNREGISTER:
	case DESCRIBE:
		make_call(d, choice, action, message);
		break;
	case TICK:
		d->now_ns += fuzz_byte(&message) * NS_PER_S;
		registry_tick(d->registry);
		node_tokens_tick(d->tokens);
		break;
	case REVIEW:
		review(d, message);
		break;
	case CREATED:
	case DELETED:
		note(d, action, message);
		break;
	case N_ACTIONS:
		break;
	}
}

static void open_desk(struct desk *d)
{
	struct error *err = NULL;

	int rv = loop_new(&d->loop, &err);
	assert(rv == 0);
	d->now_ns = NS_PER_S;
	d->table = node_table_new();
	d->kube = fake_kube_new(d->loop);
	d->tokens = node_tokens_new(&(struct node_tokens_config){
		.client = d->kube, .audience = AUDIENCE, .user_name = ACCOUNT, .now_ns = now, .user = d});
	d->pods = pod_reader_new(d->kube, &d->cluster);
	d->registry = registry_new(&(struct registry_config){.loop = d->loop,
		.table = d->table,
		.proof = d->needs_tokens ? REGISTRY_PROOF_TOKEN : REGISTRY_PROOF_ROLE,
		.tokens = d->tokens,
		.pods = d->pods,
		.now_ns = now,
		.user = d});
	node_table_watch(d->table, on_changed, d);
}

static void close_desk(struct desk *d)
{
	pod_reader_free(d->pods);
	node_tokens_free(d->tokens);
	for (struct call *c = d->calls, *next; c; c = next) {
		next = c->next;
		assert(c->finished);
		arena_free(c->grpc.arena);
		free(c);
	}
	node_table_unwatch(d->table, on_changed, d);
	registry_free(d->registry);
	node_table_free(d->table);
	kube_client_free(d->kube);
	loop_free(d->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	struct desk d = {0};

	uint8_t mode = fuzz_byte(&in);
	d.has_tls = mode & 1;
	d.needs_tokens = mode & 2;
	open_desk(&d);
	for (unsigned i = 0; i < STEPS_MAX && in.n > 0; i++) {
		run_step(&d, &in);
		table_check(d.table);
	}
	close_desk(&d);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: what peers ask it, one step after the other.
 *
 * The first byte's lowest bit is TLS. A step is a byte that says what happens, and for a call which peer
 * makes it, two bytes of length, and the message. After each step the table must be consistent, and a lease
 * that was taken with a node's own certificate must not have gone to another; at the end each call was
 * answered once.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "fuzz/table_check.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/limits.h"
#include "nodes/registry_private.h"
#include "volume/id.h"

#define STEPS_MAX 24

#define BOUND_NODE "a"

/* A step's byte: the lowest bits what happens, the next two who calls, then whether the caller has gone. */
enum action { REGISTER, UNREGISTER, TICK, CREATED, DELETED, N_ACTIONS };
#define PEER_SHIFT 3
#define GONE       0x20

static const char *const peers[][3] = {
	{"pmem-node-controller"}, {"x", "node-" BOUND_NODE}, {"pmem-scheduler"}, {NULL}};
#define PEER_BOUND 1

struct desk {
	struct loop *loop;
	struct node_table *table;
	struct registry *registry;
	struct call *calls;
	uint64_t now_ns;
	bool has_tls;
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
	else if (!c->gone && c->action == REGISTER)
		check_registered(c);
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
	assert(!node->live || !d->is_bound || node->report.bound);
	d->is_bound = node->live && node->report.bound;
}

static void make_call(struct desk *d, uint8_t choice, enum action action, struct span message)
{
	const struct grpc_method *m = &registry_service(d->registry).methods[action];
	struct call *c = x_calloc(1, sizeof(*c));
	unsigned peer = choice >> PEER_SHIFT & (ARRAY_SIZE(peers) - 1);
	struct error *err = NULL;
	ProtobufCMessage *request;

	*c = (struct call){.next = d->calls, .desk = d, .action = action, .gone = choice & GONE};
	c->grpc = (struct grpc_call){.arena = arena_new(LIMIT_ARENA_BYTES), .deadline_ns = DEADLINE_NONE};
	c->grpc.peer_names = d->has_tls ? peers[peer] : NULL;
	c->bound = d->has_tls && peer == PEER_BOUND;
	d->calls = c;
	if (grpc_protobuf_unpack(m->request, message, c->grpc.arena, &request, &err) < 0) {
		__wrap_grpc_call_finish(&c->grpc, err);
		return;
	}
	c->request = request;
	c->reply = arena_alloc(c->grpc.arena, m->reply->sizeof_message);
	protobuf_c_message_init(m->reply, c->reply);
	if (m->kind == GRPC_ASYNC) {
		m->start(d->registry, &c->grpc, request, c->reply);
		return;
	}
	m->handle(d->registry, &c->grpc, request, c->reply, &err);
	__wrap_grpc_call_finish(&c->grpc, err);
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
		make_call(d, choice, action, message);
		break;
	case TICK:
		d->now_ns += fuzz_byte(&message) * NS_PER_S;
		registry_tick(d->registry);
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
	d->registry = registry_new(&(struct registry_config){
		.loop = d->loop, .table = d->table, .proof = REGISTRY_PROOF_ROLE, .now_ns = now, .user = d});
	node_table_watch(d->table, on_changed, d);
}

static void close_desk(struct desk *d)
{
	for (struct call *c = d->calls, *next; c; c = next) {
		next = c->next;
		assert(c->finished);
		arena_free(c->grpc.arena);
		free(c);
	}
	node_table_unwatch(d->table, on_changed, d);
	registry_free(d->registry);
	node_table_free(d->table);
	loop_free(d->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	struct desk d = {0};

	d.has_tls = fuzz_byte(&in) & 1;
	open_desk(&d);
	for (unsigned i = 0; i < STEPS_MAX && in.n > 0; i++) {
		run_step(&d, &in);
		table_check(d.table);
	}
	close_desk(&d);
	return 0;
}

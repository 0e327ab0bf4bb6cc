/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/hostile/hostile_cluster.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "fuzz/hostile/hostile_private.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/grpc/grpc_service.h"
#include "net/limits.h"

#define STEPS_MAX    200
#define LEASE_NS     (90 * NS_PER_S)
#define TICK_NS      (20 * NS_PER_S)
#define SILENT       2 /* a report without volumes, as a bit of the byte for the object */
#define DRAIN_ROUNDS 1000

const char *const hostile_node_ids[HOSTILE_NODES + 1] = {"n1", "n2", "evil", NULL};
const char *const hostile_endpoints[HOSTILE_NODES] = {
	"tcp://10.0.0.1:10000", "tcp://10.0.0.2:10000", "tcp://10.0.0.3:10000"};
static const char *const addresses[HOSTILE_NODES] = {"10.0.0.1:4711", "10.0.0.2:4711", "10.0.0.3:4711"};
static const char *const certificates[HOSTILE_NODES][2] = {{"node-n1"}, {"node-n2"}, {"node-evil"}};

static const struct claim claims[HOSTILE_CLAIMS] = {
	{.name = "pvc-1", .kind = CLAIM_VOLUME},
	{.name = "pvc-2", .kind = CLAIM_VOLUME},
	{.name = "pvc-cache", .kind = CLAIM_CACHE},
	{.name = "pvc-clone", .kind = CLAIM_CLONE},
	{.name = "snapshot-1", .kind = CLAIM_SNAPSHOT},
	{.name = "snapshot-2", .kind = CLAIM_SNAPSHOT},
};
static const char *const names[] = {
	"pvc-1", "pvc-2", "pvc-cache", "pvc-clone", "snapshot-1", "snapshot-2", HOSTILE_GROUP};

enum action {
	CREATE,
	DELETE,
	CHANGE,
	LIST,
	ANSWER,     /* one call */
	ANSWER_ALL, /* calls to honest nodes, and those that follow */
	LOSE,       /* one call: its outcome is not known */
	STAGE,
	REPORT, /* of an honest node, at first without its volumes */
	LIE,    /* a report of the node that lies */
	TICK,
	CRASH,   /* of an honest node, until it reports again */
	RESTART, /* of the controller */
	GROUP,   /* a group snapshot is made */
	UNGROUP, /* and deleted */
	SHOW,    /* and looked at */
	N_ACTIONS,
};

/* A registration, which is answered at once: certificates prove who sends it. */
struct registration {
	struct grpc_call grpc;
	size_t node; /* that sends it */
};

/* Stand for those of the server. */
void __wrap_grpc_call_finish(struct grpc_call *call, struct error *error);
bool __wrap_grpc_call_is_wanted(const struct grpc_call *call);
void __wrap_grpc_call_peer(const struct grpc_call *call, struct buf *out);

void __wrap_grpc_call_finish(struct grpc_call *call, struct error *error)
{
	(void)call;
	if (error)
		fuzz_error(error);
}

bool __wrap_grpc_call_is_wanted(const struct grpc_call *call)
{
	(void)call;
	return true;
}

void __wrap_grpc_call_peer(const struct grpc_call *call, struct buf *out)
{
	buf_adds(out, addresses[((const struct registration *)(const void *)call)->node]);
}

size_t hostile_node_number(const char *node_id)
{
	size_t i = 0;

	while (i < HOSTILE_NODES && !str_eq(hostile_node_ids[i], node_id))
		i++;
	return i;
}

static uint64_t now_ns(void *user)
{
	return ((const struct hostile_cluster *)user)->now_ns;
}

static size_t list_nodes(void *self, const char *const **ret)
{
	const struct hostile_cluster *c = self;

	*ret = hostile_node_ids;
	return c->is_rid ? HOSTILE_HONEST : HOSTILE_NODES;
}

static bool has_node(void *self, const char *node_id)
{
	return !((const struct hostile_cluster *)self)->is_rid ||
	       hostile_node_number(node_id) != HOSTILE_EVIL;
}

static void keep_record(void *user, struct pmem_volume *record, const struct error *error)
{
	assert(!error);
	*(struct pmem_volume **)user = record;
}

struct pmem_volume *hostile_record(struct hostile_cluster *c, const struct volume_key *key)
{
	struct volume_records r = memory_records_interface(c->memory);
	struct pmem_volume *record = NULL;

	r.read(r.self, key->hex, keep_record, &record);
	return record;
}

static void read_record(void *self, const char *key, volume_record_fn fn, void *user)
{
	struct hostile_cluster *c = self;
	struct volume_records r = memory_records_interface(c->memory);

	r.read(r.self, key, fn, user);
}

static void write_record(void *self, enum volume_record_write what, const struct pmem_volume *v,
	volume_record_fn fn, void *user)
{
	struct hostile_cluster *c = self;
	struct volume_records r = memory_records_interface(c->memory);
	const struct volume_key key = volume_key_of_name(v->volume_name);
	CLEANUP(pmem_volume_freep) struct pmem_volume *before = hostile_record(c, &key);

	hostile_check_write(c, what, before, v);
	r.write(r.self, what, v, fn, user);
}

/* @m as its receiver unpacks it, in @arena; NULL: it does not take it. */
static ProtobufCMessage *send_message(const ProtobufCMessage *m, struct arena *arena)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *packed = arena_alloc(arena, n);
	ProtobufCMessage *received = NULL;
	struct error *err = NULL;

	protobuf_c_message_pack(m, packed);
	if (grpc_protobuf_unpack(m->descriptor, (struct span){packed, n}, arena, &received, &err) < 0) {
		fuzz_error(err);
		return NULL;
	}
	return received;
}

static size_t find_endpoint(const char *endpoint)
{
	size_t i = 0;

	while (i < HOSTILE_NODES && !str_eq(hostile_endpoints[i], endpoint))
		i++;
	return i;
}

static void call_node(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	struct hostile_cluster *c = self;
	struct pending *p = &c->pending[c->n_pending++];
	size_t n = protobuf_c_message_get_packed_size(request);
	CLEANUP(free_charp) char *packed = x_malloc(n + 1);

	(void)path;
	(void)timeout_ms;
	assert(node->live && c->n_pending <= HOSTILE_PENDING);
	hostile_check_call(c, node->report.node_id, request);
	protobuf_c_message_pack(request, (uint8_t *)packed);
	*p = (struct pending){.node = hostile_node_number(node->report.node_id),
		.at = find_endpoint(node->report.endpoint),
		.request = protobuf_c_message_unpack(request->descriptor, NULL, n, (uint8_t *)packed),
		.reply_type = reply_type,
		.fn = fn,
		.user = user};
	assert(p->request && p->node < HOSTILE_NODES);
}

static struct pending take_pending(struct hostile_cluster *c, size_t i)
{
	struct pending p = c->pending[i];

	c->n_pending--;
	for (; i < c->n_pending; i++)
		c->pending[i] = c->pending[i + 1];
	return p;
}

static void end_call(struct pending *p, const ProtobufCMessage *reply, struct error *error)
{
	p->fn(p->user, reply, error);
	error_free(error);
	protobuf_c_message_free_unpacked(p->request, NULL);
}

/* Return: NULL with an error. */
static const ProtobufCMessage *make_reply(
	struct hostile_cluster *c, const struct pending *p, struct arena *arena, struct error **err)
{
	const ProtobufCMessage *reply = NULL;

	if (p->at == HOSTILE_EVIL) {
		reply = liar_reply(&c->liar, &c->in, p->request, p->reply_type, arena, err);
		reply = reply ? send_message(reply, arena) : NULL;
		if (!reply && !*err)
			err_set(err, ERR_INTERNAL, "the reply is malformed");
	} else if (p->at == HOSTILE_NODES || !c->is_up[p->at]) {
		err_set(err, ERR_UNAVAILABLE, "the node does not answer");
	} else if (p->at != p->node) {
		err_set(err, ERR_UNAVAILABLE, "the call is for another node");
	} else if (honest_node_serve(&c->honest[p->at], p->request, arena, &reply, err) < 0) {
		reply = NULL;
	}
	return reply;
}

static void answer(struct hostile_cluster *c, size_t i)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	struct pending p = take_pending(c, i);
	struct error *err = NULL;
	const ProtobufCMessage *reply = make_reply(c, &p, arena, &err);

	end_call(&p, reply, err);
}

static void answer_one(struct hostile_cluster *c, uint8_t which)
{
	if (c->n_pending > 0)
		answer(c, which % c->n_pending);
}

void hostile_answer_all(struct hostile_cluster *c)
{
	for (size_t i = 0; i < c->n_pending;) {
		if (c->pending[i].at == HOSTILE_EVIL) {
			i++;
			continue;
		}
		answer(c, i);
		i = 0;
	}
}

/* The connection breaks, before the node has got the call or after. */
static void lose(struct hostile_cluster *c, uint8_t which)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	struct error *err = NULL;
	struct pending p;

	if (c->n_pending == 0)
		return;
	p = take_pending(c, (which >> 1) % c->n_pending);
	if ((which & 1) && p.at != HOSTILE_EVIL) {
		(void)make_reply(c, &p, arena, &err);
		error_clear(&err);
	}
	err_set(&err, ERR_UNAVAILABLE, "the connection is lost");
	end_call(&p, NULL, err);
}

void hostile_lose_rest(struct hostile_cluster *c)
{
	for (size_t n = c->n_pending; n > 0; n--) {
		struct error *err = NULL;
		struct pending p = take_pending(c, 0);

		err_set(&err, ERR_DEADLINE, "the node does not answer");
		end_call(&p, NULL, err);
	}
}

/* All calls, and those that follow, end without an answer. */
static void lose_all(struct hostile_cluster *c)
{
	for (unsigned i = 0; c->n_pending > 0; i++) {
		struct error *err = NULL;
		struct pending p = take_pending(c, 0);

		assert(i < DRAIN_ROUNDS);
		err_set(&err, ERR_CANCELLED, "the controller ends");
		end_call(&p, NULL, err);
	}
	hostile_check_state(c);
}

static void send_report(struct hostile_cluster *c, size_t node,
	const Registry__V0__RegisterControllerRequest *m, struct arena *arena)
{
	const struct grpc_method *method = &registry_service(c->registry).methods[0];
	struct registration r = {
		.grpc = {.arena = arena, .deadline_ns = DEADLINE_NONE, .peer_names = certificates[node]},
		.node = node};
	Registry__V0__RegisterControllerReply reply = REGISTRY__V0__REGISTER_CONTROLLER_REPLY__INIT;
	const ProtobufCMessage *received = send_message(&m->base, arena);

	assert(method->request == &registry__v0__register_controller_request__descriptor);
	if (received)
		method->start(c->registry, &r.grpc, received, &reply);
}

void hostile_report(struct hostile_cluster *c, size_t node, bool is_silent)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);

	if (node == HOSTILE_EVIL) {
		struct span nothing = {0};
		struct span *in = is_silent ? &nothing : &c->in;

		send_report(c, node, liar_report(&c->liar, in, is_silent, arena), arena);
		return;
	}
	c->is_up[node] = true;
	c->is_silent[node] = is_silent;
	send_report(c, node, honest_node_report(&c->honest[node], is_silent, arena), arena);
}

/* Honest nodes repeat their registrations several times in a lease. */
void hostile_tick(struct hostile_cluster *c)
{
	for (size_t i = 0; i < HOSTILE_HONEST; i++) {
		if (c->is_up[i])
			hostile_report(c, i, c->is_silent[i]);
	}
	c->now_ns += TICK_NS;
	registry_tick(c->registry);
	controller_tick(c->controller);
}

static void stage(struct hostile_cluster *c, struct claim *claim)
{
	for (size_t i = 0; i < HOSTILE_HONEST && claim->has; i++) {
		struct honest_volume *v = honest_node_find(&c->honest[i], claim->has->handle);

		if (v && !v->is_snapshot && c->is_up[i] && !claim->has->is_deleting)
			v->staged = true;
	}
}

static void on_delete(void *user, const struct honest_node *n, const struct honest_volume *v)
{
	hostile_check_deletion(user, n, v);
}

static void start_controller(struct hostile_cluster *c)
{
	c->table = node_table_new();
	c->registry = registry_new(&(struct registry_config){.loop = c->loop,
		.driver_name = HOSTILE_DRIVER,
		.table = c->table,
		.proof = REGISTRY_PROOF_CERTIFICATE,
		.now_ns = now_ns,
		.user = c});
	c->controller = controller_new(&(struct controller_config){.driver_name = HOSTILE_DRIVER,
		.version = "1.2.3",
		.nodes = c->table,
		.caller = &c->caller,
		.cluster = &c->cluster,
		.records = {.read = read_record, .write = write_record, .self = c},
		.start_window_ms = LEASE_NS / NS_PER_MS,
		.forget_gone_nodes = true,
		.now_ns = now_ns,
		.user = c});
}

static void free_asks(struct hostile_cluster *c)
{
	for (struct ask *a = c->asks, *next; a; a = next) {
		next = a->next;
		assert(a->is_over);
		arena_free(a->arena);
		free(a);
	}
	c->asks = NULL;
}

static void stop_controller(struct hostile_cluster *c)
{
	lose_all(c);
	free_asks(c);
	controller_free(c->controller);
	registry_free(c->registry);
	node_table_free(c->table);
}

void hostile_restart(struct hostile_cluster *c)
{
	stop_controller(c);
	start_controller(c);
}

static void run_step(struct hostile_cluster *c)
{
	enum action action = fuzz_byte(&c->in) % N_ACTIONS;
	uint8_t which = fuzz_byte(&c->in);
	struct claim *claim = &c->claims[which % HOSTILE_CLAIMS];

	switch (action) {
	case CREATE:
		hostile_create(c, claim);
		break;
	case DELETE:
		hostile_delete(c, claim);
		break;
	case CHANGE:
		hostile_change(c, claim);
		break;
	case LIST:
		hostile_list(c);
		break;
	case ANSWER:
		answer_one(c, which);
		break;
	case ANSWER_ALL:
		hostile_answer_all(c);
		break;
	case LOSE:
		lose(c, which);
		break;
	case STAGE:
		stage(c, claim);
		break;
	case REPORT:
		hostile_report(c, which % HOSTILE_HONEST, which & SILENT);
		break;
	case LIE:
		hostile_report(c, HOSTILE_EVIL, which & SILENT);
		break;
	case TICK:
		hostile_tick(c);
		break;
	case CRASH:
		c->is_up[which % HOSTILE_HONEST] = false;
		break;
	case RESTART:
		hostile_restart(c);
		break;
	case GROUP:
		hostile_group_create(c, which);
		break;
	case UNGROUP:
		hostile_group_delete(c);
		break;
	case SHOW:
		hostile_group_show(c);
		break;
	case N_ACTIONS:
		break;
	}
	hostile_check_state(c);
}

static void open_cluster(struct hostile_cluster *c, struct span in)
{
	struct error *err = NULL;

	*c = (struct hostile_cluster){.in = in, .now_ns = NS_PER_S};
	c->cluster = (struct cluster_nodes){.list = list_nodes, .has = has_node, .self = c};
	c->caller = (struct node_caller){.call = call_node, .self = c};
	c->liar = (struct liar){hostile_node_ids[HOSTILE_EVIL], hostile_endpoints[HOSTILE_EVIL],
		hostile_node_ids, hostile_endpoints, HOSTILE_NODES, names, ARRAY_SIZE(names)};
	for (size_t i = 0; i < HOSTILE_CLAIMS; i++)
		c->claims[i] = claims[i];
	for (size_t i = 0; i < HOSTILE_HONEST; i++)
		c->honest[i] = (struct honest_node){.node_id = hostile_node_ids[i],
			.endpoint = hostile_endpoints[i],
			.on_delete = on_delete,
			.user = c};
	int rv = loop_new(&c->loop, &err);
	assert(rv == 0);
	c->memory = memory_records_new(HOSTILE_DRIVER);
	start_controller(c);
	/* All nodes are there before the start window is over. */
	for (size_t i = 0; i < HOSTILE_HONEST; i++)
		hostile_report(c, i, /* is_silent= */ false);
	c->now_ns += LEASE_NS - NS_PER_S;
	hostile_tick(c);
}

void hostile_cluster_run(struct span in)
{
	struct hostile_cluster *c = x_malloc(sizeof(*c));

	open_cluster(c, in);
	for (unsigned i = 0; i < STEPS_MAX && c->in.n > 0; i++)
		run_step(c);
	hostile_check_end(c);
	stop_controller(c);
	memory_records_free(c->memory);
	loop_free(c->loop);
	free(c);
}

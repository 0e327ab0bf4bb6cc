/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from the controller to nodes. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/world.h"

/* On the way to a node, there, or on the way back. */
struct world_call {
	struct world_call *next;
	struct world *world;
	struct world_node *node;
	unsigned boot;
	bool create;
	bool expand;
	bool if_never_staged;
	void *packed;
	size_t n_packed;
	const ProtobufCMessage *reply; /* in memory; NULL: error */
	struct error *error;
	bool done; /* its function was called: later answers have no reader */
	grpc_reply_fn fn;
	void *user;
};

static void end_call(struct world_call *c, const ProtobufCMessage *reply, struct error *error)
{
	struct world *w = c->world;
	struct world_call **at = &w->calls;
	bool unknown = error && controller_classify(error) == ANSWER_UNSURE;

	if (c->done) {
		error_free(error);
		return;
	}
	c->done = true;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (unknown && c->create && w->config.defect == DEFECT_NEXT_NODE)
		error->code = ERR_EXHAUSTED;
	c->fn(c->user, reply, error);
	error_free(error);
}

static void fail_call(struct world_call *c, enum err_code code, const char *why)
{
	struct error *error = NULL;

	if (err_set(&error, code, "%s", why) < 0)
		end_call(c, NULL, error);
}

static void time_out(void *user)
{
	fail_call(user, ERR_DEADLINE, "no answer in time");
}

static void lose(void *user)
{
	fail_call(user, ERR_UNAVAILABLE, "connection lost");
}

static void reply_arrives(void *user)
{
	struct world_call *c = user;
	struct error *error = TAKE_PTR(c->error);

	end_call(c, error ? NULL : c->reply, error);
}

/* Lost: the caller learns so at once, or not before its time is over. A second copy is not looked at. */
static void send_reply(void *user)
{
	struct world_call *c = user;
	struct world *w = c->world;

	if (c->boot != c->node->boot) {
		error_free(TAKE_PTR(c->error));
		return;
	}
	if (c->node->cut || (!w->calm && world_chance(w, 10))) {
		error_free(TAKE_PTR(c->error));
		if (world_chance(w, 50))
			world_at(w, world_delay_ms(w, 1000), lose, c);
		return;
	}
	world_at(w, world_delay_ms(w, 50), reply_arrives, c);
}

static void handle(struct world_call *c)
{
	struct world *w = c->world;
	uint64_t work_ns = 0;

	if (c->create) {
		Csi__V1__CreateVolumeRequest *q =
			csi__v1__create_volume_request__unpack(NULL, c->n_packed, c->packed);
		c->reply = world_node_create(c->node, q, w->memory, &work_ns, &c->error);
		csi__v1__create_volume_request__free_unpacked(q, NULL);
	} else if (c->expand) {
		Csi__V1__ControllerExpandVolumeRequest *q =
			csi__v1__controller_expand_volume_request__unpack(NULL, c->n_packed, c->packed);
		c->reply = world_node_expand(c->node, q, w->memory, &work_ns, &c->error);
		csi__v1__controller_expand_volume_request__free_unpacked(q, NULL);
	} else {
		static const Csi__V1__DeleteVolumeResponse reply = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;
		Csi__V1__DeleteVolumeRequest *q =
			csi__v1__delete_volume_request__unpack(NULL, c->n_packed, c->packed);
		if (world_node_delete(c->node, q, c->if_never_staged, &c->error) == 0)
			c->reply = &reply.base;
		csi__v1__delete_volume_request__free_unpacked(q, NULL);
	}
	world_at(w, work_ns, send_reply, c);
}

static void request_arrives(void *user)
{
	struct world_call *c = user;
	struct world *w = c->world;

	c->boot = c->node->boot;
	if (c->node->cut || (!w->calm && world_chance(w, 5))) {
		if (world_chance(w, 50))
			world_at(w, world_delay_ms(w, 1000), lose, c);
		return;
	}
	handle(c);
	/* while that runs, the network goes */
	if (!w->calm && world_chance(w, 3))
		world_node_cut(c->node, world_delay_ms(w, 20000));
}

static void call(void *self, const struct node *node, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	struct world *w = self;
	struct world_call *c = arena_alloc(w->memory, sizeof(*c));
	uint64_t at_ns = w->now_ns + world_delay_ms(w, 50);

	(void)reply_type;
	*c = (struct world_call){.world = w,
		.fn = fn,
		.user = user,
		.create = str_ends(path, "/CreateVolume"),
		.expand = str_ends(path, "/ControllerExpandVolume"),
		.if_never_staged = str_ends(path, "/DeleteIfNeverStaged")};
	for (size_t i = 0; i < WORLD_NODES; i++) {
		if (str_eq(node->report.node_id, w->nodes[i].id))
			c->node = &w->nodes[i];
	}
	c->packed = arena_alloc(w->memory, protobuf_c_message_get_packed_size(request));
	c->n_packed = protobuf_c_message_pack(request, c->packed);
	c->next = w->calls;
	w->calls = c;
	if (at_ns < c->node->last_sent_ns)
		at_ns = c->node->last_sent_ns;
	c->node->last_sent_ns = at_ns;
	world_at(w, at_ns - w->now_ns, request_arrives, c);
	world_at(w, timeout_ms * NS_PER_MS, time_out, c);
}

void world_net_init(struct world *w)
{
	w->caller = (struct node_caller){.call = call, .self = w};
}

/* Calls that the node was at, when it has gone. */
void world_net_node_lost(struct world *w, const struct world_node *n)
{
	for (struct world_call *c = w->calls; c; c = c->next) {
		if (c->node == n)
			world_at(w, world_delay_ms(w, 100), lose, c);
	}
}

/* The controller ends. */
void world_net_drop_all(struct world *w)
{
	while (w->calls)
		fail_call(w->calls, ERR_CANCELLED, "the controller ends");
}

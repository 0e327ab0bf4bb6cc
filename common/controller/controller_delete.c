/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteVolume: done when every node that may have the volume has said that it has not. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "csi/field_limits.h"
#include "volume/id.h"

#define DELETE_PATH "/csi.v1.Controller/DeleteVolume"
/* Nodes that are asked at a time. */
#define DELETE_CALLS_MAX 64
/* For a copy that nobody waits for. */
#define COPY_TIMEOUT_MS 30000
/* IDs of the Go driver up to 0.6: a UUID, or sha1 of the name. */
#define UUID_LEN     36
#define SHA1_HEX_LEN 40

struct delete
{
	struct controller *controller;
	struct waiter waiter;
	const char *id;
	struct volume_key key;
	bool is_anywhere; /* its ID names no node */
	Csi__V1__DeleteVolumeRequest request;
	const char **targets; /* node IDs */
	size_t n_targets;
	size_t room;
	size_t next;
	size_t n_asking;
	struct error *failure; /* the one that matters most; NULL: none */
};

struct delete_call {
	struct delete *op;
	const char *node_id;
};

static bool is_made_of(const char *text, const char *characters, size_t n)
{
	return strlen(text) == n && strspn(text, characters) == n;
}

/* In a form in which any driver of ours has given out IDs. */
static bool may_be_ours(const char *handle)
{
	return volume_id_minted(handle) || is_made_of(handle, "0123456789abcdef", SHA1_HEX_LEN) ||
	       is_made_of(handle, "0123456789abcdef-", UUID_LEN);
}

static bool is_target(const struct delete *op, const char *node_id)
{
	for (size_t i = 0; i < op->n_targets; i++) {
		if (str_eq(op->targets[i], node_id))
			return true;
	}
	return false;
}

static void add_target(struct delete *op, const char *node_id)
{
	if (op->n_targets == op->room) {
		const char **old = op->targets;

		op->room = op->room > 0 ? op->room * 2 : 4;
		op->targets = arena_alloc(op->waiter.arena, op->room * sizeof(*op->targets));
		if (old)
			memcpy(op->targets, old, op->n_targets * sizeof(*old));
	}
	op->targets[op->n_targets++] = arena_strdup(op->waiter.arena, node_id);
}

static bool hash_fits(const char *node_id, const char *hash)
{
	char digest[SHA224_HEX_LEN + 1];

	sha224_hex(node_id, strlen(node_id), digest);
	return strncmp(digest, hash, NODE_HASH_LEN) == 0;
}

/* Nodes that have not registered. @hash: only those that it fits; NULL: all */
static void add_owners(struct delete *op, const char *hash)
{
	const struct controller *c = op->controller;
	const struct possible_owners *o = &c->config.owners;
	const char *const *ids;
	size_t n = o->list(o->self, &ids);

	for (size_t i = 0; i < n; i++) {
		if (!node_table_get(c->config.nodes, ids[i]) && (!hash || hash_fits(ids[i], hash)))
			add_target(op, ids[i]);
	}
}

/* Where the table says that it is, whatever the ID looks like. */
static void add_holders(struct delete *op)
{
	struct node_hit *hits = NULL;
	size_t n = node_table_find_volume(op->controller->config.nodes, op->id, &hits);

	for (size_t i = 0; i < n; i++) {
		if (!is_target(op, hits[i].node->report.node_id))
			add_target(op, hits[i].node->report.node_id);
	}
	free(hits);
}

static int route_by_hash(struct delete *op, const char *hash, struct error **err)
{
	struct controller *c = op->controller;
	const struct possible_owners *o = &c->config.owners;
	const struct node **nodes = NULL;
	size_t n = node_table_find_hash(c->config.nodes, hash, &nodes);

	for (size_t i = 0; i < n; i++)
		add_target(op, nodes[i]->report.node_id);
	free(nodes);
	add_owners(op, hash);
	add_holders(op);
	if (op->n_targets > 0)
		return 0;
	if (c->config.forget_gone_nodes && o->ready(o->self) && !controller_in_start_window(c))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"volume %s: the node that it is on (%s in the ID) has not registered", op->id, hash);
}

static int route_to_all(struct delete *op, struct error **err)
{
	struct controller *c = op->controller;
	const struct possible_owners *o = &c->config.owners;
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	/* Not all that are live have registered in the start window, and their Node objects may be gone. */
	if (!o->ready(o->self) || controller_in_start_window(c))
		return err_set(err, ERR_UNAVAILABLE,
			"volume %s may be on any node, and which nodes there are is not known yet", op->id);
	op->is_anywhere = true;
	for (size_t i = 0; i < n; i++)
		add_target(op, nodes[i]->report.node_id);
	add_owners(op, NULL);
	return 0;
}

/* Return: 0, or -1 with ERR_UNAVAILABLE. Without targets there is nothing to delete. */
static int route(struct delete *op, struct error **err)
{
	const char *dot = strrchr(op->id, '.');

	if (!may_be_ours(op->id)) {
		add_holders(op);
		return 0;
	}
	if (volume_id_minted(op->id) && dot)
		return route_by_hash(op, dot + 1, err);
	return route_to_all(op, err);
}

/* Which failure the caller should get when nodes fail for several reasons. */
static unsigned weight(const struct error *e)
{
	return e->code == ERR_PRECONDITION ? 2 : e->code == ERR_ABORTED ? 1 : 0;
}

static void keep_failure(struct delete *op, struct error *failure)
{
	if (op->failure && weight(op->failure) >= weight(failure)) {
		error_free(failure);
		return;
	}
	error_free(op->failure);
	op->failure = failure;
}

static void conclude(struct delete *op)
{
	attempts_unlock(op->controller->attempts, &op->key);
	op->waiter.finish(op->waiter.user, op->failure);
}

static void pump(struct delete *op);

static void on_answer(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	const struct delete_call *call = user;
	struct delete *op = call->op;
	struct controller *c = op->controller;

	(void)reply;
	op->n_asking--;
	if (error) {
		keep_failure(op, controller_pass_on(call->node_id, error));
	} else {
		attempts_end(c->attempts, &op->key, call->node_id);
		node_table_note_deleted(c->config.nodes, call->node_id, op->id, controller_now_ns(c));
	}
	pump(op);
}

static void ask(struct delete *op, const char *node_id)
{
	struct controller *c = op->controller;
	const struct node *node = controller_live_node(c, node_id);
	uint64_t timeout_ms = controller_timeout_ms(c, op->waiter.deadline_ns);
	struct error *failure = NULL;
	struct delete_call *call;

	if (!node && (op->is_anywhere || c->config.forget_gone_nodes) && controller_is_gone(c, node_id))
		return;
	if (!node)
		err_set(&failure, ERR_UNAVAILABLE, "node %s may have volume %s, but is not connected",
			node_id, op->id);
	else if (timeout_ms == 0)
		err_set(&failure, ERR_DEADLINE, "no time is left to ask node %s", node_id);
	if (failure) {
		keep_failure(op, failure);
		return;
	}
	call = arena_alloc(op->waiter.arena, sizeof(*call));
	*call = (struct delete_call){.op = op, .node_id = node_id};
	op->n_asking++;
	controller_call(c, node, DELETE_PATH, &op->request.base, &csi__v1__delete_volume_response__descriptor,
		timeout_ms, on_answer, call);
}

static void pump(struct delete *op)
{
	while (op->next < op->n_targets && op->n_asking < DELETE_CALLS_MAX)
		ask(op, op->targets[op->next++]);
	if (op->n_asking == 0)
		conclude(op);
}

void controller_delete(
	struct controller *c, const struct waiter *waiter, const Csi__V1__DeleteVolumeRequest *request)
{
	struct delete *op = arena_alloc(waiter->arena, sizeof(*op));
	struct error *err = NULL;

	*op = (struct delete){.controller = c, .waiter = *waiter, .id = request->volume_id};
	if (csi_require(request->volume_id, "volume_id", &err) < 0 || route(op, &err) < 0 ||
		op->n_targets == 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	op->key = volume_key_of_handle(op->id);
	if (!attempts_lock(c->attempts, &op->key, controller_now_ns(c))) {
		err_set(&err, ERR_ABORTED, "another call for volume %s is under way", op->id);
		waiter->finish(waiter->user, err);
		return;
	}
	csi__v1__delete_volume_request__init(&op->request);
	op->request.volume_id = request->volume_id;
	pump(op);
}

struct copy_call {
	struct controller *controller;
	char *node_id;
	char *id;
	grpc_reply_fn fn;
	void *user;
};

static void on_copy_deleted(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct copy_call *call = user;
	struct controller *c = call->controller;

	if (!error)
		node_table_note_deleted(c->config.nodes, call->node_id, call->id, controller_now_ns(c));
	call->fn(call->user, reply, error);
	free(call->node_id);
	free(call->id);
	free(call);
}

void controller_delete_copy(
	struct controller *c, const struct node *node, const char *id, grpc_reply_fn fn, void *user)
{
	struct copy_call *call = x_malloc(sizeof(*call));
	Csi__V1__DeleteVolumeRequest request;

	*call = (struct copy_call){.controller = c,
		.node_id = x_strdup(node->report.node_id),
		.id = x_strdup(id),
		.fn = fn,
		.user = user};
	csi__v1__delete_volume_request__init(&request);
	request.volume_id = call->id;
	controller_call(c, node, DELETE_PATH, &request.base, &csi__v1__delete_volume_response__descriptor,
		COPY_TIMEOUT_MS, on_copy_deleted, call);
}

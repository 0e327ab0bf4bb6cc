/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerExpandVolume: done when each node that has a copy of the volume has said that the copy has grown.
 * The record says which size was asked for before a node is asked. */
#include "controller/controller_private.h"
#include "controller/copy_calls.h"
#include "controller/node_facts.h"
#include "csi/controller_request.h"

#define EXPAND_PATH "/csi.v1.Controller/ControllerExpandVolume"

/* One ControllerExpandVolume. Lives in the call's arena. */
struct expand {
	struct controller *controller;
	struct waiter waiter;
	const char *id;
	Csi__V1__ControllerExpandVolumeRequest request; /* for the nodes; borrows from the caller's */
	Csi__V1__ControllerExpandVolumeResponse *reply;
	struct volume_key key;
	uint64_t required_bytes;
	struct pmem_volume *record;
	unsigned n_reads;
	struct copy_calls calls;
	uint64_t size_bytes; /* of the smallest copy, as the nodes have answered; 0: none has */
};

static void finish(struct expand *op, struct error *error)
{
	pmem_volume_free(op->record);
	key_unlock(op->controller->locks, &op->key);
	op->waiter.finish(op->waiter.user, error);
}

static void on_end(void *user, struct error *failure)
{
	struct expand *op = user;

	if (!failure)
		op->reply->capacity_bytes = (int64_t)op->size_bytes;
	finish(op, failure);
}

static int take_growth(void *user, const char *node_id, const ProtobufCMessage *message, struct error **err)
{
	struct expand *op = user;
	struct controller *c = op->controller;
	uint64_t size_bytes;
	bool needs_node;

	if (node_fact_growth(op->required_bytes, message, &size_bytes, &needs_node, err) < 0)
		return -1;
	if (op->size_bytes == 0 || size_bytes < op->size_bytes)
		op->size_bytes = size_bytes;
	op->reply->node_expansion_required = op->reply->node_expansion_required || needs_node;
	node_table_note_grown(c->config.nodes, node_id, op->id, size_bytes, controller_now_ns(c));
	return 0;
}

/* external-resizer tries again, and users may lower their request. */
static int require_growth(const struct node *node, struct error **err)
{
	if (node->report.serves_expansion)
		return 0;
	return err_set(err, ERR_UNIMPLEMENTED,
		"the driver %s on node %s cannot grow volumes: update the driver there", node->report.version,
		node->report.node_id);
}

static void read_record(struct expand *op);

static void on_written(void *user, struct pmem_volume *record, const struct error *error)
{
	struct expand *op = user;

	controller_take_record(&op->record, record);
	if (!error)
		copy_calls_begin(&op->calls);
	else if ((error->code == ERR_ABORTED || error->code == ERR_NOT_FOUND) &&
		 op->n_reads < RECORD_READS_MAX)
		read_record(op);
	else
		finish(op, controller_record_failure(op->id, error));
}

/* The size in the record never becomes smaller here: a node may still get an earlier call for more. Each
 * attempt changes the record, so that the leader cannot conclude meanwhile that no node is asked
 * (volume_objects.h). A node that reports a copy and that the record did not name is written with it. */
static void write_size(struct expand *op)
{
	struct pmem_volume *r = op->record;

	if (r->size_bytes < op->required_bytes)
		r->size_bytes = op->required_bytes;
	r->attempts++;
	controller_write_record(op->controller, RECORD_SPEC, r, on_written, op);
}

static void on_read(void *user, struct pmem_volume *record, const struct error *error)
{
	struct expand *op = user;
	struct error *err = NULL;

	controller_take_record(&op->record, record);
	if (error)
		finish(op, controller_record_failure(op->id, error));
	else if (copy_calls_find(&op->calls, record, &err) < 0)
		finish(op, err);
	else
		write_size(op);
}

static void read_record(struct expand *op)
{
	op->n_reads++;
	controller_read_record(op->controller, &op->key, on_read, op);
}

static void prepare_calls(struct expand *op)
{
	op->request.n_secrets = 0;
	op->request.secrets = NULL;
	op->calls = (struct copy_calls){.controller = op->controller,
		.waiter = &op->waiter,
		.id = op->id,
		.participle = "expanded",
		.require = require_growth,
		.path = EXPAND_PATH,
		.request = &op->request.base,
		.reply_type = &csi__v1__controller_expand_volume_response__descriptor,
		.take = take_growth,
		.end = on_end,
		.user = op};
}

void controller_expand(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ControllerExpandVolumeRequest *request, Csi__V1__ControllerExpandVolumeResponse *reply)
{
	struct expand *op = arena_alloc(waiter->arena, sizeof(*op));
	struct error *err = NULL;
	uint64_t limit_bytes;
	bool is_block;

	*op = (struct expand){.controller = c,
		.waiter = *waiter,
		.id = request->volume_id,
		.request = *request,
		.reply = reply};
	if (csi_check_expand(request, &op->required_bytes, &limit_bytes, &is_block, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	op->key = volume_key_of_handle(op->id);
	if (!key_lock(c->locks, &op->key)) {
		err_set(&err, ERR_ABORTED, "another call for volume %s is in progress", op->id);
		waiter->finish(waiter->user, err);
		return;
	}
	prepare_calls(op);
	read_record(op);
}

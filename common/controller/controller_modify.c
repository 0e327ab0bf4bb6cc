/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerModifyVolume: done when each node that has a copy of the volume has changed the parameters there.
 * The record of the volume is only read: it shows what was asked for at its creation, and the nodes decide by
 * their own records. */
#include "base/mem.h"
#include "controller/controller_private.h"
#include "controller/copy_calls.h"
#include "csi/controller_request.h"

#define MODIFY_PATH "/csi.v1.Controller/ControllerModifyVolume"

/* One ControllerModifyVolume. Lives in the call's arena. */
struct modify {
	struct controller *controller;
	struct waiter waiter;
	const char *id;
	Csi__V1__ControllerModifyVolumeRequest request; /* for the nodes; borrows from the caller's */
	struct volume_key key;
	struct copy_calls calls;
};

static void finish(struct modify *op, struct error *error)
{
	key_unlock(op->controller->locks, &op->key);
	op->waiter.finish(op->waiter.user, error);
}

static void on_end(void *user, struct error *failure)
{
	finish(user, failure);
}

/* external-resizer tries again, and users may name another class. */
static int require_modification(const struct node *node, struct error **err)
{
	if (node->report.serves_modification)
		return 0;
	return err_set(err, ERR_UNIMPLEMENTED,
		"the driver %s on node %s cannot modify volumes: update the driver there",
		node->report.version, node->report.node_id);
}

static void on_read(void *user, struct pmem_volume *record, const struct error *error)
{
	struct modify *op = user;
	struct error *err = NULL;

	if (error)
		finish(op, controller_record_failure(op->id, error));
	else if (copy_calls_find(&op->calls, record, &err) < 0)
		finish(op, err);
	else
		copy_calls_begin(&op->calls);
	pmem_volume_free(record);
}

static void prepare_calls(struct modify *op)
{
	op->request.n_secrets = 0;
	op->request.secrets = NULL;
	op->calls = (struct copy_calls){.controller = op->controller,
		.waiter = &op->waiter,
		.id = op->id,
		.participle = "modified",
		.require = require_modification,
		.path = MODIFY_PATH,
		.request = &op->request.base,
		.reply_type = &csi__v1__controller_modify_volume_response__descriptor,
		.end = on_end,
		.user = op};
}

void controller_modify(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ControllerModifyVolumeRequest *request)
{
	struct modify *op = arena_alloc(waiter->arena, sizeof(*op));
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct error *err = NULL;

	*op = (struct modify){
		.controller = c, .waiter = *waiter, .id = request->volume_id, .request = *request};
	if (csi_read_modify(request, &parameters, &err) < 0) {
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
	controller_read_record(c, &op->key, on_read, op);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerExpandVolume: done when each node that has a copy of the volume has said that the copy has grown.
 * The record says which size was asked for before a node is asked. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "csi/controller_request.h"
#include "volume/id.h"

#define EXPAND_PATH "/csi.v1.Controller/ControllerExpandVolume"
/* Nodes that are asked at a time for copies of one cache volume. */
#define EXPAND_CALLS_MAX 64

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
	const char **targets; /* node IDs */
	size_t n_targets;
	size_t next;
	size_t n_asking;
	uint64_t size_bytes;   /* of the smallest copy, as the nodes have answered; 0: none has */
	struct error *absent;  /* of a node that has no copy; NULL: none */
	struct error *failure; /* the one that matters most of others; NULL: none */
};

struct expand_call {
	struct expand *op;
	const char *node_id;
};

static void finish(struct expand *op, struct error *error)
{
	pmem_volume_free(op->record);
	error_free(op->absent);
	key_unlock(op->controller->locks, &op->key);
	op->waiter.finish(op->waiter.user, error);
}

/* Whether @error leaves open if the volume grows after all. */
static bool is_open(const struct error *error)
{
	return error->code == ERR_UNAVAILABLE || error->code == ERR_DEADLINE || error->code == ERR_ABORTED;
}

/* Of several copies one whose outcome is open decides: external-resizer must not ask for another size then.
 */
static void keep_failure(struct expand *op, struct error *failure)
{
	if (op->failure && (is_open(op->failure) || !is_open(failure))) {
		error_free(failure);
		return;
	}
	error_free(op->failure);
	op->failure = failure;
}

/* The failure of a node for external-resizer, by what it makes of each code (pkg/util/util.go and
 * pkg/controller/expand_and_recover.go of 2.3.0): after INVALID_ARGUMENT, NOT_FOUND and OUT_OF_RANGE it tries
 * again each --retry-interval-max, and users may lower their request; after RESOURCE_EXHAUSTED it asks for
 * the same size until it gets that, even if users have lowered the request. */
static struct error *pass_on(const char *node_id, const struct error *error)
{
	struct error *passed = NULL;
	bool as_it_is = error->code == ERR_NOT_FOUND || error->code == ERR_UNIMPLEMENTED ||
			error->code == ERR_INTERNAL;

	if (error->code == ERR_EXHAUSTED)
		err_set(&passed, ERR_RANGE, "node %s: %s: %s", node_id, err_code_name(error->code),
			error->msg);
	else if (as_it_is)
		err_set(&passed, error->code, "node %s: %s", node_id, error->msg);
	else
		passed = controller_pass_on(node_id, error);
	return passed;
}

/* The record may name nodes that were asked to make the volume and have no copy. */
static void conclude(struct expand *op)
{
	if (!op->failure && op->size_bytes == 0)
		op->failure = TAKE_PTR(op->absent);
	if (!op->failure)
		op->reply->capacity_bytes = (int64_t)op->size_bytes;
	finish(op, op->failure);
}

static void pump(struct expand *op);

/* A node that has less than what was asked for has not done it. */
static int check_answer(
	const struct expand *op, const Csi__V1__ControllerExpandVolumeResponse *answer, struct error **err)
{
	if (answer->capacity_bytes > 0 && (uint64_t)answer->capacity_bytes >= op->required_bytes)
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"it replied that the volume has %lld bytes, but %llu were requested",
		(long long)answer->capacity_bytes, (unsigned long long)op->required_bytes);
}

static void take_growth(
	struct expand *op, const char *node_id, const Csi__V1__ControllerExpandVolumeResponse *answer)
{
	struct controller *c = op->controller;
	uint64_t size_bytes = (uint64_t)answer->capacity_bytes;

	if (op->size_bytes == 0 || size_bytes < op->size_bytes)
		op->size_bytes = size_bytes;
	op->reply->node_expansion_required =
		op->reply->node_expansion_required || answer->node_expansion_required;
	node_table_note_grown(c->config.nodes, node_id, op->id, size_bytes, controller_now_ns(c));
}

static void on_answer(void *user, const ProtobufCMessage *message, const struct error *error)
{
	CLEANUP(error_freep) struct error *bad = NULL;
	const Csi__V1__ControllerExpandVolumeResponse *answer =
		(const Csi__V1__ControllerExpandVolumeResponse *)message;
	const struct expand_call *call = user;
	struct expand *op = call->op;

	op->n_asking--;
	if (!error && check_answer(op, answer, &bad) < 0)
		error = bad;
	if (error && error->code == ERR_NOT_FOUND) {
		error_free(op->absent);
		op->absent = pass_on(call->node_id, error);
	} else if (error) {
		keep_failure(op, pass_on(call->node_id, error));
	} else {
		take_growth(op, call->node_id, answer);
	}
	pump(op);
}

static void ask(struct expand *op, const char *node_id)
{
	struct controller *c = op->controller;
	const struct node *node = controller_live_node(c, node_id);
	uint64_t timeout_ms = controller_timeout_ms(c, op->waiter.deadline_ns);
	struct expand_call *call = arena_alloc(op->waiter.arena, sizeof(*call));
	struct error *failure = NULL;

	*call = (struct expand_call){.op = op, .node_id = node_id};
	if (timeout_ms == 0 || !op->waiter.is_wanted(op->waiter.user)) {
		err_set(&failure, ERR_DEADLINE, "the deadline does not allow asking node %s", node_id);
		keep_failure(op, failure);
	} else if (!node) {
		err_set(&failure, ERR_UNAVAILABLE, "node %s, which has volume %s, is not connected", node_id,
			op->id);
		keep_failure(op, failure);
	} else {
		op->n_asking++;
		controller_call(c, node, EXPAND_PATH, &op->request.base,
			&csi__v1__controller_expand_volume_response__descriptor, timeout_ms, on_answer, call);
	}
}

static void pump(struct expand *op)
{
	while (op->next < op->n_targets && op->n_asking < EXPAND_CALLS_MAX)
		ask(op, op->targets[op->next++]);
	if (op->n_asking == 0)
		conclude(op);
}

/* What the nodes report of the volume @id; released by its owner. */
struct copies {
	struct node_hit *hits;
	size_t n;
};

static void copies_done(struct copies *copies)
{
	free(copies->hits);
}

/* One that is being erased is of a volume that was deleted. */
static bool reports_copy(const struct copies *copies, const char *node_id)
{
	for (size_t i = 0; i < copies->n; i++) {
		if (str_eq(copies->hits[i].node->report.node_id, node_id) &&
			copies->hits[i].volume->phase != PHASE_ERASING)
			return true;
	}
	return false;
}

/* Return: 0, or -1 with ERR_UNIMPLEMENTED: external-resizer tries again, and users may lower their request.
 */
static int require_growth(const struct node *node, struct error **err)
{
	if (node->report.serves_expansion)
		return 0;
	return err_set(err, ERR_UNIMPLEMENTED,
		"the driver %s on node %s cannot grow volumes: update the driver there", node->report.version,
		node->report.node_id);
}

static const char *why_unreachable(const struct expand *op, const char *node_id)
{
	if (controller_is_out_of_service(op->controller, node_id))
		return "has the taint node.kubernetes.io/out-of-service";
	if (pmem_volume_is_lost(op->record, node_id))
		return "is lost";
	return "is not connected";
}

/* That a report shows no copy proves nothing: it may be older than the volume. Return: 0, and a target more
 * where @node_id may have a copy; or -1 with ERR_UNAVAILABLE (that is not known now), ERR_UNIMPLEMENTED. */
static int add_node(struct expand *op, const struct copies *copies, const char *node_id, struct error **err)
{
	const struct node *node = controller_live_node(op->controller, node_id);

	if (!reports_copy(copies, node_id) && volume_id_names_other_node(op->id, node_id))
		return 0;
	if (!node || controller_is_out_of_service(op->controller, node_id) ||
		pmem_volume_is_lost(op->record, node_id))
		return err_set(err, ERR_UNAVAILABLE, "node %s may have volume %s, but %s", node_id, op->id,
			why_unreachable(op, node_id));
	if (!node->report.has_inventory)
		return err_set(err, ERR_UNAVAILABLE, "node %s has not reported its volumes yet", node_id);
	if (require_growth(node, err) < 0)
		return -1;
	op->targets[op->n_targets++] = arena_strdup(op->waiter.arena, node_id);
	return 0;
}

/* All copies grow, of a cache volume on several nodes. A node that reports one and that the record does not
 * name is added to the record, which is written before the node is asked. */
static int find_targets(struct expand *op, const struct copies *copies, struct error **err)
{
	for (size_t i = 0; i < copies->n; i++) {
		if (copies->hits[i].volume->phase != PHASE_ERASING)
			pmem_volume_add_node(op->record, copies->hits[i].node->report.node_id);
	}
	op->n_targets = op->next = 0;
	op->targets = arena_alloc(op->waiter.arena, strv_len(op->record->nodes) * sizeof(*op->targets));
	for (size_t i = 0; i < strv_len(op->record->nodes); i++) {
		if (add_node(op, copies, op->record->nodes[i], err) < 0)
			return -1;
	}
	if (op->n_targets == 0)
		return err_set(err, ERR_NOT_FOUND, "no node has volume %s", op->id);
	return 0;
}

/* What there is to say without a record. */
static int judge_unrecorded(struct expand *op, const struct copies *copies, struct error **err)
{
	for (size_t i = 0; i < copies->n; i++) {
		if (copies->hits[i].volume->is_inline)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"volume %s is an inline volume, which cannot be expanded", op->id);
		if (copies->hits[i].volume->phase != PHASE_ERASING)
			return err_set(err, ERR_UNAVAILABLE,
				"volume %s has no PmemVolume yet: the leading controller will create it from the "
				"node's report",
				op->id);
	}
	if (controller_require_inventories(op->controller, err) < 0)
		return -1;
	return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", op->id);
}

/* Fill in the targets. Return: 0, or -1 with what the caller gets. */
static int prepare(struct expand *op, struct error **err)
{
	CLEANUP(copies_done) struct copies copies = {0};
	const struct pmem_volume *r = op->record;

	/* before that a node that is out of service looks like any other */
	if (controller_require_ready(op->controller, err) < 0)
		return -1;
	copies.n = node_table_find_volume(op->controller->config.nodes, op->id, &copies.hits);
	if (!r || (r->handle && !str_eq(r->handle, op->id)))
		return judge_unrecorded(op, &copies, err);
	if (r->snapshot)
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist: it is a snapshot", op->id);
	if (r->deleting || r->retained)
		return err_set(err, ERR_ABORTED, "volume %s %s", op->id,
			r->deleting ? "is being deleted" : "was deleted while its node was lost");
	return find_targets(op, &copies, err);
}

static void read_record(struct expand *op);

static void on_written(void *user, struct pmem_volume *record, const struct error *error)
{
	struct expand *op = user;

	controller_take_record(&op->record, record);
	if (!error)
		pump(op);
	else if ((error->code == ERR_ABORTED || error->code == ERR_NOT_FOUND) &&
		 op->n_reads < RECORD_READS_MAX)
		read_record(op);
	else
		finish(op, controller_record_failure(op->id, error));
}

/* The size in the record never becomes smaller here: a node may still get an earlier call for more. Each
 * attempt changes the record, so that the leader cannot conclude meanwhile that no node is asked
 * (volume_objects.h). */
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
	else if (prepare(op, &err) < 0)
		finish(op, err);
	else
		write_size(op);
}

static void read_record(struct expand *op)
{
	op->n_reads++;
	controller_read_record(op->controller, &op->key, on_read, op);
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
	op->request.n_secrets = 0;
	op->request.secrets = NULL;
	read_record(op);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/copy_calls.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/volume_status.h"
#include "volume/id.h"

/* Nodes that are asked at a time for copies of one cache volume. */
#define CALLS_MAX 64

struct copy_call {
	struct copy_calls *all;
	const char *node_id;
};

/* The copies of the volume that nodes report. */
struct copies {
	struct node_hit *hits;
	size_t n;
};

static void copies_done(struct copies *copies)
{
	free(copies->hits);
}

/* A copy that is being erased does not count: its volume was deleted. */
static bool reports_copy(const struct copies *copies, const char *node_id)
{
	for (size_t i = 0; i < copies->n; i++) {
		if (str_eq(copies->hits[i].node->report.node_id, node_id) &&
			copies->hits[i].volume->phase != PHASE_ERASING)
			return true;
	}
	return false;
}

static const char *why_unreachable(
	const struct controller *c, const struct pmem_volume *record, const char *node_id)
{
	if (controller_is_out_of_service(c, node_id))
		return "has the taint node.kubernetes.io/out-of-service";
	if (pmem_volume_is_lost(record, node_id))
		return "is lost";
	return "is not connected";
}

/* That a report shows no copy proves nothing: it may be older than the volume. Return: 0, and a target more
 * where @node_id may have a copy; or -1 with ERR_UNAVAILABLE (that is not known now), ERR_UNIMPLEMENTED. */
static int add_node(struct copy_calls *calls, const struct copies *copies, const struct pmem_volume *record,
	const char *node_id, struct error **err)
{
	const struct controller *c = calls->controller;
	const struct node *node = controller_live_node(c, node_id);

	if (!reports_copy(copies, node_id) && volume_id_names_other_node(calls->id, node_id))
		return 0;
	if (!node || controller_is_out_of_service(c, node_id) || pmem_volume_is_lost(record, node_id))
		return err_set(err, ERR_UNAVAILABLE, "node %s may have volume %s, but %s", node_id, calls->id,
			why_unreachable(c, record, node_id));
	if (!node->report.has_inventory)
		return err_set(err, ERR_UNAVAILABLE, "node %s has not reported its volumes yet", node_id);
	if (calls->require(node, err) < 0)
		return -1;
	calls->targets[calls->n_targets++] = arena_strdup(calls->waiter->arena, node_id);
	return 0;
}

/* All copies are asked, of a cache volume on several nodes. */
static int find_targets(
	struct copy_calls *calls, const struct copies *copies, struct pmem_volume *record, struct error **err)
{
	for (size_t i = 0; i < copies->n; i++) {
		if (copies->hits[i].volume->phase != PHASE_ERASING)
			pmem_volume_add_node(record, copies->hits[i].node->report.node_id);
	}
	calls->n_targets = 0;
	calls->targets = arena_alloc(calls->waiter->arena, strv_len(record->nodes) * sizeof(*calls->targets));
	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		if (add_node(calls, copies, record, record->nodes[i], err) < 0)
			return -1;
	}
	if (calls->n_targets == 0)
		return err_set(err, ERR_NOT_FOUND, "no node has volume %s", calls->id);
	return 0;
}

/* Chooses the error for a volume without a usable record. */
static int judge_unrecorded(const struct copy_calls *calls, const struct copies *copies, struct error **err)
{
	for (size_t i = 0; i < copies->n; i++) {
		if (copies->hits[i].volume->is_inline)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"volume %s is an inline volume, which cannot be %s", calls->id,
				calls->participle);
		if (copies->hits[i].volume->phase != PHASE_ERASING)
			return err_set(err, ERR_UNAVAILABLE,
				"volume %s has no PmemVolume yet: the leading controller will create it from the "
				"node's report",
				calls->id);
	}
	if (controller_require_inventories(calls->controller, err) < 0)
		return -1;
	return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", calls->id);
}

int copy_calls_find(struct copy_calls *calls, struct pmem_volume *r, struct error **err)
{
	CLEANUP(copies_done) struct copies copies = {0};

	/* before that a node that is out of service looks like any other */
	if (controller_require_ready(calls->controller, err) < 0)
		return -1;
	copies.n = volume_status_holders(r, calls->controller->config.nodes, calls->id, &copies.hits);
	if (!r || (r->handle && !str_eq(r->handle, calls->id)))
		return judge_unrecorded(calls, &copies, err);
	if (r->snapshot)
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist: it is a snapshot", calls->id);
	if (r->deleting || r->retained)
		return err_set(err, ERR_ABORTED, "volume %s %s", calls->id,
			r->deleting ? "is being deleted" : "was deleted while its node was lost");
	return find_targets(calls, &copies, r, err);
}

/* Whether @error leaves open if it is done after all. */
static bool is_open(const struct error *error)
{
	return error->code == ERR_UNAVAILABLE || error->code == ERR_DEADLINE || error->code == ERR_ABORTED;
}

static void keep_failure(struct copy_calls *calls, struct error *failure)
{
	if (calls->failure && (is_open(calls->failure) || !is_open(failure))) {
		error_free(failure);
		return;
	}
	error_free(calls->failure);
	calls->failure = failure;
}

/* The failure of a node for external-resizer, by what it makes of each code (pkg/util/util.go,
 * pkg/controller/expand_and_recover.go and pkg/modifycontroller/modify_volume.go of 2.3.0).
 *
 * Growth: after INVALID_ARGUMENT, NOT_FOUND and OUT_OF_RANGE it tries again each --retry-interval-max, and
 * users may lower their request; after RESOURCE_EXHAUSTED it asks for the same size until it gets that, even
 * if users have lowered the request.
 *
 * Modification: after INVALID_ARGUMENT it calls the class infeasible and tries again each
 * --retry-interval-max. After CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, RESOURCE_EXHAUSTED and ABORTED it
 * asks for the same class until that succeeds, even if users have named another one; after all others, users
 * may name another one. */
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
static void conclude(struct copy_calls *calls)
{
	if (!calls->failure && !calls->any)
		calls->failure = TAKE_PTR(calls->absent);
	error_free(calls->absent);
	calls->end(calls->user, TAKE_PTR(calls->failure));
}

static void pump(struct copy_calls *calls);

static void on_answer(void *user, const ProtobufCMessage *answer, const struct error *error)
{
	CLEANUP(error_freep) struct error *bad = NULL;
	const struct copy_call *call = user;
	struct copy_calls *calls = call->all;

	calls->n_asking--;
	if (!error && calls->take && calls->take(calls->user, call->node_id, answer, &bad) < 0)
		error = bad;
	if (error && error->code == ERR_NOT_FOUND) {
		error_free(calls->absent);
		calls->absent = pass_on(call->node_id, error);
	} else if (error) {
		keep_failure(calls, pass_on(call->node_id, error));
	} else {
		calls->any = true;
	}
	pump(calls);
}

static void ask(struct copy_calls *calls, const char *node_id)
{
	struct controller *c = calls->controller;
	const struct waiter *waiter = calls->waiter;
	const struct node *node = controller_live_node(c, node_id);
	uint64_t timeout_ms = controller_timeout_ms(c, waiter->deadline_ns);
	struct copy_call *call = arena_alloc(waiter->arena, sizeof(*call));
	struct error *failure = NULL;

	*call = (struct copy_call){.all = calls, .node_id = node_id};
	if (timeout_ms == 0 || !waiter->is_wanted(waiter->user)) {
		err_set(&failure, ERR_DEADLINE, "the deadline does not allow asking node %s", node_id);
		keep_failure(calls, failure);
	} else if (!node) {
		err_set(&failure, ERR_UNAVAILABLE, "node %s, which has volume %s, is not connected", node_id,
			calls->id);
		keep_failure(calls, failure);
	} else {
		calls->n_asking++;
		controller_call(
			c, node, calls->path, calls->request, calls->reply_type, timeout_ms, on_answer, call);
	}
}

static void pump(struct copy_calls *calls)
{
	while (calls->next < calls->n_targets && calls->n_asking < CALLS_MAX)
		ask(calls, calls->targets[calls->next++]);
	if (calls->n_asking == 0)
		conclude(calls);
}

void copy_calls_begin(struct copy_calls *calls)
{
	calls->next = 0;
	pump(calls);
}

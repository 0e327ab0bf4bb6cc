/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteVolume and DeleteSnapshot: done when every node that may have the volume has said that it has not,
 * and its record says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry.pb-c.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "controller/recorded_nodes.h"
#include "controller/volume_status.h"
#include "csi/controller_request.h"
#include "csi/field_limits.h"
#include "volume/id.h"

#define DELETE_PATH          "/csi.v1.Controller/DeleteVolume"
#define DELETE_SNAPSHOT_PATH "/csi.v1.Controller/DeleteSnapshot"
#define DELETE_UNSTAGED_PATH "/registry.v0.NodeVolumes/DeleteIfNeverStaged"
/* Nodes that are asked at a time. */
#define DELETE_CALLS_MAX 64
/* For a copy whose deletion no caller waits for. */
#define COPY_TIMEOUT_MS 30000
/* IDs of the Go driver up to 0.6: a UUID, or sha1 of the name. */
#define UUID_LEN     36
#define SHA1_HEX_LEN 40

struct delete
{
	struct controller *controller;
	struct waiter waiter;
	const char *id;
	bool snapshot;     /* it is the ID of a snapshot, and not of a volume */
	const char *group; /* ID of the group snapshot that is deleted with it; NULL: none */
	struct volume_key key;
	struct pmem_volume *record; /* NULL: no record, or the record of another handle */
	unsigned n_reads;
	struct recorded_nodes *recorded; /* read before the record; NULL: not read */
	Csi__V1__DeleteVolumeRequest request;
	Csi__V1__DeleteSnapshotRequest snapshot_request;
	const char **targets; /* node IDs */
	size_t n_targets;
	size_t n_holders; /* the first of them: they report the volume */
	bool is_claimed;  /* no node has the name in the ID, and targets report the ID as one of theirs */
	bool has_moved;   /* such a target has deleted it */
	size_t room;
	size_t next;
	size_t n_asking;
	char **kept;           /* strv: targets that stay in the record, since they have confirmed nothing */
	bool retains;          /* some of them are gone: what they may have is not deleted by this call */
	struct error *failure; /* the one that matters most; NULL: none */
};

struct delete_call {
	struct delete *op;
	const char *node_id;
	char id[VOLUME_HANDLE_MAX + 1]; /* of the copy on that node */
	bool is_claim;                  /* the node reported the ID of the call, which names another node */
};

static bool is_made_of(const char *text, const char *characters, size_t n)
{
	return strlen(text) == n && strspn(text, characters) == n;
}

/* In a form in which any driver of ours has given out IDs. */
static bool may_be_ours(const char *handle)
{
	return volume_id_has_minted_form(handle) || is_made_of(handle, "0123456789abcdef", SHA1_HEX_LEN) ||
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
static void add_unregistered(struct delete *op, const char *hash)
{
	const struct controller *c = op->controller;
	const char *node_id;
	size_t at = 0;

	while ((node_id = cluster_nodes_next(c->config.cluster, &at)) != NULL) {
		if (!node_table_get(c->config.nodes, node_id) && (!hash || hash_fits(node_id, hash)) &&
			!is_target(op, node_id) && !recorded_nodes_lack(op->recorded, op->record, node_id))
			add_target(op, node_id);
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

/* A record may name other nodes than the handle does: they were asked before, or it is an old one. */
static bool has_named_target(const struct delete *op)
{
	for (size_t i = 0; i < op->n_targets; i++) {
		if (volume_id_names_node(op->id, op->targets[i]))
			return true;
	}
	return false;
}

/* Whether a node of the name in the ID is in the table or in the cluster. */
static bool exists(const struct delete *op)
{
	const struct controller *c = op->controller;

	for (size_t i = 0; i < op->n_targets; i++) {
		const char *node_id = op->targets[i];

		if (volume_id_names_node(op->id, node_id) &&
			(node_table_get(c->config.nodes, node_id) ||
				cluster_nodes_have(c->config.cluster, node_id)))
			return true;
	}
	return false;
}

/* Whether @node reports @id although it names another node. */
static bool claims(const struct node *node, const char *id)
{
	return strv_contains(node->report.foreign, id);
}

/* A machine whose Node has got another name still has the volumes of the old one. Where a node has the name
 * in the ID, or may have it, that one alone is believed. */
static void add_claimants(struct delete *op)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(op->controller->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (claims(nodes[i], op->id))
			add_target(op, nodes[i]->report.node_id);
		op->is_claimed = op->is_claimed || claims(nodes[i], op->id);
	}
}

static int route_by_hash(struct delete *op, const char *hash, struct error **err)
{
	struct controller *c = op->controller;
	const struct node **nodes = NULL;
	size_t n = node_table_find_hash(c->config.nodes, hash, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (!is_target(op, nodes[i]->report.node_id))
			add_target(op, nodes[i]->report.node_id);
	}
	free(nodes);
	add_unregistered(op, hash);
	if (op->n_holders > 0 || exists(op))
		return 0;
	/* before that, a node of that name may still register */
	bool are_all_known = cluster_nodes_ready(c->config.cluster) && !controller_in_start_window(c);
	if (are_all_known)
		add_claimants(op);
	if (op->is_claimed || has_named_target(op) || (c->config.forget_gone_nodes && are_all_known))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"volume %s is on a node that has not registered (%s in the volume ID)", op->id, hash);
}

static int route_to_all(struct delete *op, struct error **err)
{
	struct controller *c = op->controller;
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	/* Not all that are live have registered in the start window, and their Node objects may be gone. */
	if (!cluster_nodes_ready(c->config.cluster) || controller_in_start_window(c))
		return err_set(err, ERR_UNAVAILABLE,
			"volume %s may be on any node, and not all nodes are known yet", op->id);
	for (size_t i = 0; i < n; i++) {
		/* the last report of a node that is away counts, since such IDs are not given out any more */
		bool is_known = !nodes[i]->live && nodes[i]->report.has_inventory;

		if (!is_known && !is_target(op, nodes[i]->report.node_id))
			add_target(op, nodes[i]->report.node_id);
	}
	add_unregistered(op, NULL);
	return 0;
}

/* The record names all nodes that were asked to make the volume. It may be older than the volume, after etcd
 * was restored: what is said elsewhere counts, too. */
static void route_by_record(struct delete *op)
{
	for (size_t i = 0; i < strv_len(op->record->nodes); i++) {
		if (!is_target(op, op->record->nodes[i]))
			add_target(op, op->record->nodes[i]);
	}
}

/* Return: 0, or -1 with ERR_UNAVAILABLE. Without targets there is nothing to delete. */
static int route(struct delete *op, struct error **err)
{
	const char *dot = strrchr(op->id, '.');

	add_holders(op);
	op->n_holders = op->n_targets;
	if (op->record)
		route_by_record(op);
	if (!may_be_ours(op->id))
		return 0;
	if (volume_id_has_minted_form(op->id) && dot)
		return route_by_hash(op, dot + 1, err);
	/* a record that was made of reports does not name nodes that have not reported */
	return op->record && op->record->handle && !op->record->origin ? 0 : route_to_all(op, err);
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

static void finish(struct delete *op, struct error *error)
{
	pmem_volume_free(op->record);
	recorded_nodes_free(op->recorded);
	strv_free(op->kept);
	key_unlock(op->controller->locks, &op->key);
	op->waiter.finish(op->waiter.user, error);
}

static void read_record(struct delete *op);

/* A record that has changed is read again: another node may have been asked to make the volume. */
static void on_confirmed(void *user, struct pmem_volume *record, const struct error *error)
{
	struct delete *op = user;

	controller_take_record(&op->record, record);
	if (error && error->code == ERR_ABORTED && op->n_reads < RECORD_READS_MAX)
		read_record(op);
	else
		finish(op, error ? controller_record_failure(op->id, error) : NULL);
}

/* The call has succeeded before, and again no node was asked. */
static bool is_confirmed(const struct delete *op)
{
	const struct pmem_volume *r = op->record;

	return op->retains && r->retained && !r->deleting && strv_len(op->kept) == strv_len(r->nodes);
}

/* All nodes that exist have confirmed that they have no copy. Where others may have one, the deletion is over
 * nevertheless, so that it is not continued when such a node returns. */
static void confirm(struct delete *op)
{
	struct pmem_volume *r = op->record;

	r->retained = r->retained || op->retains;
	r->deleting = r->deleting && !op->retains;
	strv_free(r->nodes);
	r->nodes = TAKE_PTR(op->kept);
	controller_write_record(op->controller, RECORD_SPEC, r, on_confirmed, op);
}

static void conclude(struct delete *op)
{
	const struct pmem_volume *r = op->record;

	/* the volume was on the machine that had the name of the node that is gone */
	if (!op->failure && op->has_moved) {
		strv_free(TAKE_PTR(op->kept));
		op->retains = false;
	}
	if (op->failure || !r || strv_len(r->nodes) == 0 || is_confirmed(op))
		finish(op, op->failure);
	else
		confirm(op);
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
		if (error->code == ERR_CANCELLED)
			op->next = op->n_targets; /* the program ends */
	} else {
		node_table_note_deleted(c->config.nodes, call->node_id, call->id, controller_now_ns(c));
		op->has_moved = op->has_moved || (op->is_claimed && call->is_claim);
	}
	pump(op);
}

/* The copy on a node that the handle does not name has another ID, and no caller has ever got it. Return:
 * false: this copy must not be deleted. */
static bool find_id(const struct delete *op, const struct node *node, char id[static VOLUME_HANDLE_MAX + 1])
{
	const char *name = op->record ? op->record->volume_name : NULL;

	snprintf(id, VOLUME_HANDLE_MAX + 1, "%s", op->id);
	return claims(node, op->id) || !volume_id_names_other_node(op->id, node->report.node_id) || !name ||
	       controller_find_copy(node, name, /* is_cache= */ false, id);
}

static void ask_live(struct delete *op, const struct node *node, const char *node_id)
{
	struct controller *c = op->controller;
	uint64_t timeout_ms = controller_timeout_ms(c, op->waiter.deadline_ns);
	struct delete_call *call = arena_alloc(op->waiter.arena, sizeof(*call));
	struct error *failure = NULL;

	*call = (struct delete_call){.op = op, .node_id = node_id, .is_claim = claims(node, op->id)};
	if (timeout_ms == 0) {
		err_set(&failure, ERR_DEADLINE, "the deadline does not allow asking node %s", node_id);
		keep_failure(op, failure);
		return;
	}
	if (!find_id(op, node, call->id)) {
		strv_add(&op->kept, node_id);
		return;
	}
	op->n_asking++;
	if (op->snapshot) {
		op->snapshot_request.snapshot_id = call->id;
		controller_call(c, node, DELETE_SNAPSHOT_PATH, &op->snapshot_request.base,
			&csi__v1__delete_snapshot_response__descriptor, timeout_ms, on_answer, call);
		return;
	}
	op->request.volume_id = call->id;
	controller_call(c, node, DELETE_PATH, &op->request.base, &csi__v1__delete_volume_response__descriptor,
		timeout_ms, on_answer, call);
}

/* Return: -1 */
static int refuse_returned(const char *node_id, const char *id, struct error **err)
{
	return err_set(err, ERR_UNAVAILABLE,
		"node %s has returned after it was lost, but the PmemVolume of volume %s is not updated yet; try "
		"again",
		node_id, id);
}

static bool is_lost(const struct delete *op, const char *node_id)
{
	return op->record && pmem_volume_is_lost(op->record, node_id);
}

/* Whether @node_id counts as having answered. */
static bool is_gone(const struct delete *op, const char *node_id)
{
	const struct controller *c = op->controller;
	bool may_be_gone =
		!volume_id_names_node(op->id, node_id) || c->config.forget_gone_nodes || is_lost(op, node_id);

	return may_be_gone && controller_is_gone(c, node_id);
}

/* A node that is lost according to the record is not asked, even if it has just returned: the leader shows
 * first that it has the volume. */
static void ask(struct delete *op, const char *node_id)
{
	const struct node *node = controller_live_node(op->controller, node_id);
	struct error *failure = NULL;

	if (node && !is_lost(op, node_id)) {
		ask_live(op, node, node_id);
	} else if (is_gone(op, node_id)) {
		strv_add(&op->kept, node_id);
		op->retains = true;
	} else if (node) {
		(void)refuse_returned(node_id, op->id, &failure);
		keep_failure(op, failure);
	} else if (is_lost(op, node_id)) {
		err_set(&failure, ERR_UNAVAILABLE,
			"volume %s cannot be deleted yet: node %s was lost and may be returning, since its Node "
			"object exists, its lease has just ended, or the controller is still starting; try again",
			op->id, node_id);
		keep_failure(op, failure);
	} else {
		err_set(&failure, ERR_UNAVAILABLE, "node %s may have volume %s, but is not connected",
			node_id, op->id);
		keep_failure(op, failure);
	}
}

static void pump(struct delete *op)
{
	while (op->next < op->n_targets && op->n_asking < DELETE_CALLS_MAX)
		ask(op, op->targets[op->next++]);
	if (op->n_asking == 0)
		conclude(op);
}

static void on_marked(void *user, struct pmem_volume *record, const struct error *error)
{
	struct delete *op = user;

	controller_take_record(&op->record, record);
	if (!error)
		pump(op);
	else if ((error->code == ERR_ABORTED || error->code == ERR_NOT_FOUND) &&
		 op->n_reads < RECORD_READS_MAX)
		read_record(op);
	else
		finish(op, controller_record_failure(op->id, error));
}

/* The record says what is going on before a node is asked. */
static void mark(struct delete *op)
{
	op->record->deleting = true;
	controller_write_record(op->controller, RECORD_SPEC, op->record, on_marked, op);
}

/* Whether no node has to be asked. */
static bool are_all_gone(const struct delete *op)
{
	for (size_t i = 0; i < op->n_targets; i++) {
		if (!is_gone(op, op->targets[i]))
			return false;
	}
	return op->n_targets > 0;
}

/* Whether @record is that of the volume with @handle. A record with another handle is that of a volume which
 * was made elsewhere for the same name. */
static bool is_record_of(const struct pmem_volume *record, const char *handle)
{
	return !record->handle || str_eq(record->handle, handle);
}

/* Whether the ID is that of a snapshot although a volume is to be deleted, or the reverse: then no node has
 * the volume or snapshot that is to be deleted. A record that the controller's own calls made decides.
 * Without such a record the report of the node that the ID names decides; an ID that names no node is that of
 * a volume, whatever nodes report. */
static bool is_of_other_kind(const struct delete *op)
{
	const struct pmem_volume *r = op->record;
	struct node_hit *hits;
	bool is_known = false;
	bool is_other = false;

	if (r && !r->origin)
		return r->snapshot != op->snapshot;
	if (!volume_id_has_node(op->id))
		return op->snapshot;
	size_t n = volume_status_holders(r, op->controller->config.nodes, op->id, &hits);
	for (size_t i = 0; i < n; i++) {
		/* of a damaged one the node does not know what it is */
		if (hits[i].volume->phase == PHASE_DAMAGED)
			continue;
		is_known = is_known || hits[i].volume->snapshot == op->snapshot;
		is_other = true;
	}
	free(hits);
	return !is_known && is_other;
}

/* Finds the group of the snapshot in its record or, if it has none, in the reports of nodes. Return: ID of
 * the group, borrowed for the call; NULL: no group is known. */
static const char *group_of(const struct delete *op)
{
	struct node_hit *hits;
	size_t n = volume_status_holders(op->record, op->controller->config.nodes, op->id, &hits);
	const char *group = op->record ? op->record->group : NULL;

	for (size_t i = 0; i < n && !group; i++)
		group = hits[i].volume->group;
	free(hits);
	return group;
}

/* A group is deleted as a whole, and nothing else with it. If no group of a snapshot is known, it is deleted
 * with any group when it has no record or one that was made from a report: its node may have lost the state
 * file that named the group. */
static int check_group(const struct delete *op, struct error **err)
{
	const char *group = op->snapshot ? group_of(op) : NULL;

	if (!op->group)
		return group ? csi_refuse_member(op->id, group, err) : 0;
	if (group ? str_eq(group, op->group) : !op->record || op->record->origin)
		return 0;
	return err_set(
		err, ERR_INVALID_ARGUMENT, "snapshot %s is not in group snapshot %s", op->id, op->group);
}

/* Finds the nodes that have not registered, so that only their PmemNodes can show that they have no copy.
 * Return: strv_free(); NULL: there are none, or PmemNodes cannot show that of this volume. */
static char **find_silent(const struct delete *op)
{
	const struct controller *c = op->controller;
	const struct pmem_volume *r = op->record;
	const char *node_id;
	char **silent = NULL;
	size_t at = 0;

	if (op->recorded || !c->config.records.read_node || !r || !r->origin || !r->handle ||
		volume_id_has_node(op->id) || !may_be_ours(op->id))
		return NULL;
	while ((node_id = cluster_nodes_next(c->config.cluster, &at)) != NULL) {
		if (!node_table_get(c->config.nodes, node_id) && !pmem_volume_has_node(r, node_id))
			strv_add(&silent, node_id);
	}
	return silent;
}

/* Reads the record again after the PmemNodes: a node that got a copy before its PmemNode was read is in the
 * record by then. */
static void on_nodes_read(void *user, struct recorded_nodes *recorded)
{
	struct delete *op = user;

	op->recorded = recorded;
	read_record(op);
}

static void on_read(void *user, struct pmem_volume *record, const struct error *error)
{
	CLEANUP(strv_freep) char **silent = NULL;
	struct delete *op = user;
	struct error *err = NULL;

	if (error) {
		finish(op, controller_record_failure(op->id, error));
		return;
	}
	if (record && !is_record_of(record, op->id))
		pmem_volume_free(TAKE_PTR(record));
	controller_take_record(&op->record, record);
	if (is_of_other_kind(op)) {
		finish(op, /* error= */ NULL);
		return;
	}
	if (check_group(op, &err) < 0) {
		finish(op, err);
		return;
	}
	op->n_targets = op->next = 0;
	op->retains = op->is_claimed = op->has_moved = false;
	strv_free(TAKE_PTR(op->kept));
	if (route(op, &err) < 0)
		finish(op, err);
	else if ((silent = find_silent(op)) != NULL)
		recorded_nodes_read(op->controller, silent, on_nodes_read, op);
	else if (record && !record->deleting && !are_all_gone(op))
		mark(op);
	else
		pump(op);
}

static void read_record(struct delete *op)
{
	op->n_reads++;
	controller_read_record(op->controller, &op->key, on_read, op);
}

/* @group: of struct delete */
static void begin(
	struct controller *c, const struct waiter *waiter, const char *id, bool snapshot, const char *group)
{
	struct delete *op = arena_alloc(waiter->arena, sizeof(*op));
	struct error *err = NULL;

	*op = (struct delete){
		.controller = c, .waiter = *waiter, .id = id, .snapshot = snapshot, .group = group};
	if (csi_require(id, snapshot ? "snapshot_id" : "volume_id", &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	op->key = volume_key_of_handle(op->id);
	if (!key_lock(c->locks, &op->key)) {
		err_set(&err, ERR_ABORTED, "another call for %s %s is in progress", volume_noun(snapshot),
			op->id);
		waiter->finish(waiter->user, err);
		return;
	}
	csi__v1__delete_volume_request__init(&op->request);
	csi__v1__delete_snapshot_request__init(&op->snapshot_request);
	read_record(op);
}

void controller_delete(
	struct controller *c, const struct waiter *waiter, const Csi__V1__DeleteVolumeRequest *request)
{
	begin(c, waiter, request->volume_id, /* snapshot= */ false, /* group= */ NULL);
}

void controller_delete_snapshot(
	struct controller *c, const struct waiter *waiter, const Csi__V1__DeleteSnapshotRequest *request)
{
	begin(c, waiter, request->snapshot_id, /* snapshot= */ true, /* group= */ NULL);
}

void controller_delete_member(
	struct controller *c, const struct waiter *waiter, const char *id, const char *group)
{
	begin(c, waiter, id, /* snapshot= */ true, group);
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

bool controller_find_copy(
	const struct node *node, const char *name, bool is_cache, char id[static VOLUME_ID_MAX + 1])
{
	const struct volume_report *v;
	size_t at = 0;

	volume_id_mint(name, is_cache ? NULL : node->report.node_id, id);
	while ((v = node_next_volume(node, &at)) != NULL) {
		if (str_eq(v->name, name) || str_eq(v->id, id))
			return v->made_by_controller && !v->ever_staged && str_eq(v->id, id);
	}
	return true;
}

void controller_delete_copy(
	struct controller *c, const struct node *node, const char *id, grpc_reply_fn fn, void *user)
{
	struct copy_call *call = x_malloc(sizeof(*call));
	Registry__V0__DeleteIfNeverStagedRequest request;

	*call = (struct copy_call){.controller = c,
		.node_id = x_strdup(node->report.node_id),
		.id = x_strdup(id),
		.fn = fn,
		.user = user};
	registry__v0__delete_if_never_staged_request__init(&request);
	request.volume_id = call->id;
	controller_call(c, node, DELETE_UNSTAGED_PATH, &request.base,
		&registry__v0__delete_if_never_staged_reply__descriptor, COPY_TIMEOUT_MS, on_copy_deleted,
		call);
}

/* One copy on one node, which the record does not name any more afterwards. It is read before the node is
 * asked: where another replica has asked the node to make the volume since, the write fails, and the node
 * stays. */
struct removal {
	struct controller *controller;
	struct volume_key key;
	struct pmem_volume *record;
	char *node_id;
	char *id;
	copy_removed_fn fn;
	void *user;
};

static void end_removal(struct removal *r, const struct error *error)
{
	r->fn(r->user, error);
	pmem_volume_free(r->record);
	free(r->node_id);
	free(r->id);
	free(r);
}

static void on_removal_written(void *user, struct pmem_volume *record, const struct error *error)
{
	pmem_volume_free(record);
	end_removal(user, error && error->code == ERR_ABORTED ? NULL : error);
}

static void on_removed(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct removal *r = user;
	struct pmem_volume *v = r->record;
	bool is_over;

	(void)reply;
	if (error || !pmem_volume_drop_node(v, r->node_id)) {
		end_removal(r, error);
		return;
	}
	is_over = strv_len(v->nodes) == 0 && is_record_of(v, r->id);
	controller_write_record(
		r->controller, is_over ? RECORD_RELEASE : RECORD_SPEC, v, on_removal_written, r);
}

/* Whether @record says that this controller asked the node for the copy, and not that it is of the volume
 * that was given out and lost there. */
static int check_asked(const struct removal *r, const struct pmem_volume *record, struct error **err)
{
	if (!record || record->origin || !strv_contains(record->nodes, r->node_id))
		return err_set(err, ERR_PRECONDITION, "no record says that node %s was asked for volume %s",
			r->node_id, r->id);
	if (is_record_of(record, r->id) && record->retained)
		return err_set(err, ERR_PRECONDITION,
			"node %s was lost, and only DeleteVolume erases what it has of volume %s", r->node_id,
			r->id);
	if (is_record_of(record, r->id) && pmem_volume_is_lost(record, r->node_id))
		return refuse_returned(r->node_id, r->id, err);
	return 0;
}

static void on_removal_read(void *user, struct pmem_volume *record, const struct error *error)
{
	CLEANUP(error_freep) struct error *why = NULL;
	struct removal *r = user;
	const struct node *node = controller_live_node(r->controller, r->node_id);

	r->record = record;
	if (error) {
		end_removal(r, error);
	} else if (!node) {
		(void)err_set(&why, ERR_UNAVAILABLE, "node %s is not connected", r->node_id);
		end_removal(r, why);
	} else if (check_asked(r, record, &why) < 0) {
		end_removal(r, why);
	} else {
		controller_delete_copy(r->controller, node, r->id, on_removed, r);
	}
}

void controller_remove_copy(
	struct controller *c, const struct node *node, const char *id, copy_removed_fn fn, void *user)
{
	struct removal *r = x_malloc(sizeof(*r));

	*r = (struct removal){.controller = c,
		.key = volume_key_of_handle(id),
		.node_id = x_strdup(node->report.node_id),
		.id = x_strdup(id),
		.fn = fn,
		.user = user};
	controller_read_record(c, &r->key, on_removal_read, r);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of csi.v1.GroupController. Each snapshot of a group has a record of its own, which is written and
 * settled as for any other snapshot; only the node is asked once for all of them, when every record names it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "controller/node_facts.h"
#include "csi/controller_request.h"
#include "csi/csi_groups.h"
#include "csi/field_limits.h"
#include "csi/reply.h"
#include "volume/params.h"

#define CREATE_GROUP_PATH "/csi.v1.GroupController/CreateVolumeGroupSnapshot"
#define GET_GROUP_PATH    "/csi.v1.GroupController/GetVolumeGroupSnapshot"

/* One snapshot of a group that is being made. */
struct member {
	struct group_call *all;
	Csi__V1__CreateSnapshotRequest request;
	Csi__V1__CreateSnapshotResponse reply;
	grpc_reply_fn fn; /* that waits for the answer of the node; NULL: none does */
	void *fn_user;
};

/* One CreateVolumeGroupSnapshot. Lives in the call's arena. */
struct group_call {
	struct controller *controller;
	struct waiter waiter;
	const Csi__V1__CreateVolumeGroupSnapshotRequest *request;
	Csi__V1__CreateVolumeGroupSnapshotRequest forwarded; /* borrows from request */
	Csi__V1__CreateVolumeGroupSnapshotResponse *reply;
	struct joint_call joint;
	struct member *members;
	size_t n;
	size_t n_left;       /* that have not ended, and the loop that starts them */
	size_t n_waiting;    /* whose records name the node */
	const char *node_id; /* of those; NULL: none waits yet */
	const char *group;   /* ID, when the node has answered */
	bool is_asked;
	struct error *failure; /* NULL: none */
};

/* Answer all that wait. @reply: of the node; NULL with @error */
static void answer_waiting(
	struct group_call *g, const Csi__V1__VolumeGroupSnapshot *reply, const struct error *error)
{
	for (size_t i = 0; i < g->n; i++) {
		struct member *m = &g->members[i];
		grpc_reply_fn fn = m->fn;
		Csi__V1__CreateSnapshotResponse one;

		if (!fn)
			continue;
		m->fn = NULL;
		csi__v1__create_snapshot_response__init(&one);
		for (size_t j = 0; reply && j < reply->n_snapshots && !one.snapshot; j++) {
			if (str_eq(reply->snapshots[j]->source_volume_id, m->request.source_volume_id))
				one.snapshot = reply->snapshots[j];
		}
		fn(m->fn_user, error ? NULL : &one.base, error);
	}
}

/* As a refusal before anything was made, since the node was not asked. */
static void release_waiting(struct group_call *g)
{
	CLEANUP(error_freep) struct error *unasked = NULL;

	if (g->is_asked)
		return;
	(void)err_set(&unasked, ERR_INVALID_ARGUMENT, "another volume of the group snapshot \"%s\" failed",
		g->request->name);
	answer_waiting(g, NULL, unasked);
}

static void finish(struct group_call *g)
{
	Csi__V1__Snapshot **snapshots;

	if (!g->failure) {
		snapshots = arena_alloc(g->waiter.arena, g->n * sizeof(*snapshots));
		for (size_t i = 0; i < g->n; i++)
			snapshots[i] = g->members[i].reply.snapshot;
		g->reply->group_snapshot = csi_group(g->group, snapshots, g->n, g->waiter.arena);
	}
	g->waiter.finish(g->waiter.user, g->failure);
}

static void end_one(struct group_call *g)
{
	if (--g->n_left == 0)
		finish(g);
}

static void on_member_ended(void *user, struct error *error)
{
	struct member *m = user;
	struct group_call *g = m->all;
	bool is_first = error && !g->failure;

	if (is_first)
		g->failure = error;
	else
		error_free(error);
	if (is_first)
		release_waiting(g);
	end_one(g);
}

static bool is_wanted(void *user)
{
	const struct member *m = user;

	return m->all->waiter.is_wanted(m->all->waiter.user);
}

static void on_group_answer(void *user, const ProtobufCMessage *message, const struct error *error)
{
	struct group_call *g = user;
	const Csi__V1__VolumeGroupSnapshot *made = NULL;
	CLEANUP(error_freep) struct error *bad = NULL;

	if (error && error->code == ERR_UNIMPLEMENTED)
		err_set(&bad, ERR_INVALID_ARGUMENT,
			"its driver cannot take group snapshots: update the driver there");
	else if (!error && node_fact_group(g->node_id, g->request->name, message, &made, &bad) == 0)
		g->group = arena_strdup(g->waiter.arena, made->group_snapshot_id);
	/* the last answer must not end the call while others are given */
	g->n_left++;
	answer_waiting(g, made, bad ? bad : error);
	end_one(g);
}

/* Return: 0, or -1 with ERR_INVALID_ARGUMENT, which says that the node is not asked. */
static int require_same_node(struct group_call *g, size_t member, const char *node_id, struct error **err)
{
	bool is_other = g->node_id && !str_eq(g->node_id, node_id);

	if (!g->failure && is_other) {
		err_set(&g->failure, ERR_PRECONDITION,
			"a group snapshot is of volumes on one node, but volume %s is on node %s, and another "
			"one on node %s",
			g->request->source_volume_ids[member], node_id, g->node_id);
		release_waiting(g);
	}
	if (!g->failure && !g->is_asked)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "the node is not asked for the group snapshot \"%s\" again",
		g->request->name);
}

static void ask_member(void *user, size_t member, const struct node *node, uint64_t timeout_ms,
	grpc_reply_fn fn, void *fn_user)
{
	CLEANUP(error_freep) struct error *refusal = NULL;
	struct group_call *g = user;
	struct member *m = &g->members[member];

	if (require_same_node(g, member, node->report.node_id, &refusal) < 0) {
		fn(fn_user, NULL, refusal);
		return;
	}
	g->node_id = arena_strdup(g->waiter.arena, node->report.node_id);
	m->fn = fn;
	m->fn_user = fn_user;
	if (++g->n_waiting < g->n)
		return;
	g->is_asked = true;
	controller_call(g->controller, node, CREATE_GROUP_PATH, &g->forwarded.base,
		&csi__v1__create_volume_group_snapshot_response__descriptor, timeout_ms, on_group_answer, g);
}

/* Refuses volumes on different nodes before anything is recorded. A volume that the table of nodes does not
 * know passes; the call for its snapshot finds its node later. */
static int check_one_node(const struct group_call *g, struct error **err)
{
	const char *first = NULL;
	size_t at = 0;

	for (size_t i = 0; i < g->n; i++) {
		const char *id = g->request->source_volume_ids[i];
		struct node_hit *hits;
		size_t n = node_table_find_volume(g->controller->config.nodes, id, &hits);
		const char *node_id = n == 1 ? hits[0].node->report.node_id : NULL;

		free(hits);
		if (node_id && first && !str_eq(node_id, first))
			return err_set(err, ERR_PRECONDITION,
				"a group snapshot is of volumes on one node, but volume %s is on node %s, and volume %s "
				"on node %s",
				g->request->source_volume_ids[at], first, id, node_id);
		if (node_id && !first) {
			first = node_id;
			at = i;
		}
	}
	return 0;
}

static int check_request(struct group_call *g, struct error **err)
{
	if (csi_check_group(g->request, err) < 0 || volume_name_check(g->request->name, err) < 0)
		return -1;
	g->n = g->request->n_source_volume_ids;
	return check_one_node(g, err);
}

static void add_parameter(
	Csi__V1__CreateSnapshotRequest *q, const char *key, const char *value, struct arena *arena)
{
	Csi__V1__CreateSnapshotRequest__ParametersEntry *e = arena_alloc(arena, sizeof(*e));

	csi__v1__create_snapshot_request__parameters_entry__init(e);
	e->key = arena_strdup(arena, key);
	e->value = arena_strdup(arena, value);
	q->parameters[q->n_parameters++] = e;
}

/* The name of the VolumeSnapshot that snapshot-controller will make for the snapshot of a volume, by which
 * the scheduler extender finds its node: getSnapshotNameForVolumeGroupSnapshotContent() in its
 * pkg/common-controller/groupsnapshot_controller_helper.go, since 8.6. csi-snapshotter names the group after
 * the UID of the VolumeGroupSnapshot. Return: false: it is not known. */
static bool name_volume_snapshot(
	const Csi__V1__CreateVolumeGroupSnapshotRequest *q, const char *volume_id, char **ret)
{
	static const char prefix[] = "groupsnapshot-";
	CLEANUP(free_charp) char *text = NULL;
	char hex[SHA256_HEX_LEN + 1];

	if (!str_starts(q->name, prefix))
		return false;
	text = x_asprintf("%s%s", q->name + sizeof(prefix) - 1, volume_id);
	sha256_hex(text, strlen(text), hex);
	*ret = x_asprintf("snapshot-%s", hex);
	return true;
}

/* Copies the parameters of the group, and adds the name and namespace of the VolumeSnapshot, under the keys
 * that csi-snapshotter uses for a snapshot without a group. */
static void fill_parameters(const Csi__V1__CreateVolumeGroupSnapshotRequest *from,
	Csi__V1__CreateSnapshotRequest *to, struct arena *arena)
{
	CLEANUP(free_charp) char *name = NULL;
	const char *namespace = NULL;

	to->parameters = arena_alloc(arena, (from->n_parameters + 2) * sizeof(*to->parameters));
	for (size_t i = 0; i < from->n_parameters; i++) {
		add_parameter(to, from->parameters[i]->key, from->parameters[i]->value, arena);
		if (str_eq(from->parameters[i]->key, PARAMS_GROUP_NAMESPACE))
		namespace = from->parameters[i]->value;
	}
	if (!namespace || !name_volume_snapshot(from, to->source_volume_id, &name))
		return;
	add_parameter(to, PARAMS_SNAPSHOT_NAMESPACE, namespace, arena);
	add_parameter(to, PARAMS_SNAPSHOT_NAME, name, arena);
}

static void start_member(struct group_call *g, size_t i)
{
	struct member *m = &g->members[i];
	char name[VOLUME_NAME_MAX + 1];
	const struct waiter waiter = {.arena = g->waiter.arena,
		.deadline_ns = g->waiter.deadline_ns,
		.finish = on_member_ended,
		.is_wanted = is_wanted,
		.user = m};

	g->n_left++;
	m->all = g;
	csi__v1__create_snapshot_request__init(&m->request);
	csi__v1__create_snapshot_response__init(&m->reply);
	volume_group_member_name(g->request->name, g->request->source_volume_ids[i], name);
	m->request.name = arena_strdup(g->waiter.arena, name);
	m->request.source_volume_id = g->request->source_volume_ids[i];
	fill_parameters(g->request, &m->request, g->waiter.arena);
	controller_create_snapshot(g->controller, &waiter, &m->request, &m->reply, &g->joint, i);
}

void controller_create_group(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeGroupSnapshotRequest *request,
	Csi__V1__CreateVolumeGroupSnapshotResponse *reply)
{
	struct group_call *g = arena_alloc(waiter->arena, sizeof(*g));
	struct error *err = NULL;

	*g = (struct group_call){.controller = c,
		.waiter = *waiter,
		.request = request,
		.forwarded = *request,
		.reply = reply,
		.joint = {.name = request->name, .ask = ask_member, .user = g}};
	if (check_request(g, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	g->forwarded.n_secrets = 0;
	g->forwarded.secrets = NULL;
	g->members = arena_alloc(waiter->arena, g->n * sizeof(*g->members));
	g->n_left = 1;
	for (size_t i = 0; i < g->n && !g->failure; i++)
		start_member(g, i);
	end_one(g);
}

/* The snapshots of a group that its node has reported. */
struct group_members {
	struct node_hit *hits;
	size_t n;
};

static void group_members_done(struct group_members *m)
{
	free(m->hits);
}

static void add_of_node(const struct node *node, const char *group, struct group_members *ret)
{
	const struct volume_report *v;
	size_t at = 0;

	while ((v = node_next_volume(node, &at)) != NULL) {
		if (!v->group || !str_eq(v->group, group) || v->phase == PHASE_ERASING)
			continue;
		ret->hits = x_realloc(ret->hits, ret->n + 1, sizeof(*ret->hits));
		ret->hits[ret->n++] = (struct node_hit){.node = node, .volume = v};
	}
}

static void find_members(const struct controller *c, const char *group, struct group_members *ret)
{
	const char *dot = strrchr(group, '.');
	const struct node **nodes = NULL;
	size_t n = dot && volume_id_has_minted_form(group)
			   ? node_table_find_hash(c->config.nodes, dot + 1, &nodes)
			   : 0;

	for (size_t i = 0; i < n; i++)
		add_of_node(nodes[i], group, ret);
	free(nodes);
}

/* Whether it is known that there is no such group. */
static int require_reports(const struct controller *c, const char *group, struct error **err)
{
	if (controller_require_inventories(c, err) < 0)
		return -1;
	if (!c->config.forget_gone_nodes && !controller_has_reported(c, group))
		return err_set(err, ERR_UNAVAILABLE,
			"group snapshot %s is on a node that has not reported its volumes", group);
	return 0;
}

/* One GetVolumeGroupSnapshot. Lives in the call's arena. */
struct group_query {
	struct waiter waiter;
	const Csi__V1__GetVolumeGroupSnapshotRequest *request;
	Csi__V1__GetVolumeGroupSnapshotRequest forwarded; /* borrows from request */
	Csi__V1__GetVolumeGroupSnapshotResponse *reply;
	const char *node_id;
};

static void on_group(void *user, const ProtobufCMessage *message, const struct error *error)
{
	const struct group_query *q = user;
	Csi__V1__VolumeGroupSnapshot *group;
	struct error *failure = NULL;

	if (error && error->code == ERR_NOT_FOUND)
		err_set(&failure, ERR_NOT_FOUND, "node %s: %s", q->node_id, error->msg);
	else if (error)
		failure = controller_pass_on(q->node_id, error);
	else if (node_fact_known_group(q->node_id, q->request->group_snapshot_id, message, q->waiter.arena,
			 &group, &failure) == 0)
		q->reply->group_snapshot = group;
	q->waiter.finish(q->waiter.user, failure);
}

/* A live node that reports snapshots of the group, or else one that its ID names. Borrowed; NULL: none. */
static const struct node *find_group_node(
	const struct controller *c, const char *group, const struct group_members *m)
{
	const char *dot = strrchr(group, '.');
	const struct node **nodes = NULL;
	const struct node *live = NULL;
	size_t n = 0;

	for (size_t i = 0; i < m->n && !live; i++)
		live = m->hits[i].node->live ? m->hits[i].node : NULL;
	if (!live && dot && volume_id_has_minted_form(group))
		n = node_table_find_hash(c->config.nodes, dot + 1, &nodes);
	for (size_t i = 0; i < n && !live; i++)
		live = nodes[i]->live ? nodes[i] : NULL;
	free(nodes);
	return live;
}

/* Only the node knows whether a snapshot of the group was lost. */
static int require_group_node(
	const struct controller *c, const char *group, const struct node **ret, struct error **err)
{
	CLEANUP(group_members_done) struct group_members m = {0};

	find_members(c, group, &m);
	*ret = find_group_node(c, group, &m);
	if (*ret)
		return 0;
	if (m.n > 0)
		return err_set(err, ERR_UNAVAILABLE, "node %s, which has group snapshot %s, is not connected",
			m.hits[0].node->report.node_id, group);
	if (require_reports(c, group, err) < 0)
		return -1;
	return err_set(err, ERR_NOT_FOUND, "group snapshot %s does not exist", group);
}

/* @ret: the node that is asked */
static int check_group_query(const struct controller *c, const char *id, uint64_t timeout_ms,
	const struct node **ret, struct error **err)
{
	if (csi_require(id, "group_snapshot_id", err) < 0 || require_group_node(c, id, ret, err) < 0)
		return -1;
	if (timeout_ms == 0)
		return err_set(err, ERR_DEADLINE, "the deadline does not allow asking node %s",
			(*ret)->report.node_id);
	return 0;
}

void controller_get_group(struct controller *c, const struct waiter *waiter,
	const Csi__V1__GetVolumeGroupSnapshotRequest *request, Csi__V1__GetVolumeGroupSnapshotResponse *reply)
{
	const char *id = request->group_snapshot_id;
	struct group_query *q = arena_alloc(waiter->arena, sizeof(*q));
	uint64_t timeout_ms = controller_timeout_ms(c, waiter->deadline_ns);
	const struct node *node;
	struct error *err = NULL;

	if (check_group_query(c, id, timeout_ms, &node, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	*q = (struct group_query){.waiter = *waiter,
		.request = request,
		.forwarded = *request,
		.reply = reply,
		.node_id = arena_strdup(waiter->arena, node->report.node_id)};
	q->forwarded.n_secrets = 0;
	q->forwarded.secrets = NULL;
	controller_call(c, node, GET_GROUP_PATH, &q->forwarded.base,
		&csi__v1__get_volume_group_snapshot_response__descriptor, timeout_ms, on_group, q);
}

/* One DeleteVolumeGroupSnapshot. Lives in the call's arena. */
struct group_deletion {
	struct waiter waiter;
	size_t n_left;         /* deletions that have not ended, and the loop that starts them */
	struct error *failure; /* the first; NULL: none */
};

static void on_member_deleted(void *user, struct error *error)
{
	struct group_deletion *d = user;

	if (d->failure)
		error_free(error);
	else
		d->failure = error;
	if (--d->n_left == 0)
		d->waiter.finish(d->waiter.user, d->failure);
}

static bool deletion_is_wanted(void *user)
{
	const struct group_deletion *d = user;

	return d->waiter.is_wanted(d->waiter.user);
}

/* The IDs that are reported and those that the caller gives, each once. Return: strv_free() */
static char **ids_to_delete(
	const struct controller *c, const Csi__V1__DeleteVolumeGroupSnapshotRequest *request)
{
	CLEANUP(group_members_done) struct group_members m = {0};
	char **ids = NULL;

	find_members(c, request->group_snapshot_id, &m);
	for (size_t i = 0; i < m.n; i++)
		strv_add(&ids, m.hits[i].volume->id);
	for (size_t i = 0; i < request->n_snapshot_ids; i++) {
		if (!strv_contains(ids, request->snapshot_ids[i]))
			strv_add(&ids, request->snapshot_ids[i]);
	}
	return ids;
}

/* Refuses IDs that are not of the group before anything is deleted. A snapshot for which neither a group nor
 * a source is reported has lost both with its state file, and is accepted. */
static int check_listed(const struct controller *c, const char *group, const char *id, struct error **err)
{
	struct node_hit *hits;
	size_t n = node_table_find_volume(c->config.nodes, id, &hits);
	bool is_other = false;

	for (size_t i = 0; i < n; i++) {
		const struct volume_report *v = hits[i].volume;

		if (v->phase == PHASE_DAMAGED)
			continue;
		is_other =
			is_other || !v->snapshot || (v->group ? !str_eq(v->group, group) : v->source != NULL);
	}
	free(hits);
	return is_other ? err_set(err, ERR_INVALID_ARGUMENT, "%s is no snapshot of the group snapshot %s", id,
				  group)
			: 0;
}

static int check_deletion(const struct controller *c,
	const Csi__V1__DeleteVolumeGroupSnapshotRequest *request, struct error **err)
{
	if (csi_require(request->group_snapshot_id, "group_snapshot_id", err) < 0)
		return -1;
	for (size_t i = 0; i < request->n_snapshot_ids; i++) {
		if (check_listed(c, request->group_snapshot_id, request->snapshot_ids[i], err) < 0)
			return -1;
	}
	return 0;
}

void controller_delete_group(struct controller *c, const struct waiter *waiter,
	const Csi__V1__DeleteVolumeGroupSnapshotRequest *request)
{
	struct group_deletion *d = arena_alloc(waiter->arena, sizeof(*d));
	CLEANUP(strv_freep) char **ids = NULL;
	struct error *err = NULL;

	if (check_deletion(c, request, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	ids = ids_to_delete(c, request);
	if (!ids && require_reports(c, request->group_snapshot_id, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	*d = (struct group_deletion){.waiter = *waiter, .n_left = strv_len(ids) + 1};
	const struct waiter each = {.arena = waiter->arena,
		.deadline_ns = waiter->deadline_ns,
		.finish = on_member_deleted,
		.is_wanted = deletion_is_wanted,
		.user = d};
	for (size_t i = 0; ids && ids[i]; i++)
		controller_delete_member(
			c, &each, arena_strdup(waiter->arena, ids[i]), request->group_snapshot_id);
	on_member_deleted(d, NULL);
}

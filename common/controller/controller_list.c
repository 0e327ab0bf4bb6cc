/* SPDX-License-Identifier: Apache-2.0 */
/* ListVolumes and ListSnapshots over all nodes, and ValidateVolumeCapabilities at one of them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "controller/node_facts.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/field_limits.h"
#include "csi/reply.h"
#include "volume/id.h"

#define VALIDATE_PATH "/csi.v1.Controller/ValidateVolumeCapabilities"
/* All that the table has, in order of IDs. */
struct listing {
	struct node_hit *hits;
	size_t n;
	size_t room;
};

static void listing_done(struct listing *l)
{
	free(l->hits);
}

static void add_hit(struct listing *l, const struct node *node, const struct volume_report *v)
{
	if (l->n == l->room) {
		l->room = l->room > 0 ? l->room * 2 : 256;
		l->hits = x_realloc(l->hits, l->room, sizeof(*l->hits));
	}
	l->hits[l->n++] = (struct node_hit){.node = node, .volume = v};
}

static int compare_hits(const void *a, const void *b)
{
	const struct node_hit *x = a;
	const struct node_hit *y = b;
	int order = strcmp(x->volume->id, y->volume->id);

	return order != 0 ? order : strcmp(x->node->report.node_id, y->node->report.node_id);
}

/* As a node lists its own: what is being made or erased is no volume for callers. */
static bool is_listed(const struct volume_report *v, bool snapshots)
{
	return v->snapshot == snapshots && (v->phase == PHASE_READY || v->phase == PHASE_MISSING);
}

static void add_node(struct listing *l, const struct node *node, bool snapshots, const char *after)
{
	const struct volume_report *v;
	size_t at = 0;

	while ((v = node_next_volume(node, &at)) != NULL) {
		if (is_listed(v, snapshots) && (!after || strcmp(v->id, after) > 0))
			add_hit(l, node, v);
	}
}

/* A list is not complete while a node of the cluster is down that has not reported its volumes since the
 * controller started. Snapshots of one @id or of one @source are on the node that it names: others need not
 * be known. */
static int require_reports(const struct controller *c, const char *id, const char *source, struct error **err)
{
	const char *subject = str_empty(id) ? source : id;
	const char *node_id;
	size_t at = 0;

	if (!str_empty(subject) && volume_id_has_node(subject) && controller_has_reported(c, subject))
		return 0;
	if (controller_require_ready(c, err) < 0)
		return -1;
	while ((node_id = cluster_nodes_next(c->config.cluster, &at)) != NULL) {
		const struct node *node = node_table_get(c->config.nodes, node_id);

		if (!node)
			return err_set(err, ERR_UNAVAILABLE,
				"node %s has not registered yet, so that its volumes are not known", node_id);
		if (!node->report.has_inventory)
			return err_set(
				err, ERR_UNAVAILABLE, "node %s has not reported its volumes yet", node_id);
	}
	return 0;
}

/* A list without the volumes of some nodes would look as if they were gone. */
int controller_require_inventories(const struct controller *c, struct error **err)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->live && !nodes[i]->report.has_inventory)
			return err_set(err, ERR_UNAVAILABLE, "node %s has not reported its volumes yet",
				nodes[i]->report.node_id);
	}
	return controller_in_start_window(c) ? require_reports(c, NULL, NULL, err) : 0;
}

/* One volume: @n hits with the same ID, of a cache volume one per node. */
static Csi__V1__ListVolumesResponse__Entry *make_entry(
	const struct controller *c, struct arena *arena, const struct node_hit *hits, size_t n)
{
	Csi__V1__ListVolumesResponse__Entry *e = arena_alloc(arena, sizeof(*e));
	Csi__V1__Volume *v = arena_alloc(arena, sizeof(*v));

	csi__v1__list_volumes_response__entry__init(e);
	csi__v1__volume__init(v);
	v->volume_id = arena_strdup(arena, hits[0].volume->id);
	v->capacity_bytes = (int64_t)hits[0].volume->size_bytes;
	v->accessible_topology = arena_alloc(arena, n * sizeof(*v->accessible_topology));
	for (size_t i = 0; i < n; i++) {
		v->accessible_topology[v->n_accessible_topology++] =
			csi_topology(c->config.driver_name, hits[i].node->report.node_id, arena);
		if (hits[i].volume->phase == PHASE_MISSING && !e->status)
			e->status = csi_missing_status(arena);
	}
	csi_add_claim(v, hits[0].volume->claim, CSI_CLAIM_KEYS, arena);
	e->volume = v;
	return e;
}

static void fill_page(const struct controller *c, struct arena *arena, const struct listing *l, size_t max,
	Csi__V1__ListVolumesResponse *reply)
{
	size_t next;

	reply->entries = arena_alloc(arena, (l->n < max ? l->n : max) * sizeof(*reply->entries));
	for (size_t at = 0; at < l->n; at = next) {
		const struct node_hit *first = &l->hits[at];

		if (reply->n_entries == max) {
			reply->next_token = csi_token(arena, l->hits[at - 1].volume->id);
			return;
		}
		for (next = at + 1; next < l->n && str_eq(l->hits[next].volume->id, first->volume->id);)
			next++;
		reply->entries[reply->n_entries++] = make_entry(c, arena, first, next - at);
	}
}

/* @l: listing_done() */
static void list_all(const struct controller *c, bool snapshots, const char *after, struct listing *l)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++)
		add_node(l, nodes[i], snapshots, after);
	if (l->n > 0)
		qsort(l->hits, l->n, sizeof(*l->hits), compare_hits);
}

int controller_list(struct controller *c, struct arena *arena, const Csi__V1__ListVolumesRequest *request,
	Csi__V1__ListVolumesResponse *reply, struct error **err)
{
	CLEANUP(listing_done) struct listing l = {0};
	const char *after = NULL;
	size_t max;

	if (csi_read_page(request->max_entries, request->starting_token, &after, &max, err) < 0)
		return -1;
	if (controller_require_inventories(c, err) < 0 || require_reports(c, NULL, NULL, err) < 0)
		return -1;
	list_all(c, /* snapshots= */ false, after, &l);
	fill_page(c, arena, &l, max, reply);
	return 0;
}

Csi__V1__Snapshot *controller_snapshot(const struct node_hit *hit, struct arena *arena)
{
	const struct volume_report *v = hit->volume;
	const struct csi_snapshot s = {.id = v->id,
		.source = v->source,
		.group = v->group,
		.size_bytes = v->size_bytes,
		.taken_s = v->taken_s,
		.ready = v->phase == PHASE_READY && hit->node->live};

	return csi_snapshot(&s, arena);
}

static bool is_asked_for(const Csi__V1__ListSnapshotsRequest *request, const struct volume_report *v)
{
	return (str_empty(request->snapshot_id) || str_eq(request->snapshot_id, v->id)) &&
	       (str_empty(request->source_volume_id) || str_eq(request->source_volume_id, v->source));
}

int controller_list_snapshots(struct controller *c, struct arena *arena,
	const Csi__V1__ListSnapshotsRequest *request, Csi__V1__ListSnapshotsResponse *reply,
	struct error **err)
{
	CLEANUP(listing_done) struct listing l = {0};
	const char *after = NULL;
	size_t max;

	if (csi_read_page(request->max_entries, request->starting_token, &after, &max, err) < 0 ||
		controller_require_inventories(c, err) < 0 ||
		require_reports(c, request->snapshot_id, request->source_volume_id, err) < 0)
		return -1;
	list_all(c, /* snapshots= */ true, after, &l);
	reply->entries = arena_alloc(arena, (l.n < max ? l.n : max) * sizeof(*reply->entries));
	for (size_t i = 0; i < l.n; i++) {
		if (!is_asked_for(request, l.hits[i].volume))
			continue;
		if (reply->n_entries == max) {
			reply->next_token = csi_token(arena, reply->entries[max - 1]->snapshot->snapshot_id);
			break;
		}
		reply->entries[reply->n_entries++] =
			csi_snapshot_entry(controller_snapshot(&l.hits[i], arena), arena);
	}
	return 0;
}

bool controller_has_reported(const struct controller *c, const char *id)
{
	const char *dot = strrchr(id, '.');
	const struct node **nodes;
	bool has_reported = false;
	size_t n;

	if (!dot || !volume_id_has_minted_form(id))
		return true;
	n = node_table_find_hash(c->config.nodes, dot + 1, &nodes);
	for (size_t i = 0; i < n; i++)
		has_reported = has_reported || nodes[i]->report.has_inventory;
	free(nodes);
	return has_reported;
}

int controller_get_snapshot(struct controller *c, struct arena *arena,
	const Csi__V1__GetSnapshotRequest *request, Csi__V1__GetSnapshotResponse *reply, struct error **err)
{
	struct node_hit *hits;
	size_t n;

	if (csi_require(request->snapshot_id, "snapshot_id", err) < 0)
		return -1;
	n = node_table_find_volume(c->config.nodes, request->snapshot_id, &hits);
	for (size_t i = 0; i < n && !reply->snapshot; i++) {
		if (is_listed(hits[i].volume, /* snapshots= */ true))
			reply->snapshot = controller_snapshot(&hits[i], arena);
	}
	free(hits);
	if (reply->snapshot)
		return 0;
	if (controller_require_inventories(c, err) < 0)
		return -1;
	if (!c->config.forget_gone_nodes && !controller_has_reported(c, request->snapshot_id))
		return err_set(err, ERR_UNAVAILABLE,
			"snapshot %s is on a node that has not reported its volumes", request->snapshot_id);
	return err_set(err, ERR_NOT_FOUND, "snapshot %s does not exist", request->snapshot_id);
}

struct validation {
	struct waiter waiter;
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request;
	Csi__V1__ValidateVolumeCapabilitiesResponse *reply;
	const char *node_id;
};

static void on_validated(void *user, const ProtobufCMessage *message, const struct error *error)
{
	struct validation *v = user;
	const char *why;

	if (error) {
		struct error *passed = NULL;

		err_set(&passed, error->code, "node %s: %s", v->node_id, error->msg);
		v->waiter.finish(v->waiter.user, passed);
		return;
	}
	if (node_fact_confirms(message, v->waiter.arena, &why))
		v->reply->confirmed = csi_confirmed(v->request, v->waiter.arena);
	v->reply->message = (char *)(uintptr_t)why;
	v->waiter.finish(v->waiter.user, NULL);
}

/* A node that has the volume, rather one that is live; or the one that its ID names. Borrowed; NULL: none. */
static const struct node *find_owner(const struct controller *c, const char *id)
{
	struct node_hit *hits = NULL;
	const struct node **nodes = NULL;
	const struct node *owner = NULL;
	const char *dot = strrchr(id, '.');
	size_t n = node_table_find_volume(c->config.nodes, id, &hits);

	for (size_t i = 0; i < n; i++) {
		if (!owner || hits[i].node->live)
			owner = hits[i].node;
	}
	free(hits);
	if (owner || !dot || !volume_id_has_minted_form(id))
		return owner;
	n = node_table_find_hash(c->config.nodes, dot + 1, &nodes);
	for (size_t i = 0; i < n; i++) {
		if (!owner || nodes[i]->live)
			owner = nodes[i];
	}
	free(nodes);
	return owner;
}

static int find_live_owner(
	const struct controller *c, const char *id, const struct node **ret, struct error **err)
{
	const struct node *owner = find_owner(c, id);

	if (!owner && controller_require_inventories(c, err) < 0)
		return -1;
	if (!owner)
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", id);
	if (!owner->live)
		return err_set(err, ERR_UNAVAILABLE, "node %s, which has volume %s, is not connected",
			owner->report.node_id, id);
	*ret = owner;
	return 0;
}

void controller_validate(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request,
	Csi__V1__ValidateVolumeCapabilitiesResponse *reply)
{
	struct validation *v = arena_alloc(waiter->arena, sizeof(*v));
	struct error *err = NULL;
	uint64_t timeout_ms = controller_timeout_ms(c, waiter->deadline_ns);
	const struct node *owner = NULL;

	if (csi_check_validate(request, &err) < 0 ||
		find_live_owner(c, request->volume_id, &owner, &err) < 0) {
		waiter->finish(waiter->user, err);
		return;
	}
	if (timeout_ms == 0) {
		err_set(&err, ERR_DEADLINE, "the deadline does not allow asking node %s",
			owner->report.node_id);
		waiter->finish(waiter->user, err);
		return;
	}
	*v = (struct validation){.waiter = *waiter,
		.request = request,
		.reply = reply,
		.node_id = arena_strdup(waiter->arena, owner->report.node_id)};
	controller_call(c, owner, VALIDATE_PATH, &request->base,
		&csi__v1__validate_volume_capabilities_response__descriptor, timeout_ms, on_validated, v);
}

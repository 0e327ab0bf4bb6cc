/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/node_facts.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "csi/csi_groups.h"
#include "csi/field_limits.h"
#include "csi/reply.h"
#include "nodes/node_table.h"
#include "nodes/node_text.h"
#include "volume/id.h"

/* A node answers with the ID that it mints for the name, or with that of the Go driver, whose volumes it has
 * taken over. All three are bound to the name, so that no node can hand out the volume of another name. */
static int check_id(const struct made_question *q, const char *id, struct error **err)
{
	char own[VOLUME_ID_MAX + 1];
	char go[VOLUME_ID_MAX + 1];

	volume_id_mint(q->name, q->is_cache ? NULL : q->node_id, own);
	volume_id_mint_go(q->name, go);
	if (str_eq(id, own) || str_eq(id, go))
		return 0;
	if (str_empty(id))
		return err_set(err, ERR_INTERNAL, "the reply has no volume ID");
	return err_set(err, ERR_INTERNAL,
		"the reply has an ID that node %s cannot have for \"%s\", where %s is expected", q->node_id,
		q->name, own);
}

static int check_bytes(int64_t bytes, uint64_t least_bytes, struct error **err)
{
	if (bytes >= 0 && (uint64_t)bytes >= least_bytes && (uint64_t)bytes <= NODE_BYTES_MAX)
		return 0;
	return err_set(err, ERR_INTERNAL,
		"the reply has a size of %" PRId64 " bytes, where at least %" PRIu64
		" and at most %llu are possible",
		bytes, least_bytes, NODE_BYTES_MAX);
}

/* Whether @s is the source that was asked for; without one there is nothing to compare, since this controller
 * names the source to its own caller. */
static int check_source(
	const struct made_question *q, const Csi__V1__VolumeContentSource *s, struct error **err)
{
	const char *handle = NULL;

	if (!q->source)
		return 0;
	if (s && q->source_is_snapshot && s->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
		handle = s->snapshot->snapshot_id;
	if (s && !q->source_is_snapshot && s->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
		handle = s->volume->volume_id;
	if (handle && str_eq(handle, q->source))
		return 0;
	return err_set(err, ERR_INTERNAL, "the reply does not say that it is about a copy of %s", q->source);
}

static void copy_context(const Csi__V1__Volume *from, Csi__V1__Volume *to, struct arena *arena)
{
	to->volume_context = arena_alloc(arena, from->n_volume_context * sizeof(*to->volume_context));
	for (size_t i = 0; i < from->n_volume_context; i++) {
		Csi__V1__Volume__VolumeContextEntry *e = arena_alloc(arena, sizeof(*e));

		csi__v1__volume__volume_context_entry__init(e);
		e->key = arena_strdup(arena, from->volume_context[i]->key);
		e->value = arena_strdup(arena, from->volume_context[i]->value);
		to->volume_context[to->n_volume_context++] = e;
	}
}

/* Checks what @from says, apart from its context, and begins a copy of it. */
static int take_made(const struct made_question *q, const Csi__V1__Volume *from, struct arena *arena,
	Csi__V1__Volume **ret, struct error **err)
{
	Csi__V1__Volume *v;

	if (check_id(q, from->volume_id, err) < 0 || check_source(q, from->content_source, err) < 0 ||
		check_bytes(from->capacity_bytes, q->least_bytes, err) < 0)
		return -1;
	v = arena_alloc(arena, sizeof(*v));
	csi__v1__volume__init(v);
	v->volume_id = arena_strdup(arena, from->volume_id);
	v->capacity_bytes = from->capacity_bytes;
	v->content_source = q->source ? csi_content_source(arena, q->source, q->source_is_snapshot) : NULL;
	*ret = v;
	return 0;
}

int node_fact_volume(const struct made_question *q, const ProtobufCMessage *reply, struct arena *arena,
	Csi__V1__Volume **ret, struct error **err)
{
	const Csi__V1__CreateVolumeResponse *m = (const Csi__V1__CreateVolumeResponse *)reply;

	if (!m->volume)
		return err_set(err, ERR_INTERNAL, "the reply has no volume ID");
	/* The context has the limits of all maps of CSI: it becomes a part of the PersistentVolume. */
	if (csi_check_request(reply, err) < 0) {
		err_recode(err, ERR_INTERNAL);
		return err_wrap(err, "the reply is beyond the limits of CSI");
	}
	if (take_made(q, m->volume, arena, ret, err) < 0)
		return -1;
	copy_context(m->volume, *ret, arena);
	return 0;
}

int node_fact_snapshot(const struct made_question *q, const ProtobufCMessage *reply, struct arena *arena,
	Csi__V1__Volume **ret, uint64_t *ret_taken_s, struct error **err)
{
	const Csi__V1__Snapshot *s = ((const Csi__V1__CreateSnapshotResponse *)reply)->snapshot;
	Csi__V1__Volume claimed;

	if (!s)
		return err_set(err, ERR_INTERNAL, "the reply has no volume ID");
	csi__v1__volume__init(&claimed);
	claimed.volume_id = s->snapshot_id;
	claimed.capacity_bytes = s->size_bytes;
	claimed.content_source = csi_content_source(arena, s->source_volume_id, /* is_snapshot= */ false);
	*ret_taken_s =
		s->creation_time && s->creation_time->seconds > 0 ? (uint64_t)s->creation_time->seconds : 0;
	return take_made(q, &claimed, arena, ret, err);
}

int node_fact_group(const char *node_id, const char *name, const ProtobufCMessage *reply,
	const Csi__V1__VolumeGroupSnapshot **ret, struct error **err)
{
	const Csi__V1__VolumeGroupSnapshot *g =
		((const Csi__V1__CreateVolumeGroupSnapshotResponse *)reply)->group_snapshot;
	char own[VOLUME_ID_MAX + 1];

	volume_group_id(name, node_id, own);
	if (!g || str_empty(g->group_snapshot_id))
		return err_set(err, ERR_INTERNAL, "the reply has no ID of a group snapshot");
	if (!str_eq(g->group_snapshot_id, own))
		return err_set(err, ERR_INTERNAL,
			"the reply has an ID that node %s cannot have for the group snapshot \"%s\", where %s is expected",
			node_id, name, own);
	*ret = g;
	return 0;
}

/* Return: NULL: @m is no snapshot of that group, or not one that @node_id can have. */
static Csi__V1__Snapshot *take_member(
	const Csi__V1__Snapshot *m, const char *node_id, const char *group, struct arena *arena)
{
	const struct csi_snapshot s = {.id = m->snapshot_id,
		.source = m->source_volume_id,
		.group = group,
		.size_bytes = (uint64_t)m->size_bytes,
		.taken_s = m->creation_time && m->creation_time->seconds > 0
				   ? (uint64_t)m->creation_time->seconds
				   : 0,
		.ready = m->ready_to_use};
	bool fits = str_eq(m->group_snapshot_id, group) && volume_handle_valid(m->snapshot_id) &&
		    !volume_id_names_other_node(m->snapshot_id, node_id) &&
		    (str_empty(m->source_volume_id) || volume_handle_valid(m->source_volume_id)) &&
		    m->size_bytes >= 0 && (uint64_t)m->size_bytes <= NODE_BYTES_MAX;

	return fits ? csi_snapshot(&s, arena) : NULL;
}

/* Whether the group is ready is for the node to say: it knows how many snapshots there were. */
int node_fact_known_group(const char *node_id, const char *id, const ProtobufCMessage *reply,
	struct arena *arena, Csi__V1__VolumeGroupSnapshot **ret, struct error **err)
{
	const Csi__V1__VolumeGroupSnapshot *g =
		((const Csi__V1__GetVolumeGroupSnapshotResponse *)reply)->group_snapshot;
	Csi__V1__Snapshot **snapshots;
	size_t n = g ? g->n_snapshots : 0;

	if (n == 0 || n > VOLUME_GROUP_MAX || !str_eq(g->group_snapshot_id, id))
		return err_set(err, ERR_UNAVAILABLE, "node %s: the reply is not about group snapshot %s",
			node_id, id);
	snapshots = arena_alloc(arena, n * sizeof(*snapshots));
	for (size_t i = 0; i < n; i++) {
		snapshots[i] = take_member(g->snapshots[i], node_id, id, arena);
		if (!snapshots[i])
			return err_set(err, ERR_UNAVAILABLE,
				"node %s: the reply has a snapshot that is not of group snapshot %s", node_id,
				id);
	}
	*ret = csi_group(id, snapshots, n, arena);
	(*ret)->ready_to_use = g->ready_to_use;
	return 0;
}

/* A node that has less than what was asked for has not done it. */
int node_fact_growth(uint64_t least_bytes, const ProtobufCMessage *reply, uint64_t *ret_bytes, bool *ret_node,
	struct error **err)
{
	const Csi__V1__ControllerExpandVolumeResponse *m =
		(const Csi__V1__ControllerExpandVolumeResponse *)reply;
	uint64_t bytes = m->capacity_bytes > 0 ? (uint64_t)m->capacity_bytes : 0;

	if (bytes == 0 || bytes < least_bytes || bytes > NODE_BYTES_MAX)
		return err_set(err, ERR_UNAVAILABLE,
			"it replied that the volume has %lld bytes, but %llu were requested",
			(long long)m->capacity_bytes, (unsigned long long)least_bytes);
	*ret_bytes = bytes;
	*ret_node = m->node_expansion_required;
	return 0;
}

bool node_fact_confirms(const ProtobufCMessage *reply, struct arena *arena, const char **ret_why)
{
	const Csi__V1__ValidateVolumeCapabilitiesResponse *m =
		(const Csi__V1__ValidateVolumeCapabilitiesResponse *)reply;

	*ret_why = node_text(m->message, arena);
	return m->confirmed != NULL;
}

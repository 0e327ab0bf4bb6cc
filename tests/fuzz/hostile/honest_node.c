/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/hostile/honest_node.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "csi/csi_groups.h"
#include "csi/reply.h"

struct honest_volume *honest_node_find(struct honest_node *n, const char *id)
{
	for (size_t i = 0; i < n->n; i++) {
		if (str_eq(n->volumes[i].id, id))
			return &n->volumes[i];
	}
	return NULL;
}

static int require(struct honest_node *n, const char *id, struct honest_volume **ret, struct error **err)
{
	*ret = honest_node_find(n, id);
	return *ret ? 0 : err_set(err, ERR_NOT_FOUND, "volume %s does not exist", id);
}

/* The volume that is to be made; it may be there already. */
static int make(struct honest_node *n, const struct honest_volume *what, struct honest_volume **ret,
	struct error **err)
{
	struct honest_volume *v = honest_node_find(n, what->id);

	if (v && (v->size_bytes < what->size_bytes || !str_eq(v->source, what->source) ||
			 v->is_snapshot != what->is_snapshot))
		return err_set(err, ERR_EXISTS, "volume %s exists, and is another one", what->id);
	*ret = v;
	if (v)
		return 0;
	if (!str_empty(what->source) && !honest_node_find(n, what->source))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", what->source);
	if (n->n == HONEST_VOLUMES_MAX)
		return err_set(err, ERR_EXHAUSTED, "no room");
	n->volumes[n->n] = *what;
	*ret = &n->volumes[n->n++];
	return 0;
}

static const char *source_of(const Csi__V1__VolumeContentSource *s)
{
	if (s && s->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
		return s->snapshot->snapshot_id;
	return s && s->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME ? s->volume->volume_id : "";
}

static bool is_cache(const Csi__V1__CreateVolumeRequest *m)
{
	for (size_t i = 0; i < m->n_parameters; i++) {
		if (str_eq(m->parameters[i]->value, "cache"))
			return true;
	}
	return false;
}

static int create_volume(struct honest_node *n, const Csi__V1__CreateVolumeRequest *m, struct arena *arena,
	const ProtobufCMessage **ret, struct error **err)
{
	Csi__V1__CreateVolumeResponse *reply = arena_alloc(arena, sizeof(*reply));
	struct honest_volume what = {.size_bytes = (uint64_t)m->capacity_range->required_bytes};
	struct honest_volume *v;

	volume_id_mint(m->name, is_cache(m) ? NULL : n->node_id, what.id);
	snprintf(what.name, sizeof(what.name), "%s", m->name);
	snprintf(what.source, sizeof(what.source), "%s", source_of(m->volume_content_source));
	if (make(n, &what, &v, err) < 0)
		return -1;
	csi__v1__create_volume_response__init(reply);
	reply->volume = arena_alloc(arena, sizeof(*reply->volume));
	csi__v1__volume__init(reply->volume);
	reply->volume->volume_id = arena_strdup(arena, v->id);
	reply->volume->capacity_bytes = (int64_t)v->size_bytes;
	reply->volume->content_source = m->volume_content_source;
	*ret = &reply->base;
	return 0;
}

static int create_snapshot(struct honest_node *n, const Csi__V1__CreateSnapshotRequest *m,
	struct arena *arena, const ProtobufCMessage **ret, struct error **err)
{
	Csi__V1__CreateSnapshotResponse *reply = arena_alloc(arena, sizeof(*reply));
	struct honest_volume what = {.size_bytes = HONEST_GIB, .is_snapshot = true};
	struct honest_volume *v;

	volume_id_mint(m->name, n->node_id, what.id);
	snprintf(what.name, sizeof(what.name), "%s", m->name);
	snprintf(what.source, sizeof(what.source), "%s", m->source_volume_id);
	if (make(n, &what, &v, err) < 0)
		return -1;
	const struct csi_snapshot s = {
		.id = v->id, .source = v->source, .size_bytes = v->size_bytes, .taken_s = 1, .ready = true};
	csi__v1__create_snapshot_response__init(reply);
	reply->snapshot = csi_snapshot(&s, arena);
	*ret = &reply->base;
	return 0;
}

static Csi__V1__VolumeGroupSnapshot *show_group(
	const struct honest_node *n, const char *group, struct arena *arena)
{
	Csi__V1__Snapshot **list = arena_alloc(arena, HONEST_VOLUMES_MAX * sizeof(*list));
	size_t n_found = 0;

	for (size_t i = 0; i < n->n; i++) {
		const struct honest_volume *v = &n->volumes[i];
		const struct csi_snapshot s = {.id = v->id,
			.source = v->source,
			.group = v->group,
			.size_bytes = v->size_bytes,
			.taken_s = 1,
			.ready = true};

		if (str_eq(v->group, group))
			list[n_found++] = csi_snapshot(&s, arena);
	}
	return csi_group(group, list, n_found, arena);
}

/* All of it or nothing. */
static int create_group(struct honest_node *n, const Csi__V1__CreateVolumeGroupSnapshotRequest *m,
	struct arena *arena, const ProtobufCMessage **ret, struct error **err)
{
	Csi__V1__CreateVolumeGroupSnapshotResponse *reply = arena_alloc(arena, sizeof(*reply));
	size_t n_before = n->n;
	char group[VOLUME_ID_MAX + 1];

	volume_group_id(m->name, n->node_id, group);
	csi__v1__create_volume_group_snapshot_response__init(reply);
	for (size_t i = 0; i < m->n_source_volume_ids; i++) {
		struct honest_volume what = {.size_bytes = HONEST_GIB, .is_snapshot = true};
		struct honest_volume *v;

		volume_group_member_name(m->name, m->source_volume_ids[i], what.name);
		volume_id_mint(what.name, n->node_id, what.id);
		memcpy(what.group, group, sizeof(group));
		snprintf(what.source, sizeof(what.source), "%s", m->source_volume_ids[i]);
		if (make(n, &what, &v, err) < 0) {
			n->n = n_before;
			return -1;
		}
	}
	reply->group_snapshot = show_group(n, group, arena);
	*ret = &reply->base;
	return 0;
}

static int get_group(struct honest_node *n, const Csi__V1__GetVolumeGroupSnapshotRequest *m,
	struct arena *arena, const ProtobufCMessage **ret, struct error **err)
{
	Csi__V1__GetVolumeGroupSnapshotResponse *reply = arena_alloc(arena, sizeof(*reply));

	csi__v1__get_volume_group_snapshot_response__init(reply);
	reply->group_snapshot = show_group(n, m->group_snapshot_id, arena);
	if (reply->group_snapshot->n_snapshots == 0)
		return err_set(err, ERR_NOT_FOUND, "group %s does not exist", m->group_snapshot_id);
	*ret = &reply->base;
	return 0;
}

/* Deletion is idempotent. */
static int delete_one(struct honest_node *n, const char *id, bool unstaged, struct error **err)
{
	struct honest_volume *v = honest_node_find(n, id);

	if (!v)
		return 0;
	if (unstaged && v->staged)
		return err_set(err, ERR_PRECONDITION, "volume %s was staged", id);
	n->on_delete(n->user, n, v);
	*v = n->volumes[--n->n];
	return 0;
}

static int expand(struct honest_node *n, const Csi__V1__ControllerExpandVolumeRequest *m, struct arena *arena,
	const ProtobufCMessage **ret, struct error **err)
{
	Csi__V1__ControllerExpandVolumeResponse *reply = arena_alloc(arena, sizeof(*reply));
	struct honest_volume *v;

	if (require(n, m->volume_id, &v, err) < 0)
		return -1;
	if (v->size_bytes < (uint64_t)m->capacity_range->required_bytes)
		v->size_bytes = (uint64_t)m->capacity_range->required_bytes;
	csi__v1__controller_expand_volume_response__init(reply);
	reply->capacity_bytes = (int64_t)v->size_bytes;
	*ret = &reply->base;
	return 0;
}

static const ProtobufCMessage *empty(const ProtobufCMessageDescriptor *type, struct arena *arena)
{
	ProtobufCMessage *m = arena_alloc(arena, type->sizeof_message);

	protobuf_c_message_init(type, m);
	return m;
}

int honest_node_serve(struct honest_node *n, const ProtobufCMessage *request, struct arena *arena,
	const ProtobufCMessage **ret, struct error **err)
{
	const ProtobufCMessageDescriptor *type = request->descriptor;
	struct honest_volume *v;

	if (type == &csi__v1__create_volume_request__descriptor)
		return create_volume(n, (const Csi__V1__CreateVolumeRequest *)request, arena, ret, err);
	if (type == &csi__v1__create_snapshot_request__descriptor)
		return create_snapshot(n, (const Csi__V1__CreateSnapshotRequest *)request, arena, ret, err);
	if (type == &csi__v1__create_volume_group_snapshot_request__descriptor)
		return create_group(
			n, (const Csi__V1__CreateVolumeGroupSnapshotRequest *)request, arena, ret, err);
	if (type == &csi__v1__get_volume_group_snapshot_request__descriptor)
		return get_group(n, (const Csi__V1__GetVolumeGroupSnapshotRequest *)request, arena, ret, err);
	if (type == &csi__v1__controller_expand_volume_request__descriptor)
		return expand(n, (const Csi__V1__ControllerExpandVolumeRequest *)request, arena, ret, err);
	if (type == &csi__v1__controller_modify_volume_request__descriptor) {
		*ret = empty(&csi__v1__controller_modify_volume_response__descriptor, arena);
		return require(
			n, ((const Csi__V1__ControllerModifyVolumeRequest *)request)->volume_id, &v, err);
	}
	if (type == &csi__v1__delete_volume_request__descriptor) {
		*ret = empty(&csi__v1__delete_volume_response__descriptor, arena);
		return delete_one(n, ((const Csi__V1__DeleteVolumeRequest *)request)->volume_id,
			/* unstaged= */ false, err);
	}
	if (type == &csi__v1__delete_snapshot_request__descriptor) {
		*ret = empty(&csi__v1__delete_snapshot_response__descriptor, arena);
		return delete_one(n, ((const Csi__V1__DeleteSnapshotRequest *)request)->snapshot_id,
			/* unstaged= */ false, err);
	}
	if (type == &registry__v0__delete_if_never_staged_request__descriptor) {
		*ret = empty(&registry__v0__delete_if_never_staged_reply__descriptor, arena);
		return delete_one(n, ((const Registry__V0__DeleteIfNeverStagedRequest *)request)->volume_id,
			/* unstaged= */ true, err);
	}
	return err_set(err, ERR_UNIMPLEMENTED, "%s is not served", type->name);
}

static Registry__V0__InventoryVolume *report_volume(const struct honest_volume *v, struct arena *arena)
{
	Registry__V0__InventoryVolume *m = arena_alloc(arena, sizeof(*m));

	registry__v0__inventory_volume__init(m);
	m->id = arena_strdup(arena, v->id);
	m->name = arena_strdup(arena, v->name);
	m->size_bytes = v->size_bytes;
	m->phase = REGISTRY__V0__INVENTORY_VOLUME__PHASE__READY;
	m->ever_staged = v->staged || v->is_snapshot;
	m->made_by_controller = true;
	if (v->is_snapshot) {
		m->snapshot = arena_alloc(arena, sizeof(*m->snapshot));
		registry__v0__snapshot__init(m->snapshot);
		m->snapshot->source_volume_id = arena_strdup(arena, v->source);
		m->snapshot->taken_s = 1;
		m->snapshot->group_snapshot_id = arena_strdup(arena, v->group);
	}
	return m;
}

static Registry__V0__RegionCapacity *report_region(const struct honest_node *n, struct arena *arena)
{
	Registry__V0__RegionCapacity *m = arena_alloc(arena, sizeof(*m));

	registry__v0__region_capacity__init(m);
	m->name = arena_strdup(arena, "region0");
	m->total_bytes = HONEST_VOLUMES_MAX * 4 * HONEST_GIB;
	m->available_bytes = (HONEST_VOLUMES_MAX - n->n) * 4 * HONEST_GIB;
	m->max_volume_bytes = m->max_sector_volume_bytes = m->available_bytes;
	return m;
}

const Registry__V0__RegisterControllerRequest *honest_node_report(
	struct honest_node *n, bool is_silent, struct arena *arena)
{
	Registry__V0__RegisterControllerRequest *m = arena_alloc(arena, sizeof(*m));

	registry__v0__register_controller_request__init(m);
	m->node_id = arena_strdup(arena, n->node_id);
	m->endpoint = arena_strdup(arena, n->endpoint);
	m->lease_seconds = 90;
	m->report_number = ++n->report_number;
	m->serves_node_volumes = m->serves_expansion = m->serves_modification = true;
	m->n_regions = 1;
	m->regions = arena_alloc(arena, sizeof(*m->regions));
	m->regions[0] = report_region(n, arena);
	if (is_silent)
		return m;
	m->inventory = arena_alloc(arena, sizeof(*m->inventory));
	registry__v0__inventory__init(m->inventory);
	m->inventory->volumes = arena_alloc(arena, HONEST_VOLUMES_MAX * sizeof(*m->inventory->volumes));
	for (size_t i = 0; i < n->n; i++)
		m->inventory->volumes[m->inventory->n_volumes++] = report_volume(&n->volumes[i], arena);
	return m;
}

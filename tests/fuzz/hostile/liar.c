/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/hostile/liar.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "csi/csi_groups.h"
#include "csi/reply.h"
#include "fuzz/fuzz.h"
#include "net/grpc/grpc_protobuf.h"
#include "volume/id.h"

#define GIB         (1LL << 30)
#define CONTEXT_MAX 300
#define VOLUMES_MAX 4

/* A choice among @n, of which the first is the truth. */
static size_t choose(struct span *in, size_t n)
{
	return fuzz_byte(in) % n;
}

static char *take_text(struct span *in, struct arena *arena)
{
	size_t n = fuzz_byte(in);
	CLEANUP(free_charp) char *text = fuzz_text(fuzz_bytes(in, n));

	return arena_strdup(arena, text);
}

static const char *choose_name(const struct liar *l, struct span *in)
{
	return l->names[choose(in, l->n_names)];
}

static char *choose_id(const struct liar *l, struct span *in, const char *truth, struct arena *arena)
{
	static const char *const odd[] = {"", "../../etc/passwd", "a/b", ".", "..", "-", "vol\n"};
	char id[VOLUME_ID_MAX + 1];
	const char *name;

	switch (choose(in, 7)) {
	case 1:
		name = choose_name(l, in);
		volume_id_mint(name, l->nodes[choose(in, l->n_nodes)], id);
		break;
	case 2:
		volume_id_mint(choose_name(l, in), NULL, id);
		break;
	case 3:
		volume_id_mint_go(choose_name(l, in), id);
		break;
	case 4:
		name = choose_name(l, in);
		volume_group_id(name, l->nodes[choose(in, l->n_nodes)], id);
		break;
	case 5:
		return arena_strdup(arena, odd[choose(in, ARRAY_SIZE(odd))]);
	case 6:
		return take_text(in, arena);
	default:
		return arena_strdup(arena, truth);
	}
	return arena_strdup(arena, id);
}

static int64_t choose_bytes(struct span *in, int64_t truth)
{
	const int64_t all[] = {truth, 0, -1, 1, truth - 1, INT64_MAX, INT64_MIN, 1LL << 50, 1LL << 62};

	return all[choose(in, ARRAY_SIZE(all))];
}

static void add_context(Csi__V1__Volume *v, size_t n, struct arena *arena)
{
	v->volume_context = arena_alloc(arena, n * sizeof(*v->volume_context));
	while (v->n_volume_context < n) {
		Csi__V1__Volume__VolumeContextEntry *e = arena_alloc(arena, sizeof(*e));

		csi__v1__volume__volume_context_entry__init(e);
		e->key = arena_strdup(arena, "key");
		e->value = arena_strdup(arena, "value");
		v->volume_context[v->n_volume_context++] = e;
	}
}

static void lie_of_volume(const struct liar *l, struct span *in, const Csi__V1__CreateVolumeRequest *q,
	Csi__V1__CreateVolumeResponse *m, struct arena *arena)
{
	const size_t n_context[] = {0, 1, CONTEXT_MAX};
	Csi__V1__Volume *v = arena_alloc(arena, sizeof(*v));
	bool is_cache = q->n_parameters > 0;
	char truth[VOLUME_ID_MAX + 1];

	volume_id_mint(q->name, is_cache ? NULL : l->node_id, truth);
	csi__v1__volume__init(v);
	v->volume_id = choose_id(l, in, truth, arena);
	v->capacity_bytes = choose_bytes(in, q->capacity_range->required_bytes);
	v->content_source = choose(in, 2) == 0 ? q->volume_content_source
					       : csi_content_source(arena, choose_id(l, in, truth, arena),
							 /* is_snapshot= */ choose(in, 2) == 1);
	add_context(v, n_context[choose(in, ARRAY_SIZE(n_context))], arena);
	m->volume = v;
}

static void lie_of_snapshot(const struct liar *l, struct span *in, const Csi__V1__CreateSnapshotRequest *q,
	Csi__V1__CreateSnapshotResponse *m, struct arena *arena)
{
	char truth[VOLUME_ID_MAX + 1];

	volume_id_mint(q->name, l->node_id, truth);
	const struct csi_snapshot s = {.id = choose_id(l, in, truth, arena),
		.source = choose_id(l, in, q->source_volume_id, arena),
		.size_bytes = (uint64_t)choose_bytes(in, GIB),
		.taken_s = (uint64_t)choose_bytes(in, 1),
		.ready = true};
	m->snapshot = csi_snapshot(&s, arena);
}

static Csi__V1__VolumeGroupSnapshot *lie_of_group(const struct liar *l, struct span *in, const char *id,
	char *const *sources, size_t n, struct arena *arena)
{
	Csi__V1__Snapshot **list = arena_alloc(arena, n * sizeof(*list));
	const char *group = choose_id(l, in, id, arena);
	char name[VOLUME_NAME_MAX + 1];
	char truth[VOLUME_ID_MAX + 1];

	for (size_t i = 0; i < n; i++) {
		volume_group_member_name(l->names[l->n_names - 1], sources[i], name);
		volume_id_mint(name, l->node_id, truth);
		const struct csi_snapshot s = {.id = choose_id(l, in, truth, arena),
			.source = choose_id(l, in, sources[i], arena),
			.group = choose_id(l, in, id, arena),
			.size_bytes = (uint64_t)choose_bytes(in, GIB),
			.taken_s = 1,
			.ready = true};
		list[i] = csi_snapshot(&s, arena);
	}
	return csi_group(group, list, n, arena);
}

static void lie_of_new_group(const struct liar *l, struct span *in,
	const Csi__V1__CreateVolumeGroupSnapshotRequest *q, Csi__V1__CreateVolumeGroupSnapshotResponse *m,
	struct arena *arena)
{
	char id[VOLUME_ID_MAX + 1];

	volume_group_id(q->name, l->node_id, id);
	m->group_snapshot = lie_of_group(
		l, in, id, q->source_volume_ids, choose(in, 2) == 0 ? q->n_source_volume_ids : 1, arena);
}

/* Its snapshots are of volumes whose handles are names of others. */
static void lie_of_known_group(const struct liar *l, struct span *in,
	const Csi__V1__GetVolumeGroupSnapshotRequest *q, Csi__V1__GetVolumeGroupSnapshotResponse *m,
	struct arena *arena)
{
	char *sources[] = {choose_id(l, in, choose_name(l, in), arena)};

	m->group_snapshot = lie_of_group(l, in, q->group_snapshot_id, sources, ARRAY_SIZE(sources), arena);
}

/* Fills @m, which is a reply to @q that says nothing. */
static void fill(const struct liar *l, struct span *in, const ProtobufCMessage *q, ProtobufCMessage *m,
	struct arena *arena)
{
	if (q->descriptor == &csi__v1__create_volume_request__descriptor)
		lie_of_volume(l, in, (const Csi__V1__CreateVolumeRequest *)q,
			(Csi__V1__CreateVolumeResponse *)m, arena);
	else if (q->descriptor == &csi__v1__create_snapshot_request__descriptor)
		lie_of_snapshot(l, in, (const Csi__V1__CreateSnapshotRequest *)q,
			(Csi__V1__CreateSnapshotResponse *)m, arena);
	else if (q->descriptor == &csi__v1__controller_expand_volume_request__descriptor)
		((Csi__V1__ControllerExpandVolumeResponse *)m)->capacity_bytes = choose_bytes(in, 2 * GIB);
	else if (q->descriptor == &csi__v1__create_volume_group_snapshot_request__descriptor)
		lie_of_new_group(l, in, (const Csi__V1__CreateVolumeGroupSnapshotRequest *)q,
			(Csi__V1__CreateVolumeGroupSnapshotResponse *)m, arena);
	else if (q->descriptor == &csi__v1__get_volume_group_snapshot_request__descriptor)
		lie_of_known_group(l, in, (const Csi__V1__GetVolumeGroupSnapshotRequest *)q,
			(Csi__V1__GetVolumeGroupSnapshotResponse *)m, arena);
}

const ProtobufCMessage *liar_reply(const struct liar *l, struct span *in, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *type, struct arena *arena, struct error **err)
{
	ProtobufCMessage *m = arena_alloc(arena, type->sizeof_message);

	protobuf_c_message_init(type, m);
	switch (choose(in, 4)) {
	case 1:
		err_set(err, (enum err_code)(1 + choose(in, ERR_UNAVAILABLE)), "the node is hostile");
		return NULL;
	case 2:
		return m;
	case 3: {
		size_t n = fuzz_byte(in);

		return grpc_protobuf_unpack(type, fuzz_bytes(in, n), arena, &m, err) == 0 ? m : NULL;
	}
	default:
		fill(l, in, request, m, arena);
		return m;
	}
}

/* The bits of a byte say what is special about a volume. */
enum { STAGED = 1, BY_PROVISIONER = 2, SNAPSHOT = 4, SICK = 8, INLINE = 16, PHASE_SHIFT = 5 };

static Registry__V0__InventoryVolume *lie_of_inventory(
	const struct liar *l, struct span *in, struct arena *arena)
{
	static const Registry__V0__InventoryVolume__Phase phases[] = {
		REGISTRY__V0__INVENTORY_VOLUME__PHASE__READY, REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING,
		REGISTRY__V0__INVENTORY_VOLUME__PHASE__ERASING,
		REGISTRY__V0__INVENTORY_VOLUME__PHASE__MISSING,
		REGISTRY__V0__INVENTORY_VOLUME__PHASE__UNKNOWN};
	Registry__V0__InventoryVolume *v = arena_alloc(arena, sizeof(*v));
	char truth[VOLUME_ID_MAX + 1];

	registry__v0__inventory_volume__init(v);
	v->name = arena_strdup(arena, choose_name(l, in));
	volume_id_mint(v->name, l->node_id, truth);
	v->id = choose_id(l, in, truth, arena);
	v->size_bytes = (uint64_t)choose_bytes(in, GIB);
	uint8_t special = fuzz_byte(in);
	v->phase = phases[(special >> PHASE_SHIFT) % ARRAY_SIZE(phases)];
	v->ever_staged = special & STAGED;
	v->made_by_controller = !(special & BY_PROVISIONER);
	v->is_inline = special & INLINE;
	if (special & SNAPSHOT) {
		v->snapshot = arena_alloc(arena, sizeof(*v->snapshot));
		registry__v0__snapshot__init(v->snapshot);
		v->snapshot->source_volume_id = choose_id(l, in, truth, arena);
		v->snapshot->group_snapshot_id = choose_id(l, in, "", arena);
	}
	if (special & SICK) {
		v->n_health = 1;
		v->health = arena_alloc(arena, sizeof(*v->health));
		v->health[0] = arena_alloc(arena, sizeof(*v->health[0]));
		registry__v0__health_status__init(v->health[0]);
		v->health[0]->severity = (Registry__V0__HealthStatus__Severity)choose(in, 5);
		v->health[0]->reason = take_text(in, arena);
	}
	return v;
}

static Registry__V0__RegionCapacity *lie_of_region(struct span *in, struct arena *arena)
{
	Registry__V0__RegionCapacity *r = arena_alloc(arena, sizeof(*r));

	registry__v0__region_capacity__init(r);
	r->name = arena_strdup(arena, "region0");
	r->total_bytes = (uint64_t)choose_bytes(in, 64 * GIB);
	r->available_bytes = (uint64_t)choose_bytes(in, 64 * GIB);
	r->max_volume_bytes = (uint64_t)choose_bytes(in, 64 * GIB);
	return r;
}

const Registry__V0__RegisterControllerRequest *liar_report(
	const struct liar *l, struct span *in, bool is_silent, struct arena *arena)
{
	Registry__V0__RegisterControllerRequest *m = arena_alloc(arena, sizeof(*m));
	size_t whose = choose(in, 16);
	size_t n = choose(in, VOLUMES_MAX + 1);

	registry__v0__register_controller_request__init(m);
	m->node_id = arena_strdup(arena, whose < 4 ? l->node_id : l->nodes[whose % l->n_nodes]);
	m->endpoint =
		arena_strdup(arena, whose % 4 == 0 ? l->endpoint : l->endpoints[whose / 4 % l->n_nodes]);
	m->lease_seconds = 90;
	m->serves_node_volumes = m->serves_expansion = m->serves_modification = true;
	m->n_regions = 1;
	m->regions = arena_alloc(arena, sizeof(*m->regions));
	m->regions[0] = lie_of_region(in, arena);
	if (is_silent)
		return m;
	m->inventory = arena_alloc(arena, sizeof(*m->inventory));
	registry__v0__inventory__init(m->inventory);
	m->inventory->volumes = arena_alloc(arena, VOLUMES_MAX * sizeof(*m->inventory->volumes));
	while (m->inventory->n_volumes < n)
		m->inventory->volumes[m->inventory->n_volumes++] = lie_of_inventory(l, in, arena);
	return m;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the provisioner to the controller, and what it remembers of the answers. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "csi/reply.h"
#include "fuzz/fuzz.h"
#include "fuzz/hostile/hostile_private.h"

static bool is_wanted(void *user)
{
	(void)user;
	return true;
}

static struct handed *find_handed(struct hostile_cluster *c, const char *handle)
{
	for (size_t i = 0; i < c->n_handed; i++) {
		if (str_eq(c->handed[i].handle, handle))
			return &c->handed[i];
	}
	assert(c->n_handed < HOSTILE_HANDED);
	struct handed *h = &c->handed[c->n_handed++];
	snprintf(h->handle, sizeof(h->handle), "%s", handle);
	return h;
}

void hostile_note_given(
	struct hostile_cluster *c, struct claim *claim, const char *handle, const bool on[HOSTILE_NODES])
{
	struct handed *before = claim->has;
	struct handed *h = find_handed(c, handle);

	assert(str_empty(h->name) || str_eq(h->name, claim->name)); /* no handle has two names */
	snprintf(h->name, sizeof(h->name), "%s", claim->name);
	h->claim = claim;
	h->is_deleting = h->is_replaced = false;
	memcpy(h->on, on, sizeof(h->on));
	hostile_check_given(h);
	if (before && before != h)
		before->is_replaced = true;
	claim->has = h;
}

void hostile_note_deleted(struct hostile_cluster *c, struct claim *claim)
{
	hostile_check_deleted(c, claim->had);
	claim->has = NULL;
	claim->source = NULL;
}

/* The snapshot has no topology: its ID names its node. */
static void take_created(struct ask *a)
{
	const Csi__V1__Volume *v = a->claim->kind == CLAIM_SNAPSHOT ? NULL : a->reply.volume.volume;
	const char *handle = v ? v->volume_id : a->reply.snapshot.snapshot->snapshot_id;
	bool on[HOSTILE_NODES];

	for (size_t i = 0; i < HOSTILE_NODES; i++)
		on[i] = !v && volume_id_names_node(handle, hostile_node_ids[i]);
	for (size_t i = 0; v && i < v->n_accessible_topology; i++) {
		const char *node_id = csi_topology_node(HOSTILE_DRIVER, v->accessible_topology[i]);
		size_t node = hostile_node_number(node_id);

		assert(node < HOSTILE_NODES);
		on[node] = true;
	}
	hostile_note_given(a->cluster, a->claim, handle, on);
}

static void take_answer(struct ask *a)
{
	switch (a->kind) {
	case ASK_CREATE:
		take_created(a);
		break;
	case ASK_DELETE:
		hostile_note_deleted(a->cluster, a->claim);
		break;
	case ASK_CHANGE:
	case ASK_SHOW:
		break;
	}
}

static void finish(void *user, struct error *error)
{
	struct ask *a = user;

	assert(!a->is_over);
	a->is_over = true;
	if (a->claim)
		a->claim->is_busy = false;
	else
		a->cluster->group.is_busy = false;
	if (error)
		fuzz_error(error);
	else if (a->claim)
		take_answer(a);
	else
		hostile_group_ended(a);
}

void hostile_note_began(struct hostile_cluster *c, struct claim *claim)
{
	claim->had = claim->has;
	claim->was_there = hostile_is_there(c, claim->has);
	for (size_t i = 0; i < HOSTILE_NODES; i++)
		claim->source_was_on[i] =
			claim->source && hostile_can_be_on(c, hostile_node_ids[i], claim->source);
}

struct ask *hostile_ask(struct hostile_cluster *c, enum ask_kind kind, struct claim *claim)
{
	struct ask *a = x_calloc(1, sizeof(*a));

	*a = (struct ask){
		.next = c->asks, .cluster = c, .kind = kind, .claim = claim, .arena = arena_new(1 << 20)};
	if (claim) {
		hostile_note_began(c, claim);
		claim->is_busy = true;
	} else {
		c->group.is_busy = true;
	}
	c->asks = a;
	return a;
}

struct waiter hostile_waiter(struct ask *a)
{
	return (struct waiter){.arena = a->arena,
		.deadline_ns = DEADLINE_NONE,
		.finish = finish,
		.is_wanted = is_wanted,
		.user = a};
}

static Csi__V1__VolumeCapability *make_capability(struct arena *arena)
{
	Csi__V1__VolumeCapability *v = arena_alloc(arena, sizeof(*v));

	csi__v1__volume_capability__init(v);
	v->access_mode = arena_alloc(arena, sizeof(*v->access_mode));
	csi__v1__volume_capability__access_mode__init(v->access_mode);
	v->access_mode->mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	v->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	v->mount = arena_alloc(arena, sizeof(*v->mount));
	csi__v1__volume_capability__mount_volume__init(v->mount);
	return v;
}

static Csi__V1__CapacityRange *make_range(struct arena *arena, uint64_t bytes)
{
	Csi__V1__CapacityRange *r = arena_alloc(arena, sizeof(*r));

	csi__v1__capacity_range__init(r);
	r->required_bytes = (int64_t)bytes;
	return r;
}

static void add_parameter(
	Csi__V1__CreateVolumeRequest *q, const char *key, const char *value, struct arena *arena)
{
	Csi__V1__CreateVolumeRequest__ParametersEntry *e = arena_alloc(arena, sizeof(*e));

	csi__v1__create_volume_request__parameters_entry__init(e);
	e->key = arena_strdup(arena, key);
	e->value = arena_strdup(arena, value);
	q->parameters[q->n_parameters++] = e;
}

static void create_volume(struct hostile_cluster *c, struct claim *claim)
{
	struct ask *a = hostile_ask(c, ASK_CREATE, claim);
	Csi__V1__CreateVolumeRequest *q = arena_alloc(a->arena, sizeof(*q));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__create_volume_request__init(q);
	csi__v1__create_volume_response__init(&a->reply.volume);
	q->name = arena_strdup(a->arena, claim->name);
	q->capacity_range = make_range(a->arena, HONEST_GIB);
	q->n_volume_capabilities = 1;
	q->volume_capabilities = arena_alloc(a->arena, sizeof(*q->volume_capabilities));
	q->volume_capabilities[0] = make_capability(a->arena);
	q->parameters = arena_alloc(a->arena, 2 * sizeof(*q->parameters));
	if (claim->kind == CLAIM_CACHE) {
		add_parameter(q, "persistencyModel", "cache", a->arena);
		add_parameter(q, "cacheSize", "2", a->arena);
	}
	if (claim->source)
		q->volume_content_source = csi_content_source(a->arena, claim->source, claim->is_restored);
	controller_create(c->controller, &waiter, q, &a->reply.volume);
}

static void create_snapshot(struct hostile_cluster *c, struct claim *claim)
{
	struct ask *a = hostile_ask(c, ASK_CREATE, claim);
	Csi__V1__CreateSnapshotRequest *q = arena_alloc(a->arena, sizeof(*q));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__create_snapshot_request__init(q);
	csi__v1__create_snapshot_response__init(&a->reply.snapshot);
	q->name = arena_strdup(a->arena, claim->name);
	q->source_volume_id = arena_strdup(a->arena, claim->source);
	controller_create_snapshot(c->controller, &waiter, q, &a->reply.snapshot, /* joint= */ NULL, 0);
}

/* A copy is of something that was given out, and stays the copy of that until it is deleted. Return: false:
 * there is nothing to copy. */
static bool choose_source(struct hostile_cluster *c, struct claim *claim)
{
	if (claim->kind != CLAIM_CLONE && claim->kind != CLAIM_SNAPSHOT)
		return true;
	size_t first = fuzz_byte(&c->in);
	for (size_t i = 0; i < HOSTILE_CLAIMS && !claim->source; i++) {
		const struct claim *from = &c->claims[(first + i) % HOSTILE_CLAIMS];

		if (from == claim || !from->has ||
			(claim->kind == CLAIM_SNAPSHOT && from->kind == CLAIM_SNAPSHOT))
			continue;
		claim->source = from->has->handle;
		claim->is_restored = from->kind == CLAIM_SNAPSHOT;
	}
	return claim->source != NULL;
}

void hostile_create(struct hostile_cluster *c, struct claim *claim)
{
	if (claim->is_busy || !choose_source(c, claim))
		return;
	if (claim->kind == CLAIM_SNAPSHOT)
		create_snapshot(c, claim);
	else
		create_volume(c, claim);
}

void hostile_delete(struct hostile_cluster *c, struct claim *claim)
{
	if (claim->is_busy || !claim->has)
		return;
	struct ask *a = hostile_ask(c, ASK_DELETE, claim);
	const struct waiter waiter = hostile_waiter(a);

	claim->has->is_deleting = true;
	if (claim->kind == CLAIM_SNAPSHOT) {
		Csi__V1__DeleteSnapshotRequest *q = arena_alloc(a->arena, sizeof(*q));

		csi__v1__delete_snapshot_request__init(q);
		q->snapshot_id = arena_strdup(a->arena, claim->has->handle);
		controller_delete_snapshot(c->controller, &waiter, q);
	} else {
		Csi__V1__DeleteVolumeRequest *q = arena_alloc(a->arena, sizeof(*q));

		csi__v1__delete_volume_request__init(q);
		q->volume_id = arena_strdup(a->arena, claim->has->handle);
		controller_delete(c->controller, &waiter, q);
	}
}

static void expand(struct hostile_cluster *c, struct ask *a)
{
	Csi__V1__ControllerExpandVolumeRequest *q = arena_alloc(a->arena, sizeof(*q));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__controller_expand_volume_request__init(q);
	csi__v1__controller_expand_volume_response__init(&a->reply.expanded);
	q->volume_id = arena_strdup(a->arena, a->claim->has->handle);
	q->capacity_range = make_range(a->arena, 2 * HONEST_GIB);
	controller_expand(c->controller, &waiter, q, &a->reply.expanded);
}

static void modify(struct hostile_cluster *c, struct ask *a)
{
	Csi__V1__ControllerModifyVolumeRequest *q = arena_alloc(a->arena, sizeof(*q));
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry *e = arena_alloc(a->arena, sizeof(*e));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__controller_modify_volume_request__init(q);
	csi__v1__controller_modify_volume_request__mutable_parameters_entry__init(e);
	e->key = arena_strdup(a->arena, "eraseafter");
	e->value = arena_strdup(a->arena, "false");
	q->volume_id = arena_strdup(a->arena, a->claim->has->handle);
	q->n_mutable_parameters = 1;
	q->mutable_parameters = arena_alloc(a->arena, sizeof(*q->mutable_parameters));
	q->mutable_parameters[0] = e;
	controller_modify(c->controller, &waiter, q);
}

void hostile_change(struct hostile_cluster *c, struct claim *claim)
{
	if (claim->is_busy || !claim->has || claim->kind == CLAIM_SNAPSHOT)
		return;
	struct ask *a = hostile_ask(c, ASK_CHANGE, claim);

	if (fuzz_byte(&c->in) & 1)
		modify(c, a);
	else
		expand(c, a);
}

static void check_entry(const Csi__V1__Volume *v)
{
	assert(volume_handle_valid(v->volume_id));
	assert(v->capacity_bytes >= 0);
	for (size_t i = 0; i < v->n_accessible_topology; i++)
		assert(!volume_id_names_other_node(
			v->volume_id, csi_topology_node(HOSTILE_DRIVER, v->accessible_topology[i])));
}

static bool list_volumes(struct hostile_cluster *c, struct arena *arena)
{
	Csi__V1__ListVolumesRequest q;
	Csi__V1__ListVolumesResponse reply;
	struct error *err = NULL;

	csi__v1__list_volumes_request__init(&q);
	csi__v1__list_volumes_response__init(&reply);
	int rv = controller_list(c->controller, arena, &q, &reply, &err);
	if (rv < 0)
		fuzz_error(err);
	for (size_t i = 0; i < reply.n_entries; i++) {
		check_entry(reply.entries[i]->volume);
		assert(i == 0 || !str_eq(reply.entries[i]->volume->volume_id,
					 reply.entries[i - 1]->volume->volume_id));
	}
	return rv == 0;
}

static bool list_snapshots(struct hostile_cluster *c, struct arena *arena)
{
	Csi__V1__ListSnapshotsRequest q;
	Csi__V1__ListSnapshotsResponse reply;
	struct error *err = NULL;

	csi__v1__list_snapshots_request__init(&q);
	csi__v1__list_snapshots_response__init(&reply);
	int rv = controller_list_snapshots(c->controller, arena, &q, &reply, &err);
	if (rv < 0)
		fuzz_error(err);
	for (size_t i = 0; i < reply.n_entries; i++)
		assert(volume_handle_valid(reply.entries[i]->snapshot->snapshot_id));
	return rv == 0;
}

static void ask_capacity(struct hostile_cluster *c, struct arena *arena)
{
	Csi__V1__GetCapacityRequest q;
	Csi__V1__GetCapacityResponse reply;
	struct error *err = NULL;

	csi__v1__get_capacity_request__init(&q);
	csi__v1__get_capacity_response__init(&reply);
	if (controller_capacity(c->controller, arena, &q, &reply, &err) < 0)
		fuzz_error(err);
	assert(reply.available_capacity >= 0);
}

bool hostile_list(struct hostile_cluster *c)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(1 << 20);
	bool has_volumes = list_volumes(c, arena);
	bool has_snapshots = list_snapshots(c, arena);

	ask_capacity(c, arena);
	return has_volumes && has_snapshots;
}

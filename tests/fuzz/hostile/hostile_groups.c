/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the snapshotter about a group snapshot, whose snapshots are claims of their own. */
#include <assert.h>
#include <stdio.h>

#include "base/str.h"
#include "fuzz/hostile/hostile_private.h"

/* Volumes that have been given out, which stay those of the group until it is deleted. Return: false: there
 * are too few. */
static bool choose_sources(struct hostile_cluster *c, uint8_t which)
{
	struct group *g = &c->group;
	size_t n = 0;

	if (g->members[0].source)
		return true;
	for (size_t i = 0; i < HOSTILE_CLAIMS && n < HOSTILE_MEMBERS; i++) {
		const struct claim *from = &c->claims[(which + i) % HOSTILE_CLAIMS];

		if (from->has && from->kind != CLAIM_SNAPSHOT)
			g->members[n++] = (struct claim){.kind = CLAIM_SNAPSHOT, .source = from->has->handle};
	}
	for (size_t i = 0; i < n; i++) {
		volume_group_member_name(HOSTILE_GROUP, g->members[i].source, g->names[i]);
		g->members[i].name = g->names[i];
	}
	if (n < HOSTILE_MEMBERS)
		g->members[0].source = NULL;
	return n == HOSTILE_MEMBERS;
}

static struct ask *ask_group(struct hostile_cluster *c, enum ask_kind kind)
{
	for (size_t i = 0; i < HOSTILE_MEMBERS; i++)
		hostile_note_began(c, &c->group.members[i]);
	return hostile_ask(c, kind, /* claim= */ NULL);
}

void hostile_group_create(struct hostile_cluster *c, uint8_t which)
{
	if (c->group.is_busy || !choose_sources(c, which))
		return;
	struct ask *a = ask_group(c, ASK_CREATE);
	Csi__V1__CreateVolumeGroupSnapshotRequest *q = arena_alloc(a->arena, sizeof(*q));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__create_volume_group_snapshot_request__init(q);
	csi__v1__create_volume_group_snapshot_response__init(&a->reply.group);
	q->name = arena_strdup(a->arena, HOSTILE_GROUP);
	q->source_volume_ids = arena_alloc(a->arena, HOSTILE_MEMBERS * sizeof(*q->source_volume_ids));
	for (size_t i = 0; i < HOSTILE_MEMBERS; i++)
		q->source_volume_ids[q->n_source_volume_ids++] =
			arena_strdup(a->arena, c->group.members[i].source);
	controller_create_group(c->controller, &waiter, q, &a->reply.group);
}

void hostile_group_delete(struct hostile_cluster *c)
{
	struct group *g = &c->group;

	if (g->is_busy || str_empty(g->id))
		return;
	struct ask *a = ask_group(c, ASK_DELETE);
	Csi__V1__DeleteVolumeGroupSnapshotRequest *q = arena_alloc(a->arena, sizeof(*q));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__delete_volume_group_snapshot_request__init(q);
	q->group_snapshot_id = arena_strdup(a->arena, g->id);
	q->snapshot_ids = arena_alloc(a->arena, HOSTILE_MEMBERS * sizeof(*q->snapshot_ids));
	for (size_t i = 0; i < HOSTILE_MEMBERS; i++) {
		g->members[i].has->is_deleting = true;
		q->snapshot_ids[q->n_snapshot_ids++] = arena_strdup(a->arena, g->members[i].has->handle);
	}
	controller_delete_group(c->controller, &waiter, q);
}

void hostile_group_show(struct hostile_cluster *c)
{
	struct group *g = &c->group;

	if (g->is_busy || str_empty(g->id))
		return;
	struct ask *a = ask_group(c, ASK_SHOW);
	Csi__V1__GetVolumeGroupSnapshotRequest *q = arena_alloc(a->arena, sizeof(*q));
	const struct waiter waiter = hostile_waiter(a);

	csi__v1__get_volume_group_snapshot_request__init(q);
	csi__v1__get_volume_group_snapshot_response__init(&a->reply.shown);
	q->group_snapshot_id = arena_strdup(a->arena, g->id);
	controller_get_group(c->controller, &waiter, q, &a->reply.shown);
}

static size_t find_node(const char *group)
{
	char id[VOLUME_ID_MAX + 1];
	size_t node = HOSTILE_NODES;

	for (size_t i = 0; i < HOSTILE_NODES; i++) {
		volume_group_id(HOSTILE_GROUP, hostile_node_ids[i], id);
		if (str_eq(id, group))
			node = i;
	}
	assert(node < HOSTILE_NODES);
	return node;
}

/* The group is on one node, which mints all of its IDs. */
static void take_group(struct ask *a)
{
	const Csi__V1__VolumeGroupSnapshot *m = a->reply.group.group_snapshot;
	struct group *g = &a->cluster->group;
	bool on[HOSTILE_NODES] = {0};
	size_t node = find_node(m->group_snapshot_id);

	assert(m->n_snapshots == HOSTILE_MEMBERS);
	on[node] = true;
	for (size_t i = 0; i < HOSTILE_MEMBERS; i++) {
		const Csi__V1__Snapshot *s = m->snapshots[i];

		assert(str_eq(s->source_volume_id, g->members[i].source));
		assert(str_eq(s->group_snapshot_id, m->group_snapshot_id));
		assert(volume_id_names_node(s->snapshot_id, hostile_node_ids[node]));
		hostile_note_given(a->cluster, &g->members[i], s->snapshot_id, on);
	}
	snprintf(g->id, sizeof(g->id), "%s", m->group_snapshot_id);
}

static void check_shown(struct ask *a)
{
	const Csi__V1__VolumeGroupSnapshot *m = a->reply.shown.group_snapshot;
	const struct group *g = &a->cluster->group;
	const char *node_id = hostile_node_ids[find_node(g->id)];

	assert(str_eq(m->group_snapshot_id, g->id));
	for (size_t i = 0; i < m->n_snapshots; i++)
		assert(volume_id_names_node(m->snapshots[i]->snapshot_id, node_id));
}

void hostile_group_ended(struct ask *a)
{
	struct group *g = &a->cluster->group;

	switch (a->kind) {
	case ASK_CREATE:
		take_group(a);
		break;
	case ASK_DELETE:
		for (size_t i = 0; i < HOSTILE_MEMBERS; i++)
			hostile_note_deleted(a->cluster, &g->members[i]);
		g->id[0] = '\0';
		break;
	case ASK_SHOW:
		check_shown(a);
		break;
	case ASK_CHANGE:
		break;
	}
}

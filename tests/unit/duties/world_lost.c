/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that leave the cluster for long and return, and the leader that writes into the records which nodes
 * are lost. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/world.h"

/* The controller takes a node for gone after a lease time. */
#define LOST_NS   (200 * NS_PER_S)
#define LEADER_NS (3 * NS_PER_S)
/* A reply may be on its way when a node returns. */
#define REPLY_NS NS_PER_S

struct stay {
	struct world_node *node;
	unsigned departures;
};

static void come_back(void *user)
{
	const struct stay *s = user;

	if (s->node->departures != s->departures)
		return;
	s->node->gone = false;
	s->node->returned_ns = s->node->world->now_ns;
}

void world_node_leave(struct world_node *n, uint64_t duration_ns)
{
	struct world *w = n->world;
	struct stay *s = arena_alloc(w->memory, sizeof(*s));

	if (!n->gone)
		n->left_ns = w->now_ns;
	n->gone = true;
	*s = (struct stay){n, ++n->departures};
	world_node_cut(n, duration_ns);
	world_at(w, duration_ns, come_back, s);
}

void world_nodes_return(struct world *w)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		w->nodes[i].departures++;
		w->nodes[i].gone = false;
		w->nodes[i].returned_ns = w->now_ns;
	}
}

bool world_node_is_lost(const struct world_node *n)
{
	return n->gone && n->world->now_ns - n->left_ns >= LOST_NS;
}

static void drop_result(void *user, struct pmem_volume *record, const struct error *error)
{
	(void)user;
	(void)error;
	pmem_volume_free(record);
}

static const struct world_node *find_node(const struct world *w, const char *node_id)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		if (str_eq(w->nodes[i].id, node_id))
			return &w->nodes[i];
	}
	return NULL;
}

static size_t count_lost(const struct pmem_volume *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_copies; i++)
		n += str_eq(v->copies[i].phase, PMEM_VOLUME_LOST);
	return n;
}

/* Which of the nodes of the record are lost. Return: whether that was not shown. */
static bool show(struct world *w, const char *handle, const char *name)
{
	const struct volume_records r = memory_records_interface(w->memory_records);
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = world_record_of(w, handle, name);
	CLEANUP(pmem_volume_freep) struct pmem_volume *status = NULL;
	bool differs;

	if (!record)
		return false;
	status = pmem_volume_dup(record);
	pmem_volume_clear_copies(status);
	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		const char *node_id = record->nodes[i];
		bool is_lost = world_node_is_lost(find_node(w, node_id));

		pmem_volume_add_copy(status, node_id, is_lost ? PMEM_VOLUME_LOST : "Ready", 0, 0);
	}
	differs = count_lost(record) != count_lost(status);
	for (size_t i = 0; i < status->n_copies; i++) {
		const char *node_id = status->copies[i].node;

		differs = differs ||
			  pmem_volume_is_lost(record, node_id) != pmem_volume_is_lost(status, node_id);
	}
	if (differs)
		r.write(r.self, RECORD_STATUS, status, drop_result, NULL);
	return differs;
}

static bool is_any_gone(const struct world *w)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		if (w->nodes[i].gone)
			return true;
	}
	return false;
}

static void show_all(struct world *w)
{
	bool differs = is_any_gone(w);

	for (size_t i = 0; i < WORLD_NODES; i++) {
		const struct world_node *n = &w->nodes[i];

		for (size_t k = 0; k < n->n_volumes; k++)
			differs = show(w, n->volumes[k].id, n->volumes[k].name) || differs;
	}
	for (size_t i = 0; i < WORLD_CLAIMS; i++)
		differs = show(w, w->claims[i].handle, w->claims[i].name) || differs;
	w->may_differ = differs;
}

static void lead(void *user)
{
	struct world *w = user;

	if (w->closing)
		return;
	w->may_differ = w->may_differ || is_any_gone(w);
	if (w->may_differ && !w->api_down)
		show_all(w);
	world_at(w, LEADER_NS, lead, w);
}

void world_leader_begin(struct world *w)
{
	world_at(w, LEADER_NS, lead, w);
}

/* Notes copies that stay for ever: those on nodes that could not be asked to delete them, although
 * DeleteVolume of the volume has succeeded. */
void world_keep_lost(struct world *w, const struct world_claim *c)
{
	for (size_t i = 0; i < WORLD_NODES; i++) {
		const struct world_node *n = &w->nodes[i];
		bool was_gone = n->gone || (n->returned_ns > 0 && w->now_ns - n->returned_ns < REPLY_NS);
		struct world_kept *k;

		if (!was_gone || !world_node_find(&w->nodes[i], c->handle))
			continue;
		w->kept = x_realloc(w->kept, w->n_kept + 1, sizeof(*w->kept));
		w->n_ever_kept++;
		k = &w->kept[w->n_kept++];
		*k = (struct world_kept){.node = i};
		snprintf(k->handle, sizeof(k->handle), "%s", c->handle);
		snprintf(k->name, sizeof(k->name), "%s", c->name);
	}
}

bool world_is_kept(const struct world *w, size_t node, const char *handle)
{
	for (size_t i = 0; i < w->n_kept; i++) {
		if (w->kept[i].node == node && str_eq(w->kept[i].handle, handle))
			return true;
	}
	return false;
}

/* An administrator makes a PV for it; a volume with several copies is left alone. */
void world_kept_use(struct world *w)
{
	struct world_claim *c = &w->claims[world_random(w, WORLD_CLAIMS)];
	struct world_kept *k;

	if (w->n_kept == 0 || !world_claim_is_free(c))
		return;
	k = &w->kept[world_random(w, w->n_kept)];
	if (w->nodes[k->node].gone || !strchr(k->handle, '.'))
		return;
	*c = (struct world_claim){.world = w, .calls = c->calls, .has_pvc = true, .has_pv = true};
	snprintf(c->name, sizeof(c->name), "%s", k->name);
	snprintf(c->handle, sizeof(c->handle), "%s", k->handle);
	c->on[k->node] = true;
	*k = w->kept[--w->n_kept];
}

void world_check_kept(struct world *w)
{
	for (size_t i = 0; i < w->n_kept; i++) {
		if (!world_node_find(&w->nodes[w->kept[i].node], w->kept[i].handle))
			world_break(w, "%s is not on %s any more, where it was when that was gone",
				w->kept[i].name, w->nodes[w->kept[i].node].id);
	}
}

void world_check_erasure(struct world_node *n, const struct world_volume *v)
{
	struct world *w = n->world;
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = world_record_of(w, v->id, v->name);
	bool is_called = false;

	if (!v->ever_staged)
		return;
	for (size_t i = 0; i < WORLD_CLAIMS; i++) {
		const struct world_claim *c = &w->claims[i];

		is_called = is_called || (c->deleting && str_eq(c->handle, v->id));
	}
	if (!is_called)
		world_break(w, "%s was in use, and %s erases it without a call", v->name, n->id);
	if (record && pmem_volume_is_lost(record, n->id))
		world_break(w, "%s erases %s although it is lost", n->id, v->name);
}

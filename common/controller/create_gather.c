/* SPDX-License-Identifier: Apache-2.0 */
/* Who could take a new volume: what the caller admits, and what the nodes have said of themselves. */
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/str.h"
#include "controller/create_private.h"
#include "csi/convert.h"

/* What is known of one name, looked up once for all nodes. */
struct gathering {
	struct create *op;
	struct node_hit *hits;
	size_t n_hits;
	char *const *begun;
	const struct node *const *nodes;
	size_t n_nodes;
	bool *requisite; /* by place in nodes */
	bool *seen;
	const char *unregistered;
	const char *silent; /* live, but without an inventory */
	const char *told;   /* not live, and its volume was staged: its caller knows of it */
	uint64_t seed;
	size_t guess; /* place of the node that is asked for next, if callers name them in order */
	bool ordered;
};

static void gathering_done(struct gathering *g)
{
	free(g->hits);
}

/* A volume that is being erased is gone for all callers. */
static bool has_volume(const struct gathering *g, const struct node *node, bool *ret_staged)
{
	for (size_t i = 0; i < g->n_hits; i++) {
		if (g->hits[i].node != node || g->hits[i].volume->phase == PHASE_ERASING)
			continue;
		*ret_staged = g->hits[i].volume->ever_staged;
		return true;
	}
	return false;
}

static bool has_begun(const struct gathering *g, const char *node_id)
{
	return g->begun && strv_contains(g->begun, node_id);
}

static void add_dead(struct gathering *g, const char *node_id, const struct node *node)
{
	struct create *op = g->op;
	bool staged = false;
	bool has = node && has_volume(g, node, &staged);

	op->n_dead++;
	if ((!has && !has_begun(g, node_id)) || controller_is_gone(op->controller, node_id))
		return;
	op->uncertain = node_id;
	if (staged)
		g->told = node_id;
}

/* @node_id: of @node, and lives as long as the call */
static void add_live(struct gathering *g, const struct node *node, const char *node_id)
{
	struct create *op = g->op;
	struct candidate *c = &op->candidates[op->n_candidates];
	uint64_t left_bytes = placement_left_bytes(node, op->sector);
	bool staged = false;

	c->node_id = node_id;
	c->claim = left_bytes >= op->required_bytes ? PLACEMENT_ROOM : PLACEMENT_DOUBTFUL;
	c->left_bytes = g->ordered ? 0 : left_bytes;
	c->turn = g->ordered ? op->n_candidates : placement_turn(g->seed, node);
	if (has_volume(g, node, &staged))
		c->claim = staged ? PLACEMENT_IN_USE : PLACEMENT_HAS;
	else if (has_begun(g, node_id))
		c->claim = PLACEMENT_BEGUN;
	op->n_candidates++;
	if (!node->report.has_inventory)
		g->silent = c->node_id;
}

static void add_node(struct gathering *g, size_t at, const char *node_id)
{
	const struct node *node = g->nodes[at];

	if (g->seen[at])
		return;
	g->seen[at] = true;
	if (node->live)
		add_live(g, node, node_id);
	else
		add_dead(g, node_id, node);
}

static void add_all(struct gathering *g)
{
	for (size_t i = 0; i < g->n_nodes; i++)
		add_node(g, i, arena_strdup(g->op->waiter.arena, g->nodes[i]->report.node_id));
}

static int order_node(const void *element, const void *key)
{
	const struct node *const *node = element;

	return strcmp((*node)->report.node_id, key);
}

/* Place of @node_id in the sorted array. Return: n_nodes: it has not registered. */
static size_t find_place(struct gathering *g, const char *node_id)
{
	size_t at = g->guess < g->n_nodes ? g->guess : 0;

	bool found = at < g->n_nodes && str_eq(g->nodes[at]->report.node_id, node_id);

	if (!found)
		at = sorted_find(g->nodes, g->n_nodes, sizeof(*g->nodes), node_id, order_node, &found);
	at = found ? at : g->n_nodes;
	g->guess = at + 1;
	return at;
}

static void add_unregistered(struct gathering *g, const char *node_id)
{
	g->unregistered = node_id;
	add_dead(g, node_id, NULL);
}

static void add_topology(struct gathering *g, const Csi__V1__Topology *t, bool only_requisite)
{
	const char *node_id = csi_topology_node(g->op->controller->config.driver_name, t);
	size_t at;

	if (!node_id) {
		add_all(g);
		return;
	}
	at = find_place(g, node_id);
	if (at < g->n_nodes && (!only_requisite || g->requisite[at]))
		add_node(g, at, node_id);
	/* of the preferred ones it is among the requisite ones too */
	else if (at == g->n_nodes && !only_requisite)
		add_unregistered(g, node_id);
}

static void mark_requisite(struct gathering *g, const Csi__V1__Topology *t)
{
	const char *node_id = csi_topology_node(g->op->controller->config.driver_name, t);
	size_t at = node_id ? find_place(g, node_id) : g->n_nodes;

	if (at < g->n_nodes)
		g->requisite[at] = true;
	if (!node_id)
		memset(g->requisite, true, g->n_nodes);
}

static void add_required(struct gathering *g, const Csi__V1__TopologyRequirement *t)
{
	for (size_t i = 0; i < t->n_requisite; i++)
		mark_requisite(g, t->requisite[i]);
	for (size_t i = 0; i < t->n_preferred; i++)
		add_topology(g, t->preferred[i], /* only_requisite= */ t->n_requisite > 0);
	for (size_t i = 0; i < t->n_requisite; i++)
		add_topology(g, t->requisite[i], /* only_requisite= */ false);
}

/* Any node may have the name already: those that have not registered too. */
static int add_any(struct gathering *g, struct error **err)
{
	const struct possible_owners *o = &g->op->controller->config.owners;
	const char *const *ids;
	size_t n;

	add_all(g);
	if (!controller_in_start_window(g->op->controller))
		return 0;
	if (!o->ready(o->self))
		return err_set(err, ERR_UNAVAILABLE, "which nodes there are is not known yet");
	n = o->list(o->self, &ids);
	for (size_t i = 0; i < n; i++) {
		if (find_place(g, ids[i]) == g->n_nodes)
			add_unregistered(g, arena_strdup(g->op->waiter.arena, ids[i]));
	}
	return 0;
}

static int judge(const struct gathering *g, struct error **err)
{
	const struct create *op = g->op;

	if (g->unregistered && controller_in_start_window(op->controller))
		return err_set(err, ERR_UNAVAILABLE, "node %s has not registered yet", g->unregistered);
	if (g->silent)
		return err_set(err, ERR_UNAVAILABLE, "node %s has not reported its volumes yet", g->silent);
	if (g->told)
		return err_set(err, ERR_UNAVAILABLE, "node %s has the volume, but is not connected", g->told);
	if (op->n_candidates > 0)
		return 0;
	if (op->uncertain)
		return err_set(err, ERR_UNAVAILABLE, "node %s may have the volume, but is not connected",
			op->uncertain);
	if (!g->ordered)
		return err_set(err, ERR_UNAVAILABLE, "no node is connected");
	return err_set(
		err, ERR_EXHAUSTED, "none of the %zu nodes that were asked for is connected", op->n_dead);
}

int create_gather(struct create *op, struct error **err)
{
	struct controller *c = op->controller;
	const Csi__V1__TopologyRequirement *t = op->request->accessibility_requirements;
	CLEANUP(gathering_done)
	struct gathering g = {.op = op,
		.begun = attempts_nodes(c->attempts, &op->key),
		.seed = placement_seed(op->key.hex),
		.ordered = t && t->n_requisite + t->n_preferred > 0};

	g.n_hits = node_table_find_name(c->config.nodes, op->request->name, &g.hits);
	g.n_nodes = node_table_nodes(c->config.nodes, &g.nodes);
	g.requisite = arena_alloc(op->waiter.arena, g.n_nodes * sizeof(*g.requisite));
	g.seen = arena_alloc(op->waiter.arena, g.n_nodes * sizeof(*g.seen));
	op->candidates = arena_alloc(op->waiter.arena, g.n_nodes * sizeof(*op->candidates));
	if (t && g.ordered)
		add_required(&g, t);
	else if (add_any(&g, err) < 0)
		return -1;
	return judge(&g, err);
}

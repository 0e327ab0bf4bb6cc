/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/str.h"
#include "controller/volume_status.h"
#include "csi/convert.h"
#include "volume/id.h"
#include "volume/params.h"

/* The data about one volume name by which nodes are judged, looked up once for all nodes. */
struct gathering {
	const struct candidates_query *q;
	struct candidates *found;
	struct node_hit *hits;
	size_t n_hits;
	const struct node *const *nodes;
	size_t n_nodes;
	bool *requisite; /* by place in nodes */
	bool *seen;
	const char *unregistered;
	const char *silent; /* live, but without an inventory, and waited for */
	const char *in_use; /* cannot be asked, and its volume was staged: the caller got its ID earlier */
	const char *admitted_in_use; /* live, has the volume, which was staged or given out there, and is a
					candidate */
	const char *elsewhere; /* live, has the volume, which was staged, but the caller does not admit it */
	const char *dead;      /* cannot be asked */
	char **sources;        /* strv: nodes that have the volume that is to be cloned, or may have it */
	uint64_t seed;
	size_t guess; /* place of the node that is asked for next, if callers name them in order */
	bool ordered;
};

static void gathering_done(struct gathering *g)
{
	free(g->hits);
	strv_free(g->sources);
}

static void add_source(struct gathering *g, const char *node_id)
{
	if (!strv_contains(g->sources, node_id))
		strv_add(&g->sources, node_id);
}

/* A report may be older than the volume, so that what the record says counts, too. A source that is being
 * erased is gone for all callers; of any other phase its node decides. */
static void find_sources(struct gathering *g)
{
	const struct candidates_query *q = g->q;
	const struct pmem_volume *record = q->source_record;
	struct node_hit *hits;
	size_t n = volume_status_holders(record, q->controller->config.nodes, q->source->handle, &hits);

	for (size_t i = 0; i < n; i++) {
		if (hits[i].volume->phase != PHASE_ERASING)
			add_source(g, hits[i].node->report.node_id);
	}
	free(hits);
	if (!record || !str_eq(record->handle, q->source->handle))
		return;
	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		if (!volume_id_names_other_node(q->source->handle, record->nodes[i]))
			add_source(g, record->nodes[i]);
	}
}

/* Whether the volume was given out with a handle that names another node: then the name that @node reports
 * does not make its copy the one that pods use. */
static bool is_of_other_node(const struct gathering *g, const struct node *node)
{
	const struct pmem_volume *r = g->q->record;

	return r && r->handle && !r->origin && !volume_id_fits_node(r->handle, node->hash);
}

static bool is_given_out(const struct gathering *g, const struct node *node)
{
	const struct pmem_volume *r = g->q->record;

	return r && r->handle && !r->origin && volume_id_has_node(r->handle) &&
	       volume_id_fits_node(r->handle, node->hash);
}

/* A volume that is being erased is gone for all callers. */
static bool has_volume(const struct gathering *g, const struct node *node, bool *ret_staged)
{
	for (size_t i = 0; i < g->n_hits; i++) {
		if (g->hits[i].node != node || g->hits[i].volume->phase == PHASE_ERASING)
			continue;
		*ret_staged = g->hits[i].volume->ever_staged && !is_of_other_node(g, node);
		return true;
	}
	return false;
}

static bool has_begun(const struct gathering *g, const char *node_id)
{
	return g->q->record && pmem_volume_has_node(g->q->record, node_id);
}

/* A node that has begun the clone, as its record says, continues with it even if its source is not there any
 * more. That a node reports the name of the clone counts only where no node has the source: nodes that do
 * not have it cannot have made the clone, whatever they report. */
static bool can_have_source(const struct gathering *g, const char *node_id, const struct node *node)
{
	const char *handle = g->q->source->handle;
	bool staged;

	if (!handle)
		return true;
	if (volume_id_names_other_node(handle, node_id))
		return false;
	return strv_contains(g->sources, node_id) || has_begun(g, node_id) ||
	       (!g->sources && node && has_volume(g, node, &staged));
}

/* A node that is not live, or out of service: then no volume is made there, even if it reports. */
static void add_dead(struct gathering *g, const char *node_id, const struct node *node)
{
	const struct controller *c = g->q->controller;
	bool staged = false;
	bool has = node && has_volume(g, node, &staged);

	g->dead = node_id;
	if (controller_is_out_of_service(c, node_id))
		g->found->n_out++;
	else
		g->found->n_dead++;
	if ((!has && !has_begun(g, node_id)) || controller_is_gone(c, node_id))
		return;
	g->found->uncertain = node_id;
	if (staged)
		g->in_use = node_id;
}

/* @node_id: of @node, and lives as long as the call */
static void add_live(struct gathering *g, const struct node *node, const char *node_id)
{
	struct candidates *found = g->found;
	struct candidate *c = &found->list[found->n];
	uint64_t max_volume_bytes =
		placement_max_volume_bytes(node, g->q->sector, g->q->needs & PARAMS_NEED_SYNC);
	bool staged = false;

	c->node_id = node_id;
	c->claim = max_volume_bytes >= g->q->required_bytes ? PLACEMENT_ROOM : PLACEMENT_DOUBTFUL;
	c->max_volume_bytes = g->ordered ? 0 : max_volume_bytes;
	c->turn = g->ordered ? found->n : placement_turn(g->seed, node);
	if (has_volume(g, node, &staged))
		c->claim = staged || is_given_out(g, node) ? PLACEMENT_IN_USE : PLACEMENT_HAS;
	else if (has_begun(g, node_id))
		c->claim = PLACEMENT_BEGUN;
	if (c->claim == PLACEMENT_IN_USE)
		g->admitted_in_use = c->node_id;
	found->n++;
	if (!node->report.has_inventory)
		g->silent = c->node_id;
}

/* Drivers of earlier releases would refuse it as a mistake of the caller. A node that has the volume, or has
 * begun it, is asked in any case. */
static bool is_able(const struct gathering *g, const char *node_id, const struct node *node)
{
	bool staged;

	return node_report_makes(&node->report, g->q->needs) || has_begun(g, node_id) ||
	       has_volume(g, node, &staged);
}

/* A node that may have the volume or its source is always waited for: no other can serve the call, or it
 * would make a second volume. Without a record that names it, a node was never asked. */
static bool is_passed_over(const struct gathering *g, const char *node_id, const struct node *node)
{
	const struct controller *c = g->q->controller;
	bool staged;

	return !node->report.has_inventory && !g->q->source->handle && !has_begun(g, node_id) &&
	       !has_volume(g, node, &staged) && !inventory_waits_for(c->waits, node_id, controller_now_ns(c));
}

static void add_node(struct gathering *g, size_t at, const char *node_id)
{
	const struct node *node = g->nodes[at];

	if (g->seen[at] || !can_have_source(g, node_id, node))
		return;
	g->seen[at] = true;
	if (!node->live || controller_is_out_of_service(g->q->controller, node_id))
		add_dead(g, node_id, node);
	else if (!is_able(g, node_id, node))
		g->found->n_unable++;
	else if (is_passed_over(g, node_id, node))
		g->found->n_silent++;
	else
		add_live(g, node, node_id);
}

static void add_all(struct gathering *g)
{
	for (size_t i = 0; i < g->n_nodes; i++)
		add_node(g, i, arena_strdup(g->q->arena, g->nodes[i]->report.node_id));
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
	if (!can_have_source(g, node_id, NULL))
		return;
	g->unregistered = node_id;
	add_dead(g, node_id, NULL);
}

static void add_topology(struct gathering *g, const Csi__V1__Topology *t, bool only_requisite)
{
	const char *node_id = csi_topology_node(g->q->controller->config.driver_name, t);
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
	const char *node_id = csi_topology_node(g->q->controller->config.driver_name, t);
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
static void add_any(struct gathering *g)
{
	const struct controller *c = g->q->controller;
	const char *node_id;
	size_t at = 0;

	add_all(g);
	if (!controller_in_start_window(c))
		return;
	while ((node_id = cluster_nodes_next(c->config.cluster, &at)) != NULL) {
		if (find_place(g, node_id) == g->n_nodes)
			add_unregistered(g, arena_strdup(g->q->arena, node_id));
	}
}

/* @node_id, which is not a candidate, has the volume, which was in use. */
static void add_elsewhere(struct gathering *g, const char *node_id, bool can_be_asked)
{
	if (controller_is_gone(g->q->controller, node_id))
		return;
	*(can_be_asked ? &g->elsewhere : &g->in_use) = node_id;
}

/* Whether a volume was in use is not known before its node reports. */
static void find_recorded_elsewhere(struct gathering *g)
{
	const struct pmem_volume *record = g->q->record;

	if (!record || record->snapshot || (!record->handle && !record->origin))
		return;
	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		const char *node_id = record->nodes[i];
		size_t at = find_place(g, node_id);

		if (record->handle && volume_id_names_other_node(record->handle, node_id))
			continue;
		if (at == g->n_nodes)
			add_elsewhere(g, node_id, /* can_be_asked= */ false);
		else if (!g->nodes[at]->report.has_inventory)
			g->silent = node_id;
	}
}

/* A volume that was in use has data, which a second one of that name would replace by nothing. Each copy of a
 * cache volume is a cache of its own. */
static void find_elsewhere(struct gathering *g)
{
	if (g->q->is_cache || g->admitted_in_use)
		return;
	for (size_t i = 0; i < g->n_hits; i++) {
		const struct node *node = g->hits[i].node;
		const char *node_id = node->report.node_id;
		bool staged = false;

		if (!g->seen[find_place(g, node_id)] && has_volume(g, node, &staged) && staged)
			add_elsewhere(g, node_id,
				node->live && !controller_is_out_of_service(g->q->controller, node_id));
	}
	find_recorded_elsewhere(g);
}

static const char *why_not(const struct gathering *g, const char *node_id)
{
	return controller_is_out_of_service(g->q->controller, node_id)
		       ? "has the taint node.kubernetes.io/out-of-service"
		       : "is not connected";
}

/* No node that has the source can be asked. */
static int set_no_source(const struct gathering *g, struct error **err)
{
	const char *source = g->q->source->handle;
	const char *noun = volume_noun(g->q->source->is_snapshot);
	size_t n = strv_len(g->sources);

	if (n == 0 && controller_require_inventories(g->q->controller, err) < 0)
		return -1;
	if (n == 0)
		return err_set(
			err, ERR_NOT_FOUND, "%s %s, which is to be copied, does not exist", noun, source);
	if (g->dead)
		return err_set(err, ERR_UNAVAILABLE, "node %s, which has %s %s, %s", g->dead, noun, source,
			why_not(g, g->dead));
	return err_set(err, ERR_EXHAUSTED,
		"none of the requested nodes has %s %s, which can be copied only where it is: on node %s%s",
		noun, source, g->sources[0], n > 1 ? ", among others" : "");
}

/* Not one node can be asked. */
static int set_none(const struct gathering *g, struct error **err)
{
	const struct candidates *found = g->found;
	size_t n = found->n_dead + found->n_out + found->n_silent;

	if (found->uncertain)
		return err_set(err, ERR_UNAVAILABLE, "node %s may have the volume, but %s", found->uncertain,
			why_not(g, found->uncertain));
	if (found->n_unable > 0)
		return err_set(err, ERR_EXHAUSTED,
			"none of %zu nodes can take the volume (without volumes for Kata Containers, of which "
			"`pmem-csi-driver doctor` on the node says why: %zu, not connected: %zu, with the taint "
			"node.kubernetes.io/out-of-service: %zu, without a report of their volumes: %zu)",
			n + found->n_unable, found->n_unable, found->n_dead, found->n_out, found->n_silent);
	if (g->q->source->handle)
		return set_no_source(g, err);
	if (found->n_out + found->n_silent > 0)
		return err_set(err, g->ordered ? ERR_EXHAUSTED : ERR_UNAVAILABLE,
			"none of the %zu nodes can take the volume (not connected: %zu, with the taint "
			"node.kubernetes.io/out-of-service: %zu, without a report of their volumes: %zu)",
			n, found->n_dead, found->n_out, found->n_silent);
	if (!g->ordered)
		return err_set(err, ERR_UNAVAILABLE, "no node is connected");
	return err_set(err, ERR_EXHAUSTED, "none of the %zu requested nodes is connected", n);
}

static int judge(const struct gathering *g, struct error **err)
{
	if (g->unregistered && controller_in_start_window(g->q->controller))
		return err_set(err, ERR_UNAVAILABLE, "node %s has not registered yet", g->unregistered);
	if (g->silent)
		return err_set(err, ERR_UNAVAILABLE, "node %s has not reported its volumes yet", g->silent);
	if (g->in_use)
		return err_set(err, ERR_UNAVAILABLE, "node %s has the volume, but %s", g->in_use,
			why_not(g, g->in_use));
	if (g->elsewhere)
		return err_set(err, ERR_EXHAUSTED,
			"volume \"%s\" was in use on node %s, and is made on no other node: pods that use it have to "
			"run there; if its data is not needed, delete the claim",
			g->q->request->name, g->elsewhere);
	return g->found->n > 0 ? 0 : set_none(g, err);
}

int candidates_find(const struct candidates_query *q, struct candidates *ret, struct error **err)
{
	const struct controller *c = q->controller;
	const Csi__V1__TopologyRequirement *t = q->request->accessibility_requirements;
	CLEANUP(gathering_done)
	struct gathering g = {.q = q,
		.found = ret,
		.seed = placement_seed(q->key->hex),
		.ordered = t && t->n_requisite + t->n_preferred > 0};

	*ret = (struct candidates){0};
	/* before that a node that is out of service looks like any other */
	if (controller_require_ready(c, err) < 0)
		return -1;
	if (c->config.may_create && c->config.may_create(c->config.may_create_user, err) < 0)
		return -1;
	if (q->source->handle)
		find_sources(&g);
	g.n_hits = node_table_find_name(c->config.nodes, q->request->name, &g.hits);
	g.n_nodes = node_table_nodes(c->config.nodes, &g.nodes);
	g.requisite = arena_alloc(q->arena, g.n_nodes * sizeof(*g.requisite));
	g.seen = arena_alloc(q->arena, g.n_nodes * sizeof(*g.seen));
	ret->list = arena_alloc(q->arena, g.n_nodes * sizeof(*ret->list));
	if (t && g.ordered)
		add_required(&g, t);
	else
		add_any(&g);
	find_elsewhere(&g);
	return judge(&g, err);
}

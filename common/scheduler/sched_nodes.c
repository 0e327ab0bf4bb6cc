/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/sched_nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "pmem/layout.h"

/* Numbers of a node that are not of this world: the rounding of namespaces takes steps of their size. */
#define ALIGN_MAX_BYTES (1ULL << 30)
#define BYTES_MAX       (1ULL << 56)

#define FIND_AT_ONCE NAME_INDEX_EACH_MAX

struct volume_link {
	struct name_link by_name;
	const struct volume_report *volume;
	size_t node;
};

struct place {
	struct sched_node node;
	struct name_link by_id;
	struct node_report *report;
	struct volume_link *volumes; /* those with a name */
	size_t n_volumes;
	bool put;       /* since sched_nodes_begin_table() */
	bool was_stale; /* before it */
	bool swept;     /* it has been stale since sched_nodes_sweep() */
};

struct sched_nodes {
	struct place **places; /* by index; NULL: free */
	size_t n;
	size_t first_free; /* no place before it is */
	struct name_index by_id;
	struct name_index volumes;
	struct sched_nodes_watcher watcher;
};

struct sched_nodes *sched_nodes_new(void)
{
	struct sched_nodes *nodes = x_calloc(1, sizeof(*nodes));

	name_index_init(&nodes->by_id);
	name_index_init(&nodes->volumes);
	return nodes;
}

static void forget_report(struct sched_nodes *nodes, struct place *p)
{
	for (size_t i = 0; i < p->n_volumes; i++)
		name_index_remove(&nodes->volumes, &p->volumes[i].by_name);
	free(p->volumes);
	free(p->node.pools);
	node_report_free(p->report);
}

static void place_free(struct sched_nodes *nodes, struct place *p)
{
	name_index_remove(&nodes->by_id, &p->by_id);
	forget_report(nodes, p);
	free(p);
}

void sched_nodes_free(struct sched_nodes *nodes)
{
	if (!nodes)
		return;
	for (size_t i = 0; i < nodes->n; i++) {
		if (nodes->places[i])
			place_free(nodes, nodes->places[i]);
	}
	free(nodes->places);
	name_index_done(&nodes->by_id);
	name_index_done(&nodes->volumes);
	free(nodes);
}

static struct place *find(const struct sched_nodes *nodes, struct span name)
{
	struct name_link *l = name_index_find(&nodes->by_id, name);

	return l ? OWNER_OF(l, struct place, by_id) : NULL;
}

static struct place *add_place(struct sched_nodes *nodes)
{
	struct place *p = x_calloc(1, sizeof(*p));
	size_t at = nodes->first_free;

	while (at < nodes->n && nodes->places[at])
		at++;
	if (at == nodes->n) {
		size_t room = nodes->n > 0 ? nodes->n * 2 : 16;

		nodes->places = x_realloc(nodes->places, room, sizeof(*nodes->places));
		for (; nodes->n < room; nodes->n++)
			nodes->places[nodes->n] = NULL;
	}
	p->node.index = at;
	nodes->places[at] = p;
	nodes->first_free = at + 1;
	return p;
}

static bool is_sane(const struct pool_report *p)
{
	return p->rules.unit_bytes <= BYTES_MAX && p->rules.map_align_bytes <= ALIGN_MAX_BYTES &&
	       p->rules.btt_start_bytes <= ALIGN_MAX_BYTES && p->capacity.max_volume_bytes <= BYTES_MAX &&
	       p->capacity.max_sector_volume_bytes <= BYTES_MAX;
}

/* What the kernel needs for itself is only known with a unit of its kind. */
static struct sched_pool pool_of(const struct node_report *report, const struct pool_report *p)
{
	if (!is_sane(p))
		return (struct sched_pool){.capacity.total_bytes = p->capacity.total_bytes};
	struct sched_pool out = {.capacity = p->capacity, .rules = p->rules};
	if (out.rules.unit_bytes == 0)
		out.rules.unit_bytes = 1;
	out.has_rules = str_eq(report->device_mode, "direct") && p->rules.unit_bytes >= PFN_ALIGN_BYTES;
	return out;
}

static uint64_t raw_bytes(const struct sched_pool *r, uint64_t size_bytes, bool sector)
{
	if (r->has_rules)
		return layout_raw_bytes(&r->rules, sector, size_bytes);
	return layout_round_up(size_bytes > 0 ? size_bytes : 1, r->rules.unit_bytes);
}

uint64_t sched_node_most_bytes(const struct sched_node *node, uint64_t size_bytes, bool sector)
{
	uint64_t most = 0;

	if (node->unit_bytes > 0)
		return layout_round_up(size_bytes > 0 ? size_bytes : 1, node->unit_bytes);
	for (size_t i = 0; i < node->n_pools; i++) {
		const struct sched_pool *r = &node->pools[i];
		uint64_t bytes = r->rules.unit_bytes > 0 ? raw_bytes(r, size_bytes, sector) : 0;

		if (bytes > most)
			most = bytes;
	}
	return most;
}

uint64_t sched_node_raw_bytes(const struct sched_node *node, size_t pool, uint64_t size_bytes, bool sector)
{
	const struct sched_pool *r = &node->pools[pool];

	if (r->rules.unit_bytes == 0 || size_bytes > capacity_max_bytes(&r->capacity, sector))
		return UINT64_MAX;
	return raw_bytes(r, size_bytes, sector);
}

/* The piece that must be there for the largest volumes. */
static uint64_t only_piece(const struct sched_pool *r)
{
	uint64_t plain = r->capacity.max_volume_bytes ? raw_bytes(r, r->capacity.max_volume_bytes, false) : 0;
	uint64_t sector = r->capacity.max_sector_volume_bytes
				  ? raw_bytes(r, r->capacity.max_sector_volume_bytes, true)
				  : 0;

	return plain > sector ? plain : sector;
}

static void add_bins(struct sched_node *node, size_t pool, const struct pool_report *r)
{
	const struct sched_pool *to = &node->pools[pool];

	if (to->capacity.max_volume_bytes == 0 && to->capacity.max_sector_volume_bytes == 0)
		return;
	for (size_t k = 0; k < r->n_free_extents; k++)
		node->bins[node->n_bins++] = (struct best_fit_extent){r->free_extent_bytes[k], pool};
	if (r->n_free_extents == 0)
		node->bins[node->n_bins++] = (struct best_fit_extent){only_piece(to), pool};
}

/* The nodes of a cluster nearly always have one, for which nothing else need be looked at. */
static uint64_t common_unit(const struct sched_node *node)
{
	uint64_t unit = node->n_pools > 0 ? node->pools[0].rules.unit_bytes : 0;

	for (size_t i = 0; i < node->n_pools; i++) {
		if (node->pools[i].has_rules || node->pools[i].rules.unit_bytes != unit)
			return 0;
	}
	return (unit & (unit - 1)) == 0 ? unit : 0;
}

/* Thousands of nodes are looked at for each pod: what counts lies in one place for each. */
static void find_bins(struct sched_node *node)
{
	const struct node_report *report = node->report;
	size_t most = 0;

	for (size_t i = 0; i < report->n_pools; i++)
		most += report->pools[i].n_free_extents + 1;
	node->n_pools = report->n_pools;
	node->pools = x_calloc(1, report->n_pools * sizeof(*node->pools) + most * sizeof(*node->bins));
	node->bins = (struct best_fit_extent *)(void *)(node->pools + report->n_pools);
	node->n_bins = 0;
	for (size_t i = 0; i < report->n_pools; i++) {
		node->pools[i] = pool_of(report, &report->pools[i]);
		add_bins(node, i, &report->pools[i]);
	}
	node->unit_bytes = common_unit(node);
}

static void index_volumes(struct sched_nodes *nodes, struct place *p)
{
	p->volumes = x_calloc(p->report->n_volumes, sizeof(*p->volumes));
	p->n_volumes = 0;
	for (size_t i = 0; i < p->report->n_volumes; i++) {
		const struct volume_report *v = &p->report->volumes[i];
		struct volume_link *l = &p->volumes[p->n_volumes];

		if (str_empty(v->name) || v->phase == PHASE_ERASING)
			continue;
		*l = (struct volume_link){.volume = v, .node = p->node.index};
		name_index_add(&nodes->volumes, &l->by_name, v->name);
		p->n_volumes++;
	}
}

void sched_nodes_put(struct sched_nodes *nodes, struct node_report *report)
{
	struct place *p = find(nodes, span_of(report->node_id));

	if (p) {
		name_index_remove(&nodes->by_id, &p->by_id);
		forget_report(nodes, p);
	} else {
		p = add_place(nodes);
	}
	p->report = report;
	p->node.report = report;
	p->node.stale = false;
	p->swept = false;
	p->put = true;
	name_index_add(&nodes->by_id, &p->by_id, report->node_id);
	find_bins(&p->node);
	index_volumes(nodes, p);
	if (nodes->watcher.changed)
		nodes->watcher.changed(nodes->watcher.user, &p->node);
}

void sched_nodes_end(struct sched_nodes *nodes, const char *node_id)
{
	struct place *p = find(nodes, span_of(node_id));

	if (p)
		p->node.stale = true;
}

void sched_nodes_begin_table(struct sched_nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++) {
		struct place *p = nodes->places[i];

		if (!p)
			continue;
		p->put = false;
		p->was_stale = p->node.stale;
	}
}

static void forget(struct sched_nodes *nodes, size_t index)
{
	place_free(nodes, TAKE_PTR(nodes->places[index]));
	if (index < nodes->first_free)
		nodes->first_free = index;
	if (nodes->watcher.forgotten)
		nodes->watcher.forgotten(nodes->watcher.user, index);
}

void sched_nodes_end_table(struct sched_nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++) {
		struct place *p = nodes->places[i];

		if (!p || p->put)
			continue;
		if (p->was_stale)
			forget(nodes, i);
		else
			p->node.stale = true;
	}
}

void sched_nodes_sweep(struct sched_nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++) {
		struct place *p = nodes->places[i];

		if (!p || !p->node.stale)
			continue;
		if (p->swept)
			forget(nodes, i);
		else
			p->swept = true;
	}
}

const struct sched_node *sched_nodes_get(const struct sched_nodes *nodes, struct span name)
{
	const struct place *p = find(nodes, name);

	return p ? &p->node : NULL;
}

void sched_nodes_find(
	const struct sched_nodes *nodes, const struct span *names, size_t n, const struct sched_node **ret)
{
	struct name_link *found[FIND_AT_ONCE];

	for (size_t i = 0; i < n; i += FIND_AT_ONCE) {
		size_t some = n - i < FIND_AT_ONCE ? n - i : FIND_AT_ONCE;

		name_index_find_each(&nodes->by_id, names + i, some, found);
		for (size_t k = 0; k < some; k++)
			ret[i + k] = found[k] ? &OWNER_OF(found[k], struct place, by_id)->node : NULL;
	}
}

size_t sched_nodes_limit(const struct sched_nodes *nodes)
{
	return nodes->n;
}

const struct sched_node *sched_nodes_at(const struct sched_nodes *nodes, size_t index)
{
	return index < nodes->n && nodes->places[index] ? &nodes->places[index]->node : NULL;
}

const struct volume_report *sched_node_volume(
	const struct sched_nodes *nodes, const struct sched_node *node, const char *name)
{
	for (struct name_link *l = name_index_first(&nodes->volumes, name); l; l = name_index_next(l)) {
		const struct volume_link *v = OWNER_OF(l, struct volume_link, by_name);

		if (v->node == node->index)
			return v->volume;
	}
	return NULL;
}

bool sched_nodes_have_volume(const struct sched_nodes *nodes, const char *name)
{
	return name_index_first(&nodes->volumes, name) != NULL;
}

void sched_nodes_watch(struct sched_nodes *nodes, const struct sched_nodes_watcher *w)
{
	nodes->watcher = *w;
}

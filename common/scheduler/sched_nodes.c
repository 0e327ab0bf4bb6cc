/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/sched_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/parse.h"
#include "base/slab.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"

/* Larger numbers are invalid: the time for rounding namespaces grows with them. */
#define ALIGN_MAX_BYTES (1ULL << 30)
#define BYTES_MAX       (1ULL << 56)

#define FIND_AT_ONCE NAME_INDEX_EACH_MAX

struct place {
	struct sched_node node;
	char **pool_names;
	struct name_link by_name;
	char name[]; /* behind its link, because both are read for each node of a request */
};

struct sched_nodes {
	struct slabs *memory;  /* of what a request reads of each node, so that it is on few pages */
	struct place **places; /* by index; NULL: free */
	size_t n;
	size_t first_free; /* no place before it is */
	struct name_index by_name;
	struct sched_nodes_watcher watcher;
};

struct sched_nodes *sched_nodes_new(void)
{
	struct sched_nodes *nodes = x_calloc(1, sizeof(*nodes));

	nodes->memory = slabs_new();
	name_index_init(&nodes->by_name);
	return nodes;
}

static void place_free(struct sched_nodes *nodes, struct place *p)
{
	name_index_remove(&nodes->by_name, &p->by_name);
	strv_free(p->pool_names);
	slabs_release(nodes->memory, p->node.pools);
	slabs_release(nodes->memory, p);
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
	slabs_free(nodes->memory);
	name_index_done(&nodes->by_name);
	free(nodes);
}

static struct place *find(const struct sched_nodes *nodes, struct span name)
{
	struct name_link *l = name_index_find(&nodes->by_name, name);

	return l ? OWNER_OF(l, struct place, by_name) : NULL;
}

static struct place *add_place(struct sched_nodes *nodes, const char *name)
{
	size_t name_n = strlen(name) + 1;
	struct place *p = slabs_alloc(nodes->memory, sizeof(*p) + name_n);
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
	memcpy(p->name, name, name_n);
	p->node.name = p->name;
	name_index_add(&nodes->by_name, &p->by_name, p->name);
	return p;
}

static bool is_sane(const struct pmem_region *r)
{
	return r->unit_bytes <= BYTES_MAX && r->map_align_bytes <= ALIGN_MAX_BYTES &&
	       r->btt_start_bytes <= ALIGN_MAX_BYTES && r->max_volume_bytes <= BYTES_MAX &&
	       r->max_sector_volume_bytes <= BYTES_MAX;
}

/* The space for the kernel's metadata is only known if the unit is one that the kernel uses. */
static struct sched_pool pool_of(const struct pmem_node *n, const struct pmem_region *r)
{
	struct sched_pool out = {.capacity.total_bytes = r->managed_bytes};

	if (!is_sane(r))
		return out;
	out.capacity.available_bytes = r->available_bytes;
	out.capacity.max_volume_bytes = r->max_volume_bytes;
	out.capacity.max_sector_volume_bytes = r->max_sector_volume_bytes;
	out.rules = (struct layout_rules){
		r->unit_bytes > 0 ? r->unit_bytes : 1, r->map_align_bytes, r->btt_start_bytes};
	out.only_fsync = durability_parse(r->durability) == DURABILITY_FSYNC;
	out.has_rules = str_eq(n->device_mode, "direct") && r->unit_bytes >= PFN_ALIGN_BYTES;
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

uint64_t sched_node_raw_bytes(const struct sched_node *node, size_t pool, const struct sched_item *item)
{
	const struct sched_pool *r = &node->pools[pool];

	if (r->rules.unit_bytes == 0 || (item->sync && r->only_fsync) ||
		item->size_bytes > capacity_max_bytes(&r->capacity, item->sector))
		return UINT64_MAX;
	return raw_bytes(r, item->size_bytes, item->sector);
}

/* The extent that must be there for the largest volumes. */
static uint64_t only_extent(const struct sched_pool *r)
{
	uint64_t plain = r->capacity.max_volume_bytes ? raw_bytes(r, r->capacity.max_volume_bytes, false) : 0;
	uint64_t sector = r->capacity.max_sector_volume_bytes
				  ? raw_bytes(r, r->capacity.max_sector_volume_bytes, true)
				  : 0;

	return plain > sector ? plain : sector;
}

static void add_extent(struct sched_node *node, size_t pool, uint64_t bytes)
{
	node->extents[node->n_extents++] = (struct best_fit_extent){bytes, pool};
}

static void add_extents(struct sched_node *node, size_t pool, const struct pmem_region *r)
{
	const struct sched_pool *to = &node->pools[pool];

	if (to->capacity.max_volume_bytes == 0 && to->capacity.max_sector_volume_bytes == 0)
		return;
	for (char *const *text = r->free_extents; text && *text; text++) {
		CLEANUP(error_freep) struct error *ignored = NULL;
		uint64_t bytes;

		if (parse_u64(*text, &bytes, &ignored) == 0 && bytes <= BYTES_MAX)
			add_extent(node, pool, bytes);
	}
	if (!r->free_extents)
		add_extent(node, pool, only_extent(to));
}

/* The unit of all pools. Nearly all nodes have one, and then nothing else of the node need be examined. */
static uint64_t common_unit(const struct sched_node *node)
{
	uint64_t unit = node->n_pools > 0 ? node->pools[0].rules.unit_bytes : 0;

	for (size_t i = 0; i < node->n_pools; i++) {
		if (node->pools[i].has_rules || node->pools[i].rules.unit_bytes != unit)
			return 0;
	}
	return (unit & (unit - 1)) == 0 ? unit : 0;
}

static bool differ_in_sync(const struct sched_node *node)
{
	for (size_t i = 1; i < node->n_pools; i++) {
		if (node->pools[i].only_fsync != node->pools[0].only_fsync)
			return true;
	}
	return false;
}

/* Thousands of nodes are examined for each pod, so the relevant data of each is in one block of memory. */
static void find_extents(struct sched_nodes *nodes, struct sched_node *node, const struct pmem_node *n)
{
	size_t most = 0;

	for (size_t i = 0; i < n->n_regions; i++)
		most += strv_len(n->regions[i].free_extents) + 1;
	slabs_release(nodes->memory, node->pools);
	node->n_pools = n->n_regions;
	node->pools = slabs_alloc(
		nodes->memory, n->n_regions * sizeof(*node->pools) + most * sizeof(*node->extents));
	node->extents = (struct best_fit_extent *)(void *)(node->pools + n->n_regions);
	node->n_extents = 0;
	for (size_t i = 0; i < n->n_regions; i++) {
		node->pools[i] = pool_of(n, &n->regions[i]);
		add_extents(node, i, &n->regions[i]);
	}
	node->unit_bytes = common_unit(node);
	node->differs_in_sync = differ_in_sync(node);
}

static char **pool_names_of(const struct pmem_node *n)
{
	char **names = NULL;

	for (size_t i = 0; i < n->n_regions; i++)
		strv_add(&names, n->regions[i].name ? n->regions[i].name : "");
	return names;
}

void sched_nodes_put(struct sched_nodes *nodes, const struct pmem_node *n)
{
	const struct pmem_condition *ready = pmem_condition_find(&n->conditions, "Ready");
	struct place *p = find(nodes, span_of(n->node));

	if (!p)
		p = add_place(nodes, n->node);
	strv_free(p->pool_names);
	p->pool_names = pool_names_of(n);
	p->node.pool_names = p->pool_names;
	p->node.report = n->report;
	p->node.stale = !ready || !str_eq(ready->status, "True");
	find_extents(nodes, &p->node, n);
	if (nodes->watcher.changed)
		nodes->watcher.changed(nodes->watcher.user, &p->node);
}

void sched_nodes_remove(struct sched_nodes *nodes, const char *name)
{
	struct place *p = find(nodes, span_of(name));
	size_t index;

	if (!p)
		return;
	index = p->node.index;
	nodes->places[index] = NULL;
	place_free(nodes, p);
	if (index < nodes->first_free)
		nodes->first_free = index;
	if (nodes->watcher.removed)
		nodes->watcher.removed(nodes->watcher.user, index);
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

		name_index_find_each(&nodes->by_name, names + i, some, found);
		for (size_t k = 0; k < some; k++)
			ret[i + k] = found[k] ? &OWNER_OF(found[k], struct place, by_name)->node : NULL;
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

void sched_nodes_watch(struct sched_nodes *nodes, const struct sched_nodes_watcher *w)
{
	nodes->watcher = *w;
}

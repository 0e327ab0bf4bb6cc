/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/table_check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "nodes/registry_private.h"
#include "volume/id.h"

static void check_limits(const struct node *node)
{
	const struct node_report *r = &node->report;

	assert(!str_empty(r->node_id) && strlen(r->node_id) <= REGISTRY_MAX_NODE_ID);
	assert(!str_empty(r->endpoint) && strlen(r->endpoint) <= REGISTRY_MAX_TEXT);
	assert(r->n_pools <= REGISTRY_MAX_REGIONS);
	assert(r->n_volumes <= REGISTRY_MAX_VOLUMES);
	assert(r->lease_ms == 0 || r->lease_ms >= REGISTRY_MIN_LEASE_S * 1000);
	assert(r->lease_ms <= REGISTRY_MAX_LEASE_S * 1000);
	assert(node->live || node->lease_until_ns == 0);
}

static void check_hash(const struct node_table *t, const struct node *node)
{
	const struct node **found;
	size_t n = node_table_find_hash(t, node->hash, &found);
	bool is_there = false;

	for (size_t i = 0; i < n; i++)
		is_there |= found[i] == node;
	assert(is_there);
	free(found);
}

/* How often @node says that it has the volume @id. */
static size_t count_volumes(const struct node *node, const char *id)
{
	const struct volume_report *v;
	size_t count = 0;

	for (size_t at = 0; (v = node_next_volume(node, &at)) != NULL;)
		count += str_eq(v->id, id);
	return count;
}

static void check_found_by_id(const struct node_table *t, const struct node *node, const char *id)
{
	struct node_hit *hits;
	size_t n = node_table_find_volume(t, id, &hits);
	size_t here = 0;

	for (size_t i = 0; i < n; i++) {
		assert(str_eq(hits[i].volume->id, id));
		here += hits[i].node == node;
	}
	assert(here == count_volumes(node, id));
	free(hits);
}

static void check_found_by_name(
	const struct node_table *t, const struct node *node, const struct volume_report *volume)
{
	struct node_hit *hits;
	size_t n = node_table_find_name(t, volume->name, &hits);
	bool is_there = false;

	for (size_t i = 0; i < n; i++) {
		assert(str_eq(hits[i].volume->name, volume->name));
		is_there |= hits[i].node == node && hits[i].volume == volume;
	}
	/* volumes without a name are never looked up */
	assert(is_there == !str_empty(volume->name));
	free(hits);
}

static void check_volumes(const struct node_table *t, const struct node *node)
{
	const struct volume_report *v;

	for (size_t at = 0; (v = node_next_volume(node, &at)) != NULL;) {
		assert(volume_handle_valid(v->id));
		check_found_by_id(t, node, v->id);
		check_found_by_name(t, node, v);
	}
	for (size_t i = 0; i < node->n_notes; i++) {
		assert(count_volumes(node, node->notes[i].volume.id) == !node->notes[i].deleted);
		check_found_by_id(t, node, node->notes[i].volume.id);
	}
}

void table_check(const struct node_table *t)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(t, &nodes);

	assert(n <= REGISTRY_MAX_NODES);
	for (size_t i = 0; i < n; i++) {
		assert(i == 0 || strcmp(nodes[i - 1]->report.node_id, nodes[i]->report.node_id) < 0);
		assert(node_table_get(t, nodes[i]->report.node_id) == nodes[i]);
		check_limits(nodes[i]);
		check_hash(t, nodes[i]);
		check_volumes(t, nodes[i]);
	}
}

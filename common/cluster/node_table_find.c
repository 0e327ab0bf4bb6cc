/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/node_table_private.h"

const struct node *node_table_get(const struct node_table *t, const char *node_id)
{
	struct node_place *p = node_place_find(t, node_id);

	return p ? &p->node : NULL;
}

size_t node_table_nodes(const struct node_table *t, const struct node *const **ret)
{
	*ret = (const struct node *const *)t->nodes;
	return t->n;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct node *const *x = a;
	const struct node *const *y = b;

	return strcmp((*x)->report.node_id, (*y)->report.node_id);
}

size_t node_table_find_hash(const struct node_table *t, const char *hash, const struct node ***ret)
{
	const struct node **found = NULL;
	size_t n = 0;

	for (struct name_link *l = name_index_first(&t->by_hash, hash); l; l = name_index_next(l)) {
		found = x_realloc(found, n + 1, sizeof(*found));
		found[n++] = &OWNER_OF(l, struct node_place, by_hash)->node;
	}
	if (n > 1)
		qsort(found, n, sizeof(*found), compare_nodes);
	*ret = found;
	return n;
}

static int compare_hits(const void *a, const void *b)
{
	const struct node_hit *x = a;
	const struct node_hit *y = b;

	return strcmp(x->node->report.node_id, y->node->report.node_id);
}

static void add_hit(const struct volume_place *place, struct node_hit **hits, size_t n)
{
	*hits = x_realloc(*hits, n + 1, sizeof(**hits));
	(*hits)[n] = (struct node_hit){&place->node->node, place->volume};
}

static void sort_hits(struct node_hit *hits, size_t n)
{
	if (n > 1)
		qsort(hits, n, sizeof(*hits), compare_hits);
}

size_t node_table_find_volume(const struct node_table *t, const char *id, struct node_hit **ret)
{
	struct node_hit *hits = NULL;
	size_t n = 0;

	for (struct name_link *l = name_index_first(&t->volumes_by_id, id); l; l = name_index_next(l))
		add_hit(OWNER_OF(l, struct volume_place, by_id), &hits, n++);
	sort_hits(hits, n);
	*ret = hits;
	return n;
}

size_t node_table_find_name(const struct node_table *t, const char *name, struct node_hit **ret)
{
	struct node_hit *hits = NULL;
	size_t n = 0;

	for (struct name_link *l = name_index_first(&t->volumes_by_name, name); l; l = name_index_next(l))
		add_hit(OWNER_OF(l, struct volume_place, by_name), &hits, n++);
	sort_hits(hits, n);
	*ret = hits;
	return n;
}

uint64_t node_table_generation(const struct node_table *t)
{
	return t->generation;
}

const char *node_table_instance(const struct node_table *t)
{
	return t->instance;
}

size_t node_table_changes(const struct node_table *t, uint64_t since, const struct node ***ret)
{
	const struct node_place *first = NULL;
	size_t n = 0;

	*ret = NULL;
	for (const struct node_place *p = t->newest; p && p->node.generation > since; p = p->older) {
		first = p;
		n++;
	}
	if (n == 0)
		return 0;
	*ret = x_calloc(n, sizeof(**ret));
	for (size_t i = 0; i < n; i++, first = first->newer)
		(*ret)[i] = &first->node;
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/records_by_node.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"

/* The records that name a node. */
struct node_records {
	struct name_link link; /* by node ID */
	LIST_ENTRY(node_records) all;
	struct volume_key *keys;
	size_t n; /* never 0 */
	char node_id[];
};

struct records_by_node {
	struct name_index by_id;
	LIST_HEAD(, node_records) nodes; /* that are in @by_id */
};

static struct node_records *find(const struct records_by_node *index, const char *node_id)
{
	struct name_link *link = name_index_first(&index->by_id, node_id);

	return link ? OWNER_OF(link, struct node_records, link) : NULL;
}

static struct node_records *node_records_new(struct records_by_node *index, const char *node_id)
{
	size_t n = strlen(node_id) + 1;
	struct node_records *r = x_calloc(1, sizeof(*r) + n);

	memcpy(r->node_id, node_id, n);
	name_index_add(&index->by_id, &r->link, r->node_id);
	LIST_INSERT_HEAD(&index->nodes, r, all);
	return r;
}

static void node_records_free(struct records_by_node *index, struct node_records *r)
{
	name_index_remove(&index->by_id, &r->link);
	LIST_REMOVE(r, all);
	free(r->keys);
	free(r);
}

static void add_to_node(struct records_by_node *index, const struct volume_key *key, const char *node_id)
{
	struct node_records *r = find(index, node_id);

	if (!r)
		r = node_records_new(index, node_id);
	r->keys = x_realloc(r->keys, r->n + 1, sizeof(*r->keys));
	r->keys[r->n++] = *key;
}

static void remove_from_node(struct records_by_node *index, const struct volume_key *key, const char *node_id)
{
	struct node_records *r = find(index, node_id);

	for (size_t i = 0; r && i < r->n; i++) {
		if (!str_eq(r->keys[i].hex, key->hex))
			continue;
		r->keys[i] = r->keys[--r->n];
		break;
	}
	if (r && r->n == 0)
		node_records_free(index, r);
	else if (r)
		r->keys = x_realloc(r->keys, r->n, sizeof(*r->keys));
}

struct records_by_node *records_by_node_new(void)
{
	struct records_by_node *index = x_calloc(1, sizeof(*index));

	name_index_init(&index->by_id);
	LIST_INIT(&index->nodes);
	return index;
}

void records_by_node_free(struct records_by_node *index)
{
	if (!index)
		return;
	while (!LIST_EMPTY(&index->nodes))
		node_records_free(index, LIST_FIRST(&index->nodes));
	name_index_done(&index->by_id);
	free(index);
}

void records_by_node_note(
	struct records_by_node *index, const struct volume_key *key, char *const *before, char *const *after)
{
	if (strv_eq(before, after))
		return;
	for (size_t i = 0; i < strv_len(before); i++)
		remove_from_node(index, key, before[i]);
	for (size_t i = 0; i < strv_len(after); i++)
		add_to_node(index, key, after[i]);
}

size_t records_by_node_get(
	const struct records_by_node *index, const char *node_id, const struct volume_key **ret)
{
	const struct node_records *r = find(index, node_id);

	*ret = r ? r->keys : NULL;
	return r ? r->n : 0;
}

void records_by_node_each(
	const struct records_by_node *index, void (*fn)(void *user, const char *node_id), void *user)
{
	const struct node_records *r;

	LIST_FOREACH(r, &index->nodes, all)
	{
		fn(user, r->node_id);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of which the node is known. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/charges_private.h"

void sched_load_add(struct sched_load *l, const struct sched_node *node, const struct sched_item *item)
{
	uint64_t raw_bytes = sched_node_most_bytes(node, item->size_bytes, item->sector);

	l->n++;
	l->size_bytes += item->size_bytes;
	l->raw_bytes += raw_bytes;
	if (raw_bytes > l->max_raw_bytes)
		l->max_raw_bytes = raw_bytes;
}

/* The largest may have gone: it stays a bound. */
void sched_load_take(struct sched_load *l, const struct sched_node *node, const struct sched_item *item)
{
	l->n--;
	l->size_bytes -= item->size_bytes;
	l->raw_bytes -= sched_node_most_bytes(node, item->size_bytes, item->sector);
	if (l->n == 0)
		l->max_raw_bytes = 0;
}

struct sched_record *sched_record_find(const struct sched_charges *c, const char *name)
{
	struct name_link *l = name_index_first(&c->records_by_name, name);

	return l ? OWNER_OF(l, struct sched_record, by_name) : NULL;
}

static void link_record(struct sched_charges *c, struct sched_record *r)
{
	const struct sched_node *node = sched_nodes_get(c->nodes, span_of(r->node_id));
	struct sched_record **first = node ? &c->on_nodes[node->index].records : &c->homeless;

	r->node = node ? node->index : SCHED_NO_NODE;
	r->next = *first;
	r->place = first;
	if (r->next)
		r->next->place = &r->next;
	*first = r;
	if (node)
		sched_load_add(&c->on_nodes[node->index].decided, node, &r->item);
}

static void unlink_record(struct sched_charges *c, struct sched_record *r)
{
	*r->place = r->next;
	if (r->next)
		r->next->place = r->place;
	if (r->node != SCHED_NO_NODE)
		sched_load_take(&c->on_nodes[r->node].decided, sched_nodes_at(c->nodes, r->node), &r->item);
}

struct sched_record *sched_record_put(
	struct sched_charges *c, const char *name, const char *node_id, const struct sched_item *item)
{
	struct sched_record *r = x_calloc(1, sizeof(*r));

	r->name = x_strdup(name);
	r->node_id = x_strdup(node_id);
	r->item = *item;
	name_index_add(&c->records_by_name, &r->by_name, r->name);
	link_record(c, r);
	return r;
}

void sched_record_move(
	struct sched_charges *c, struct sched_record *r, const char *node_id, const struct sched_item *item)
{
	char *id = x_strdup(node_id);

	unlink_record(c, r);
	free(r->node_id);
	r->node_id = id;
	r->item = *item;
	link_record(c, r);
}

void sched_record_free(struct sched_charges *c, struct sched_record *r)
{
	if (r->need)
		r->need->record = NULL;
	unlink_record(c, r);
	name_index_remove(&c->records_by_name, &r->by_name);
	free(r->name);
	free(r->node_id);
	free(r);
}

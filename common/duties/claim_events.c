/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/claim_events.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "nodes/class_capacity.h"
#include "pacing/claim_waits.h"
#include "pmem/capacity.h"

/* The live node in service where the largest volume of a class can be made. */
struct best {
	const struct kube_class *class;
	const char *node_id; /* NULL: none */
	uint64_t max_volume_bytes;
};

struct claim_events {
	struct claim_events_config config;
	struct claim_waits waits;
	struct best *best; /* of each class that claims have, found once in a tick */
	size_t n_best;
	uint64_t now_ns;
};

static void find_best(const struct claim_events *e, struct best *b)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(e->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++) {
		struct capacity capacity;

		if (!nodes[i]->live ||
			cluster_nodes_out_of_service(e->config.cluster, nodes[i]->report.node_id))
			continue;
		capacity = class_capacity_on(nodes[i], b->class);
		if (b->node_id && capacity.max_volume_bytes <= b->max_volume_bytes)
			continue;
		b->node_id = nodes[i]->report.node_id;
		b->max_volume_bytes = capacity.max_volume_bytes;
	}
}

static const struct best *best_of(struct claim_events *e, const struct kube_class *class)
{
	for (size_t i = 0; i < e->n_best; i++) {
		if (e->best[i].class == class)
			return &e->best[i];
	}
	e->best = x_realloc(e->best, e->n_best + 1, sizeof(*e->best));
	e->best[e->n_best] = (struct best){.class = class};
	find_best(e, &e->best[e->n_best]);
	return &e->best[e->n_best++];
}

static char *explain(const struct best *b, uint64_t needed_bytes)
{
	char largest[24];
	char needed[24];

	if (!b->node_id)
		return x_strdup("there is no node with persistent memory");
	format_bytes(needed_bytes, needed);
	if (b->max_volume_bytes == 0)
		return x_asprintf("no node has room for a volume of this class; %s needed", needed);
	return x_asprintf("the largest volume that can be made is %s, on %s; %s needed",
		format_bytes(b->max_volume_bytes, largest), b->node_id, needed);
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	const struct kube_class *class;
	const struct best *best;
	CLEANUP(free_charp) char *message = NULL;
	struct claim_events *e = user;
	uint64_t needed_bytes;

	if (!str_empty(claim->volume_name) || claim->meta.deleting || str_empty(claim->storage_class))
		return;
	class = informer_get(e->config.classes, claim->storage_class);
	if (!class_is_ours(class, e->config.driver_name))
		return;
	best = best_of(e, class);
	needed_bytes = class_least_bytes(class, claim->request_bytes, claim->is_block);
	if (best->node_id && best->max_volume_bytes > 0 && needed_bytes <= best->max_volume_bytes)
		return;
	message = explain(best, needed_bytes);
	if (claim_waits_see(&e->waits, claim->meta.uid, message, e->now_ns))
		e->config.tell(e->config.user, &claim->meta, message, e->now_ns);
}

void claim_events_tick(struct claim_events *e, uint64_t now_ns)
{
	if (!informer_is_synced(e->config.claims) || !informer_is_synced(e->config.classes))
		return;
	e->now_ns = now_ns;
	informer_each(e->config.claims, visit_claim, e);
	claim_waits_end(&e->waits);
	free(TAKE_PTR(e->best));
	e->n_best = 0;
}

struct claim_events *claim_events_new(const struct claim_events_config *config)
{
	struct claim_events *e = x_calloc(1, sizeof(*e));

	e->config = *config;
	return e;
}

void claim_events_free(struct claim_events *e)
{
	if (!e)
		return;
	claim_waits_done(&e->waits);
	free(e);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/inventory_waits.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/name_index.h"

/* A node that has held up a call in the period that runs for it. */
struct waited_node {
	struct name_link link; /* by node ID */
	STAILQ_ENTRY(waited_node) all;
	char *node_id;
	uint64_t since_ns;
	bool is_over; /* calls go on without it, which the log says */
};

struct inventory_waits {
	struct name_index index;
	STAILQ_HEAD(, waited_node) nodes; /* in the order of since_ns */
};

struct inventory_waits *inventory_waits_new(void)
{
	struct inventory_waits *w = x_calloc(1, sizeof(*w));

	name_index_init(&w->index);
	STAILQ_INIT(&w->nodes);
	return w;
}

static void drop_first(struct inventory_waits *w)
{
	struct waited_node *first = STAILQ_FIRST(&w->nodes);

	STAILQ_REMOVE_HEAD(&w->nodes, all);
	name_index_remove(&w->index, &first->link);
	free(first->node_id);
	free(first);
}

void inventory_waits_free(struct inventory_waits *w)
{
	if (!w)
		return;
	while (!STAILQ_EMPTY(&w->nodes))
		drop_first(w);
	name_index_done(&w->index);
	free(w);
}

static struct waited_node *add(struct inventory_waits *w, const char *node_id, uint64_t now_ns)
{
	struct waited_node *node = x_calloc(1, sizeof(*node));

	node->node_id = x_strdup(node_id);
	node->since_ns = now_ns;
	STAILQ_INSERT_TAIL(&w->nodes, node, all);
	name_index_add(&w->index, &node->link, node->node_id);
	return node;
}

bool inventory_waits_for(struct inventory_waits *w, const char *node_id, uint64_t now_ns)
{
	struct waited_node *first;
	struct name_link *link;

	while ((first = STAILQ_FIRST(&w->nodes)) != NULL && now_ns - first->since_ns >= INVENTORY_PERIOD_NS)
		drop_first(w);
	link = name_index_first(&w->index, node_id);
	struct waited_node *node = link ? OWNER_OF(link, struct waited_node, link) : add(w, node_id, now_ns);
	if (now_ns - node->since_ns < INVENTORY_WAIT_NS)
		return true;
	if (!node->is_over)
		log_warn("a node does not report its volumes: new volumes are made on other nodes",
			F_STR("node", node_id));
	node->is_over = true;
	return false;
}

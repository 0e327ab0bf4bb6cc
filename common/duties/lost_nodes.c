/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/lost_nodes.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"

#define TIMEOUT_MS 10000
/* In the time after which a node is lost it is looked for so often, but neither more nor less often than
 * this. */
#define LOOKS       12
#define LOOK_MIN_NS NS_PER_S
#define LOOK_MAX_NS (300 * NS_PER_S)

/* A node that is gone as far as the node table and the watch of Node objects show. */
struct gone_node {
	struct name_link link; /* by node ID */
	LIST_ENTRY(gone_node) all;
	struct lost_nodes *owner;
	char *node_id;
	enum node_fate fate;
	bool is_absent; /* since @absent_ns, according to the API server */
	uint64_t absent_ns;
	uint64_t asked_ns; /* last */
	uint64_t expected_ns;
	struct kube_request *request;
};

struct lost_nodes {
	struct lost_nodes_config config;
	struct name_index index;
	LIST_HEAD(, gone_node) gone;
	uint64_t look_ns;
};

static uint64_t now_ns(const struct lost_nodes *l)
{
	return controller_now_ns(l->config.controller);
}

static struct gone_node *find(const struct lost_nodes *l, const char *node_id)
{
	struct name_link *link = name_index_first(&l->index, node_id);

	return link ? OWNER_OF(link, struct gone_node, link) : NULL;
}

static void gone_node_free(struct gone_node *g)
{
	kube_request_cancel(g->request);
	name_index_remove(&g->owner->index, &g->link);
	LIST_REMOVE(g, all);
	free(g->node_id);
	free(g);
}

static void set_fate(struct gone_node *g, enum node_fate fate)
{
	const struct lost_nodes *l = g->owner;

	if (g->fate == fate)
		return;
	if (fate == FATE_LOST)
		log_warn("a node is lost: it has not registered for long, and its Node object is gone",
			F_STR("node", g->node_id));
	g->fate = fate;
	l->config.changed(l->config.user, g->node_id);
}

/* @g->asked_ns is before the API server has looked, and now is after that. */
static void take_absence(struct gone_node *g)
{
	const struct lost_nodes *l = g->owner;

	if (!g->is_absent) {
		g->is_absent = true;
		g->absent_ns = now_ns(l);
		set_fate(g, FATE_UNKNOWN);
	} else if (g->asked_ns >= g->absent_ns + l->config.lost_after_ns) {
		set_fate(g, FATE_LOST);
	}
}

static void on_reply(void *user, unsigned status, struct span body, const struct error *error)
{
	struct gone_node *g = user;

	(void)status;
	(void)body;
	g->request = NULL;
	if (error && error->code == ERR_NOT_FOUND) {
		take_absence(g);
	} else if (!error) {
		g->is_absent = false;
		set_fate(g, FATE_PRESENT);
	}
}

static void look(struct gone_node *g)
{
	const struct kube_object_call call = {.verb = KUBE_GET,
		.kind = &kube_kind_nodes,
		.name = g->node_id,
		.metadata_only = true,
		.timeout_ms = TIMEOUT_MS};

	g->asked_ns = now_ns(g->owner);
	g->request = kube_object_call(g->owner->config.client, &call, on_reply, g);
}

void lost_nodes_expect(struct lost_nodes *l, const char *node_id)
{
	struct gone_node *g = find(l, node_id);

	/* another name cannot be that of a Node object */
	if (!g && (!kube_is_name(node_id) || !controller_is_gone(l->config.controller, node_id)))
		return;
	if (!g) {
		g = x_calloc(1, sizeof(*g));
		g->owner = l;
		g->node_id = x_strdup(node_id);
		LIST_INSERT_HEAD(&l->gone, g, all);
		name_index_add(&l->index, &g->link, g->node_id);
		look(g);
	}
	g->expected_ns = now_ns(l);
}

enum node_fate lost_nodes_judge(void *self, const char *node_id)
{
	const struct gone_node *g = find(self, node_id);

	return g ? g->fate : FATE_UNKNOWN;
}

void lost_nodes_tick(struct lost_nodes *l)
{
	for (struct gone_node *g = LIST_FIRST(&l->gone), *next; g; g = next) {
		next = LIST_NEXT(g, all);
		if (!controller_is_gone(l->config.controller, g->node_id) ||
			now_ns(l) - g->expected_ns > LOST_NODES_EXPECT_NS)
			gone_node_free(g);
		else if (!g->request && now_ns(l) - g->asked_ns >= l->look_ns)
			look(g);
	}
}

/* With a registration the time begins again, even if its lease ends before the next tick. */
static void node_changed(void *user, const struct node *node)
{
	struct gone_node *g = find(user, node->report.node_id);

	if (g && node->live)
		gone_node_free(g);
}

struct lost_nodes *lost_nodes_new(const struct lost_nodes_config *config)
{
	struct lost_nodes *l = x_calloc(1, sizeof(*l));

	l->config = *config;
	l->look_ns = config->lost_after_ns / LOOKS;
	if (l->look_ns < LOOK_MIN_NS)
		l->look_ns = LOOK_MIN_NS;
	if (l->look_ns > LOOK_MAX_NS)
		l->look_ns = LOOK_MAX_NS;
	name_index_init(&l->index);
	LIST_INIT(&l->gone);
	node_table_watch(config->controller->config.nodes, node_changed, l);
	return l;
}

void lost_nodes_free(struct lost_nodes *l)
{
	if (!l)
		return;
	node_table_unwatch(l->config.controller->config.nodes, node_changed, l);
	for (struct gone_node *g = LIST_FIRST(&l->gone), *next; g; g = next) {
		next = LIST_NEXT(g, all);
		gone_node_free(g);
	}
	name_index_done(&l->index);
	free(l);
}

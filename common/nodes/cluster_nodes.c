/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/cluster_nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/sorted.h"
#include "base/str.h"
#include "kube/informer.h"
#include "kube/objects/objects.h"

struct cluster_node {
	char *id;
	unsigned n; /* Nodes that have it; more than one is a mistake in the cluster */
	unsigned n_out_of_service;
};

struct cluster_nodes {
	struct informer *informer;
	struct kube_kind kind;
	char *label;
	struct cluster_node *list; /* sorted by ID */
	size_t n;
	cluster_node_changed_fn changed;
	void *user;
};

static int order(const void *element, const void *key)
{
	return strcmp(((const struct cluster_node *)element)->id, key);
}

/* Return: where @id is, or would be. */
static size_t find(const struct cluster_nodes *c, const char *id, bool *ret_there)
{
	return sorted_find(c->list, c->n, sizeof(*c->list), id, order, ret_there);
}

static void add(struct cluster_nodes *c, const char *id, bool out_of_service)
{
	bool there;
	size_t at = find(c, id, &there);

	if (!there) {
		c->list = x_realloc(c->list, c->n + 1, sizeof(*c->list));
		memmove(c->list + at + 1, c->list + at, (c->n++ - at) * sizeof(*c->list));
		c->list[at] = (struct cluster_node){.id = x_strdup(id)};
	}
	c->list[at].n++;
	c->list[at].n_out_of_service += out_of_service;
}

static void drop(struct cluster_nodes *c, const char *id, bool out_of_service)
{
	bool there;
	size_t at = find(c, id, &there);

	if (!there)
		return;
	c->list[at].n_out_of_service -= out_of_service;
	if (--c->list[at].n > 0)
		return;
	free(c->list[at].id);
	memmove(c->list + at, c->list + at + 1, (--c->n - at) * sizeof(*c->list));
}

static const char *id_of(const struct cluster_nodes *c, const struct kube_node *node)
{
	return node ? kube_meta_label(&node->meta, c->label) : NULL;
}

static bool is_tainted(const struct kube_node *node)
{
	return node && node->out_of_service;
}

static void node_changed(void *user, const char *key, const void *old, const void *new)
{
	struct cluster_nodes *c = user;
	const char *old_id = id_of(c, old);
	const char *new_id = id_of(c, new);

	(void)key;
	if (str_eq(old_id, new_id) && is_tainted(old) == is_tainted(new))
		return;
	if (!str_empty(new_id))
		add(c, new_id, is_tainted(new));
	if (!str_empty(old_id))
		drop(c, old_id, is_tainted(old));
	if (!str_empty(new_id))
		c->changed(c->user, new_id);
	if (!str_empty(old_id) && !str_eq(old_id, new_id))
		c->changed(c->user, old_id);
}

struct cluster_nodes *cluster_nodes_new(
	struct kube_client *client, const char *driver_name, cluster_node_changed_fn fn, void *user)
{
	static const struct informer_events events = {.changed = node_changed};
	struct cluster_nodes *c = x_calloc(1, sizeof(*c));

	c->changed = fn;
	c->user = user;
	c->label = name_topology_key(driver_name);
	c->kind = kube_kind_nodes;
	c->kind.label_selector = c->label;
	c->informer = informer_new(client, &c->kind, &events, c);
	return c;
}

void cluster_nodes_free(struct cluster_nodes *c)
{
	if (!c)
		return;
	informer_free(c->informer);
	for (size_t i = 0; i < c->n; i++)
		free(c->list[i].id);
	free(c->list);
	free(c->label);
	free(c);
}

bool cluster_nodes_ready(const struct cluster_nodes *c)
{
	return informer_is_synced(c->informer);
}

const char *cluster_nodes_next(const struct cluster_nodes *c, size_t *at)
{
	return *at < c->n ? c->list[(*at)++].id : NULL;
}

bool cluster_nodes_have(const struct cluster_nodes *c, const char *node_id)
{
	bool there;

	find(c, node_id, &there);
	return there || !cluster_nodes_ready(c);
}

bool cluster_nodes_is(const struct cluster_nodes *c, const char *node_name, const char *node_id)
{
	const char *id = id_of(c, informer_get(c->informer, node_name));

	return !str_empty(id) && str_eq(id, node_id);
}

bool cluster_nodes_out_of_service(const struct cluster_nodes *c, const char *node_id)
{
	bool there;
	size_t at = find(c, node_id, &there);

	return there && c->list[at].n_out_of_service > 0;
}

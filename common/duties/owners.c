/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/owners.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "kube/objects/objects.h"

struct owner {
	char *id;
	unsigned n_nodes; /* that bear it; more than one is somebody's mistake */
};

struct owners {
	struct informer *informer; /* NULL: the nodes were given */
	struct kube_kind kind;
	char *label;
	struct owner *list; /* sorted by ID */
	size_t n;
	const char **ids; /* what list() gave last */
};

/* Return: where @id is, or would be. */
static size_t find(const struct owners *o, const char *id, bool *ret_there)
{
	size_t from = 0;
	size_t to = o->n;

	*ret_there = false;
	while (from < to) {
		size_t at = from + (to - from) / 2;
		int order = strcmp(o->list[at].id, id);

		if (order == 0) {
			*ret_there = true;
			return at;
		}
		if (order < 0)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static void add(struct owners *o, const char *id)
{
	bool there;
	size_t at = find(o, id, &there);

	if (there) {
		o->list[at].n_nodes++;
		return;
	}
	o->list = x_realloc(o->list, o->n + 1, sizeof(*o->list));
	memmove(o->list + at + 1, o->list + at, (o->n - at) * sizeof(*o->list));
	o->list[at] = (struct owner){.id = x_strdup(id), .n_nodes = 1};
	o->n++;
}

static void drop(struct owners *o, const char *id)
{
	bool there;
	size_t at = find(o, id, &there);

	if (!there || --o->list[at].n_nodes > 0)
		return;
	free(o->list[at].id);
	o->n--;
	memmove(o->list + at, o->list + at + 1, (o->n - at) * sizeof(*o->list));
}

static const char *id_of(const struct owners *o, const struct kube_node *node)
{
	return node ? kube_meta_label(&node->meta, o->label) : NULL;
}

static void node_changed(void *user, const char *key, const void *old, const void *new)
{
	struct owners *o = user;
	const char *old_id = id_of(o, old);
	const char *new_id = id_of(o, new);

	(void)key;
	if (str_eq(old_id, new_id))
		return;
	if (!str_empty(new_id))
		add(o, new_id);
	if (!str_empty(old_id))
		drop(o, old_id);
}

static bool is_ready(void *self)
{
	const struct owners *o = self;

	return o->informer ? informer_is_synced(o->informer) : o->n > 0;
}

static size_t list(void *self, const char *const **ret)
{
	struct owners *o = self;

	o->ids = x_realloc(o->ids, o->n + 1, sizeof(*o->ids));
	for (size_t i = 0; i < o->n; i++)
		o->ids[i] = o->list[i].id;
	*ret = o->ids;
	return o->n;
}

static bool exists(void *self, const char *node_id)
{
	const struct owners *o = self;
	bool there;

	if (!o->informer || !informer_is_synced(o->informer))
		return true;
	find(o, node_id, &there);
	return there;
}

struct owners *owners_watch(struct kube_client *client, const char *driver_name)
{
	static const struct informer_events events = {.changed = node_changed};
	struct owners *o = x_calloc(1, sizeof(*o));

	o->label = name_topology_key(driver_name);
	o->kind = kube_kind_nodes;
	o->kind.label_selector = o->label;
	o->informer = informer_new(client, &o->kind, &events, o);
	return o;
}

struct owners *owners_expect(char *const *ids)
{
	struct owners *o = x_calloc(1, sizeof(*o));

	for (size_t i = 0; i < strv_len(ids); i++)
		add(o, ids[i]);
	return o;
}

void owners_free(struct owners *o)
{
	if (!o)
		return;
	informer_free(o->informer);
	for (size_t i = 0; i < o->n; i++)
		free(o->list[i].id);
	free(o->list);
	free(o->ids);
	free(o->label);
	free(o);
}

struct possible_owners owners_possible(struct owners *o)
{
	return (struct possible_owners){.ready = is_ready, .list = list, .exists = exists, .self = o};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/capacity_objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/capacity_private.h"

/* How often slots are looked at whose wish depends on the time. */
#define LOOK_NS (5 * NS_PER_S)

/* Longest value of a label, less the suffix (apimachinery, pkg/util/validation). */
#define MANAGER_PREFIX_MAX 52

uint64_t capacity_now(const struct capacity_objects *c)
{
	return c->config.now_ns ? c->config.now_ns(c->config.user) : clock_ns();
}

static int order(const struct capacity_slot *slot, const char *class_name, const char *node_id)
{
	int by_class = strcmp(slot->class_name, class_name);

	return by_class != 0 ? by_class : strcmp(slot->node_id, node_id);
}

static size_t find(
	const struct capacity_objects *c, const char *class_name, const char *node_id, bool *ret_there)
{
	size_t from = 0;
	size_t to = c->n_slots;

	*ret_there = false;
	while (from < to) {
		size_t at = from + (to - from) / 2;
		int o = order(c->slots[at], class_name, node_id);

		if (o == 0) {
			*ret_there = true;
			return at;
		}
		if (o < 0)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static struct capacity_slot *slot_get(struct capacity_objects *c, const char *class_name, const char *node_id)
{
	bool there;
	size_t at = find(c, class_name, node_id, &there);

	if (there)
		return c->slots[at];
	c->slots = x_realloc(c->slots, c->n_slots + 1, sizeof(struct capacity_slot *));
	memmove(c->slots + at + 1, c->slots + at, (c->n_slots - at) * sizeof(struct capacity_slot *));
	c->slots[at] = x_calloc(1, sizeof(struct capacity_slot));
	*c->slots[at] = (struct capacity_slot){
		.owner = c, .class_name = x_strdup(class_name), .node_id = x_strdup(node_id)};
	backoff_init(&c->slots[at]->backoff, /* first_ms= */ 0);
	c->n_slots++;
	return c->slots[at];
}

static void slot_remove(struct capacity_slot *slot)
{
	struct capacity_objects *c = slot->owner;
	bool there;
	size_t at = find(c, slot->class_name, slot->node_id, &there);

	c->n_slots--;
	memmove(c->slots + at, c->slots + at + 1, (c->n_slots - at) * sizeof(struct capacity_slot *));
	capacity_slot_free(slot);
}

static bool is_gone(const struct capacity_objects *c, const struct node *node, const char *node_id)
{
	uint64_t seen_ns = node ? node->registered_ns : c->start_ns;

	if (c->config.owners.ready(c->config.owners.self) &&
		!c->config.owners.exists(c->config.owners.self, node_id))
		return true;
	return capacity_now(c) >= seen_ns + CAPACITY_GONE_NS;
}

/* The scheduler looks at capacity for classes that bind late, and for no others. Source: kube-scheduler,
 * plugins/volumebinding/binder.go, checkVolumeProvisions(). */
static bool is_published(const struct capacity_objects *c, const struct kube_class *class)
{
	return class_is_ours(class, c->config.driver_name) && class->waits_for_consumer;
}

static void find_wish(struct capacity_slot *slot)
{
	const struct capacity_objects *c = slot->owner;
	const struct kube_class *class = informer_get(c->config.classes, slot->class_name);
	const struct node *node = node_table_get(c->config.nodes, slot->node_id);

	slot->wanted = (struct class_room){0};
	slot->is_wanted = false;
	if (!is_published(c, class))
		return;
	if (node && node->live) {
		slot->is_wanted = true;
		slot->wanted = class_room_on(node, class);
		return;
	}
	if (!slot->object || is_gone(c, node, slot->node_id))
		return;
	slot->is_wanted = true;
	if (!node)
		slot->wanted = slot->published;
}

bool capacity_differs(const struct capacity_slot *slot)
{
	if (slot->is_wanted != (slot->object != NULL))
		return true;
	return slot->is_wanted && (slot->wanted.available_bytes != slot->published.available_bytes ||
					  slot->wanted.maximum_bytes != slot->published.maximum_bytes);
}

void capacity_settle(struct capacity_slot *slot)
{
	find_wish(slot);
	if (slot->request || slot->queued)
		return;
	if (capacity_differs(slot))
		capacity_enqueue(slot);
	else if (!slot->is_wanted)
		slot_remove(slot);
}

static void settle_all(struct capacity_objects *c)
{
	/* from the end: settling may remove the slot */
	for (size_t i = c->n_slots; i > 0; i--)
		capacity_settle(c->slots[i - 1]);
	c->looked_ns = capacity_now(c);
}

void capacity_adopt(struct capacity_slot *slot, const struct kube_capacity *object)
{
	if (slot->object && !str_eq(slot->object, object->meta.name)) {
		capacity_stray_add(slot->owner, object->meta.name);
		return;
	}
	if (!slot->object)
		slot->object = x_strdup(object->meta.name);
	free(slot->version);
	slot->version = x_strdup(object->meta.resource_version);
	/* What is not there is nothing that we would have written. */
	slot->published = (struct class_room){
		.available_bytes = object->has_capacity ? object->capacity_bytes : UINT64_MAX,
		.maximum_bytes = object->has_maximum ? object->maximum_bytes : UINT64_MAX,
	};
}

static bool is_foreign(const struct capacity_objects *c, const struct kube_capacity *object)
{
	const char *manager = kube_meta_label(&object->meta, LABEL_MANAGER);

	return !str_eq(manager, c->manager) && manager && str_starts(manager, "external-provisioner");
}

static void object_seen(struct capacity_objects *c, const struct kube_capacity *object)
{
	const char *node_id = kube_pairs_get(&object->topology, c->topology_key);
	struct capacity_slot *slot;

	if (object->meta.deleting)
		return;
	if (c->config.remove_foreign && is_foreign(c, object)) {
		capacity_stray_add(c, object->meta.name);
		return;
	}
	if (!str_eq(kube_meta_label(&object->meta, LABEL_MANAGER), c->manager))
		return;
	if (!node_id || object->has_expressions || str_empty(object->storage_class)) {
		capacity_stray_add(c, object->meta.name);
		return;
	}
	slot = slot_get(c, object->storage_class, node_id);
	if (str_eq(slot->object, object->meta.name)) {
		if (slot->wrote_until_ns > capacity_now(c) &&
			!str_eq(slot->version, object->meta.resource_version))
			return;
		slot->wrote_until_ns = 0;
	}
	capacity_adopt(slot, object);
	capacity_settle(slot);
}

static void object_gone(struct capacity_objects *c, const struct kube_capacity *object)
{
	const char *node_id = kube_pairs_get(&object->topology, c->topology_key);
	bool there;
	size_t at;

	if (!node_id || str_empty(object->storage_class))
		return;
	at = find(c, object->storage_class, node_id, &there);
	if (!there || !str_eq(c->slots[at]->object, object->meta.name))
		return;
	free(TAKE_PTR(c->slots[at]->object));
	capacity_settle(c->slots[at]);
}

static void object_changed(void *user, const char *key, const void *old, const void *new)
{
	struct capacity_objects *c = user;

	(void)key;
	if (!c->active)
		return;
	if (new)
		object_seen(c, new);
	else
		object_gone(c, old);
	capacity_pump(c);
}

static void visit_object(void *user, const void *object)
{
	object_seen(user, object);
}

struct visit {
	struct capacity_objects *c;
	const struct node *node;
};

static void visit_class(void *user, const void *object)
{
	const struct kube_class *class = object;
	struct visit *v = user;

	if (is_published(v->c, class))
		capacity_settle(slot_get(v->c, class->meta.name, v->node->report.node_id));
}

static void node_changed(void *user, const struct node *node)
{
	struct visit v = {.c = user, .node = node};

	if (!v.c->active)
		return;
	informer_each(v.c->config.classes, visit_class, &v);
	capacity_pump(v.c);
}

static void drop_all(struct capacity_objects *c)
{
	c->queue_first = NULL;
	c->queue_end = &c->queue_first;
	for (size_t i = 0; i < c->n_slots; i++)
		capacity_slot_free(c->slots[i]);
	free(TAKE_PTR(c->slots));
	c->n_slots = 0;
	for (size_t i = 0; i < c->n_strays; i++)
		capacity_stray_free(c->strays[i]);
	free(TAKE_PTR(c->strays));
	c->n_strays = 0;
	c->running = 0;
}

static void look_whether_active(struct capacity_objects *c)
{
	bool active = c->leading && informer_is_synced(c->config.classes) && informer_is_synced(c->objects);
	const struct node *const *nodes;
	size_t n;

	if (active == c->active)
		return;
	c->active = active;
	if (!active) {
		drop_all(c);
		return;
	}
	informer_each(c->objects, visit_object, c);
	n = node_table_nodes(c->config.nodes, &nodes);
	for (size_t i = 0; i < n; i++)
		node_changed(c, nodes[i]);
	settle_all(c);
	capacity_pump(c);
}

static void synced(void *user)
{
	look_whether_active(user);
}

void capacity_objects_lead(struct capacity_objects *c, bool leading)
{
	c->leading = leading;
	look_whether_active(c);
}

void capacity_objects_class_changed(struct capacity_objects *c, const char *name)
{
	const struct node *const *nodes;
	size_t n;

	if (!c->active)
		return;
	n = node_table_nodes(c->config.nodes, &nodes);
	if (is_published(c, informer_get(c->config.classes, name))) {
		for (size_t i = 0; i < n; i++)
			slot_get(c, name, nodes[i]->report.node_id);
	}
	settle_all(c);
	capacity_pump(c);
}

void capacity_look_again(struct capacity_slot *slot)
{
	CLEANUP(free_charp) char *key = NULL;
	const struct kube_capacity *object;

	if (!slot->object)
		return;
	slot->wrote_until_ns = 0;
	key = x_asprintf("%s/%s", slot->owner->config.namespace, slot->object);
	object = informer_get(slot->owner->objects, key);
	if (object)
		capacity_adopt(slot, object);
	else
		free(TAKE_PTR(slot->object));
}

void capacity_objects_tick(struct capacity_objects *c)
{
	uint64_t now = capacity_now(c);

	look_whether_active(c);
	if (!c->active)
		return;
	if (now - c->looked_ns >= LOOK_NS) {
		for (size_t i = 0; i < c->n_slots; i++) {
			if (c->slots[i]->wrote_until_ns > 0 && c->slots[i]->wrote_until_ns <= now)
				capacity_look_again(c->slots[i]);
		}
		settle_all(c);
	}
	capacity_pump(c);
}

size_t capacity_objects_pending(const struct capacity_objects *c)
{
	size_t n = c->n_strays;

	for (size_t i = 0; i < c->n_slots; i++)
		n += c->slots[i]->queued || c->slots[i]->request;
	return n;
}

struct capacity_objects *capacity_objects_new(const struct capacity_objects_config *config)
{
	static const struct informer_events events = {.changed = object_changed, .synced = synced};
	struct capacity_objects *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	c->start_ns = capacity_now(c);
	c->queue_end = &c->queue_first;
	c->manager = x_asprintf("%.*s-controller", MANAGER_PREFIX_MAX, config->driver_name);
	c->topology_key = x_asprintf("%s/node", config->driver_name);
	c->selector = x_asprintf(LABEL_DRIVER "=%s", config->driver_name);
	c->path = x_asprintf("/apis/storage.k8s.io/v1/namespaces/%s/csistoragecapacities", config->namespace);
	c->what_prefix = x_asprintf("csistoragecapacities %s/", config->namespace);
	c->kind = kube_kind_capacities;
	c->kind.path = c->path;
	c->kind.label_selector = c->selector;
	node_table_watch(config->nodes, node_changed, c);
	c->objects = informer_new(config->client, &c->kind, &events, c);
	return c;
}

void capacity_objects_free(struct capacity_objects *c)
{
	if (!c)
		return;
	node_table_unwatch(c->config.nodes, node_changed, c);
	informer_free(c->objects);
	drop_all(c);
	free(c->manager);
	free(c->topology_key);
	free(c->selector);
	free(c->path);
	free(c->what_prefix);
	free(c);
}

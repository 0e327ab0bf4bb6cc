/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/capacity_objects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/sorted.h"
#include "base/str.h"
#include "kube/client.h"
#include "nodes/class_capacity.h"
#include "pacing/backoff.h"

#define LABEL_DRIVER  "csi.storage.k8s.io/drivername"
#define LABEL_MANAGER "csi.storage.k8s.io/managed-by"

/* Requests at once: enough to use up the rate that the client allows. */
#define CAPACITY_MAX_RUNNING 16

/* What there is and what should be for one node and class. */
struct capacity_slot {
	struct capacity_objects *owner;
	char *class_name;
	char *node_id;
	char *object; /* its name; NULL: it does not exist */
	char *version;
	struct capacity published;
	bool is_wanted;
	struct capacity wanted;
	bool queued;
	struct capacity_slot *next; /* in the queue */
	struct kube_request *request;
	struct backoff backoff;
	/* What we wrote: older states that the watch still brings are not looked at. */
	uint64_t wrote_until_ns;
};

/* An object that is nobody's: a second one, one that cannot be read, one of another publisher. */
struct capacity_stray {
	struct capacity_objects *owner;
	char *object;
	struct kube_request *request;
	struct backoff backoff;
};

struct capacity_objects {
	struct capacity_objects_config config;
	char *manager; /* value of LABEL_MANAGER */
	char *topology_key;
	char *selector;
	char *path;
	char *what_prefix; /* "csistoragecapacities <namespace>/" */
	struct kube_kind kind;
	struct informer *objects;
	bool leading;
	bool active; /* leading, and all lists are there */
	uint64_t start_ns;
	uint64_t looked_ns;           /* when all slots were looked at last */
	struct capacity_slot **slots; /* sorted by class and node; empty unless active */
	size_t n_slots;
	struct capacity_slot *queue_first;
	struct capacity_slot **queue_end;
	struct capacity_stray **strays;
	size_t n_strays;
	unsigned running;
	bool failing; /* told in the log */
};

static uint64_t capacity_now(const struct capacity_objects *c);
static void capacity_settle(struct capacity_slot *slot);
static void capacity_adopt(struct capacity_slot *slot, const struct kube_capacity *object);
static void capacity_look_again(struct capacity_slot *slot);
static bool capacity_differs(const struct capacity_slot *slot);
static void capacity_pump(struct capacity_objects *c);

#define TIMEOUT_MS 10000
#define BODY_MAX   8192

/* The watch brings what we wrote within that time, or has lost its connection. */
#define OWN_WRITE_NS (10 * NS_PER_S)

/* Also while its request runs, which is given up; not while it is queued. */
static void capacity_slot_free(struct capacity_slot *slot)
{
	kube_request_cancel(slot->request);
	free(slot->class_name);
	free(slot->node_id);
	free(slot->object);
	free(slot->version);
	free(slot);
}

/* Also while its request runs, which is given up. */
static void capacity_stray_free(struct capacity_stray *stray)
{
	kube_request_cancel(stray->request);
	free(stray->object);
	free(stray);
}

/* @slot has to be written; idempotent. */
static void capacity_enqueue(struct capacity_slot *slot)
{
	struct capacity_objects *c = slot->owner;

	if (slot->queued)
		return;
	slot->queued = true;
	slot->next = NULL;
	*c->queue_end = slot;
	c->queue_end = &slot->next;
}

/* @object (its name) is to be deleted; idempotent. */
static void capacity_stray_add(struct capacity_objects *c, const char *object)
{
	struct capacity_stray *stray;

	for (size_t i = 0; i < c->n_strays; i++) {
		if (str_eq(c->strays[i]->object, object))
			return;
	}
	stray = x_calloc(1, sizeof(*stray));
	*stray = (struct capacity_stray){.owner = c, .object = x_strdup(object)};
	backoff_init(&stray->backoff, /* first_ms= */ 0);
	c->strays = x_realloc(c->strays, c->n_strays + 1, sizeof(struct capacity_stray *));
	c->strays[c->n_strays++] = stray;
}

static void add_amounts(struct json_writer *w, const struct capacity *c)
{
	char text[24];

	/* Quantities that are numbers may lose digits on their way; strings do not. */
	snprintf(text, sizeof(text), "%ju", (uintmax_t)c->available_bytes);
	json_key_str(w, "capacity", text);
	snprintf(text, sizeof(text), "%ju", (uintmax_t)c->max_volume_bytes);
	json_key_str(w, "maximumVolumeSize", text);
}

static void write_new(const struct capacity_slot *slot, struct buf *out)
{
	const struct capacity_objects *c = slot->owner;
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "apiVersion", "storage.k8s.io/v1");
	json_key_str(&w, "kind", "CSIStorageCapacity");
	json_key(&w, "metadata");
	json_object(&w);
	json_key_str(&w, "generateName", "csisc-");
	json_key(&w, "labels");
	json_object(&w);
	json_key_str(&w, LABEL_DRIVER, c->config.driver_name);
	json_key_str(&w, LABEL_MANAGER, c->manager);
	json_object_end(&w);
	json_object_end(&w);
	json_key(&w, "nodeTopology");
	json_object(&w);
	json_key(&w, "matchLabels");
	json_object(&w);
	json_key_str(&w, c->topology_key, slot->node_id);
	json_object_end(&w);
	json_object_end(&w);
	json_key_str(&w, "storageClassName", slot->class_name);
	add_amounts(&w, &slot->wanted);
	json_object_end(&w);
}

static void write_patch(const struct capacity_slot *slot, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key(&w, "metadata");
	json_object(&w);
	json_key_str(&w, "resourceVersion", slot->version);
	json_object_end(&w);
	add_amounts(&w, &slot->wanted);
	json_object_end(&w);
}

/* One line for each time that it begins to fail, not for each object. */
static void note_result(struct capacity_objects *c, const struct error *error)
{
	if (!error) {
		if (c->failing)
			log_info("capacity objects can be written again");
		c->failing = false;
		return;
	}
	if (!c->failing)
		log_warn("capacity objects cannot be written, trying again", F_ERR(error));
	c->failing = true;
}

static void adopt_reply(struct capacity_slot *slot, struct span body)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(body);
	struct kube_capacity *object = slot->owner->kind.decode(r, &err);

	/* The watch brings it, too. */
	if (!object)
		return;
	capacity_adopt(slot, object);
	slot->wrote_until_ns = capacity_now(slot->owner) + OWN_WRITE_NS;
	slot->owner->kind.free(object);
}

/* Return: whether @error is one that the watch will make good, or that is what was wanted. */
static bool is_expected(const struct error *error)
{
	return error->code == ERR_NOT_FOUND || error->code == ERR_ABORTED;
}

static void slot_ended(struct capacity_slot *slot, const struct error *error)
{
	struct capacity_objects *c = slot->owner;

	slot->request = NULL;
	c->running--;
	if (!error)
		backoff_reset(&slot->backoff);
	else
		backoff_fail(&slot->backoff, capacity_now(c));
	if (!error || !is_expected(error))
		note_result(c, error);
	if (error && error->code == ERR_NOT_FOUND)
		free(TAKE_PTR(slot->object));
	/* somebody else has written, and what that was the watch tells, or has told already */
	if (error && error->code == ERR_ABORTED)
		capacity_look_again(slot);
	capacity_settle(slot);
	capacity_pump(c);
}

static void written(void *user, unsigned status, struct span body, const struct error *error)
{
	struct capacity_slot *slot = user;

	(void)status;
	if (!error)
		adopt_reply(slot, body);
	slot_ended(slot, error);
}

static void deleted(void *user, unsigned status, struct span body, const struct error *error)
{
	struct capacity_slot *slot = user;

	(void)status;
	(void)body;
	if (!error)
		free(TAKE_PTR(slot->object));
	slot_ended(slot, error);
}

static void start(struct capacity_slot *slot)
{
	struct capacity_objects *c = slot->owner;
	const char *name = slot->object ? slot->object : "";
	CLEANUP(free_charp) char *path = x_asprintf("%s%s%s", c->path, slot->object ? "/" : "", name);
	CLEANUP(free_charp)
	char *what = x_asprintf("%s%s", c->what_prefix, slot->object ? slot->object : "csisc-*");
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct kube_call call = {.what = what, .path = path, .timeout_ms = TIMEOUT_MS};

	if (!slot->object) {
		call.verb = "create";
		call.method = "POST";
		write_new(slot, &body);
	} else if (slot->is_wanted) {
		call.verb = "patch";
		call.method = "PATCH";
		call.content_type = "application/merge-patch+json";
		write_patch(slot, &body);
	} else {
		call.verb = "delete";
		call.method = "DELETE";
	}
	call.body = buf_span(&body);
	c->running++;
	slot->request = kube_client_call(
		c->config.client, &call, slot->object && !slot->is_wanted ? deleted : written, slot);
}

static void stray_remove(struct capacity_stray *stray)
{
	struct capacity_objects *c = stray->owner;
	size_t i = 0;

	while (c->strays[i] != stray)
		i++;
	c->strays[i] = c->strays[--c->n_strays];
	capacity_stray_free(stray);
}

static void stray_deleted(void *user, unsigned status, struct span body, const struct error *error)
{
	struct capacity_stray *stray = user;
	struct capacity_objects *c = stray->owner;

	(void)status;
	(void)body;
	stray->request = NULL;
	c->running--;
	if (!error || error->code == ERR_NOT_FOUND) {
		stray_remove(stray);
	} else {
		note_result(c, error);
		backoff_fail(&stray->backoff, capacity_now(c));
	}
	capacity_pump(c);
}

static void start_stray(struct capacity_stray *stray)
{
	struct capacity_objects *c = stray->owner;
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", c->path, stray->object);
	CLEANUP(free_charp) char *what = x_asprintf("%s%s", c->what_prefix, stray->object);
	const struct kube_call call = {
		.verb = "delete", .what = what, .method = "DELETE", .path = path, .timeout_ms = TIMEOUT_MS};

	c->running++;
	stray->request = kube_client_call(c->config.client, &call, stray_deleted, stray);
}

static struct capacity_slot *dequeue(struct capacity_objects *c)
{
	struct capacity_slot *slot = c->queue_first;

	c->queue_first = slot->next;
	if (!c->queue_first)
		c->queue_end = &c->queue_first;
	slot->queued = false;
	return slot;
}

/* Begin as many requests as may run. */
static void capacity_pump(struct capacity_objects *c)
{
	uint64_t now = capacity_now(c);
	struct capacity_slot *last = NULL; /* put back: it has to wait */

	while (c->queue_first && c->queue_first != last && c->running < CAPACITY_MAX_RUNNING) {
		struct capacity_slot *slot = dequeue(c);

		if (!capacity_differs(slot)) {
			capacity_settle(slot);
		} else if (!backoff_is_over(&slot->backoff, now)) {
			capacity_enqueue(slot);
			last = last ? last : slot;
		} else {
			start(slot);
		}
	}
	for (size_t i = 0; i < c->n_strays && c->running < CAPACITY_MAX_RUNNING; i++) {
		if (!c->strays[i]->request && backoff_is_over(&c->strays[i]->backoff, now))
			start_stray(c->strays[i]);
	}
}

#define LOOK_NS (5 * NS_PER_S)

/* Longest value of a label, less the suffix (apimachinery, pkg/util/validation). */
#define MANAGER_PREFIX_MAX 52

/* Of the table's clock. */
static uint64_t capacity_now(const struct capacity_objects *c)
{
	return c->config.now_ns ? c->config.now_ns(c->config.user) : clock_ns();
}

struct slot_key {
	const char *class_name;
	const char *node_id;
};

static int order_slot(const void *element, const void *sought)
{
	const struct capacity_slot *const *slot = element;
	const struct slot_key *key = sought;
	int by_class = strcmp((*slot)->class_name, key->class_name);

	return by_class != 0 ? by_class : strcmp((*slot)->node_id, key->node_id);
}

static size_t find(
	const struct capacity_objects *c, const char *class_name, const char *node_id, bool *ret_there)
{
	const struct slot_key key = {class_name, node_id};

	return sorted_find(c->slots, c->n_slots, sizeof(*c->slots), &key, order_slot, ret_there);
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

	slot->wanted = (struct capacity){0};
	slot->is_wanted = false;
	if (!is_published(c, class))
		return;
	if (node && node->live) {
		slot->is_wanted = true;
		slot->wanted = class_capacity_on(node, class);
		return;
	}
	if (!slot->object || is_gone(c, node, slot->node_id))
		return;
	slot->is_wanted = true;
	if (!node)
		slot->wanted = slot->published;
}

/* Whether @slot has to be written. */
static bool capacity_differs(const struct capacity_slot *slot)
{
	if (slot->is_wanted != (slot->object != NULL))
		return true;
	return slot->is_wanted && (slot->wanted.available_bytes != slot->published.available_bytes ||
					  slot->wanted.max_volume_bytes != slot->published.max_volume_bytes);
}

/* Find out what @slot should be, and write it if it is not. @slot may be freed. */
static void capacity_settle(struct capacity_slot *slot)
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

/* @object is that of @slot, or a second one, which goes. */
static void capacity_adopt(struct capacity_slot *slot, const struct kube_capacity *object)
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
	slot->published = (struct capacity){
		.available_bytes = object->has_capacity ? object->capacity_bytes : UINT64_MAX,
		.max_volume_bytes = object->has_maximum ? object->maximum_bytes : UINT64_MAX,
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

/* Take for the object's state what the watch brought last. */
static void capacity_look_again(struct capacity_slot *slot)
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
	c->topology_key = name_topology_key(config->driver_name);
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

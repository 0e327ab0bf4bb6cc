/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/capacity_objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"
#include "kube/work_queue.h"
#include "nodes/class_capacity.h"

#define LABEL_MANAGER "csi.storage.k8s.io/managed-by"
#define NAME_PREFIX   "csisc-"
#define HASH_DIGITS   32

/* Longest value of a label, less the suffix (apimachinery, pkg/util/validation). */
#define MANAGER_PREFIX_MAX 52

/* Requests at once: enough to use up the rate that the client allows. */
#define MAX_RUNNING 16
#define TIMEOUT_MS  10000
#define BODY_MAX    8192
#define LOOK_NS     (30 * NS_PER_S)

/* Work on one key that waits for the API server. */
struct capacity_write {
	LIST_ENTRY(capacity_write) entry; /* in its owner's list */
	struct capacity_objects *owner;
	char *key;
	enum kube_verb verb;
	struct kube_request *request;
};

struct capacity_objects {
	struct capacity_objects_config config;
	char *manager; /* value of LABEL_MANAGER */
	char *topology_key;
	char *selector;
	char *path;
	struct kube_kind kind;
	struct informer *objects;
	/* Its keys are "class/node", and "/name" for objects that nothing calls for: those of other
	 * publishers, and those whose names or content are not what this release gives them. */
	struct work_queue *queue;
	LIST_HEAD(, capacity_write) writes;
	uint64_t start_ns;
	uint64_t looked_ns; /* when everything was looked at last */
	bool failing;       /* which is in the log */
};

/* The content that an object should have. */
struct wish {
	enum {
		WISH_AS_IT_IS, /* the node has not registered yet */
		WISH_NO_OBJECT,
		WISH_ZERO, /* if there is an object: the node is away or out of service */
		WISH_CAPACITY,
	} kind;
	struct capacity capacity;
};

static uint64_t table_now(const struct capacity_objects *c)
{
	return c->config.now_ns ? c->config.now_ns(c->config.user) : clock_ns();
}

static uint64_t queue_now(void *user)
{
	return table_now(user);
}

static void write_free(struct capacity_write *w)
{
	kube_request_cancel(w->request);
	LIST_REMOVE(w, entry);
	free(w->key);
	free(w);
}

static char *slot_key(const char *class_name, const char *node_id)
{
	return x_asprintf("%s/%s", class_name, node_id);
}

/* Return: the class of the slot @key, caller frees. @ret_node_id: borrowed from @key. The name of a class has
 * no slash. */
static char *split_key(const char *key, const char **ret_node_id)
{
	const char *slash = strchr(key, '/');

	*ret_node_id = slash + 1;
	return x_strndup(key, (size_t)(slash - key));
}

/* The same for all leaders, so that what one has written is the other's. Return: caller frees. */
static char *object_name(const char *key)
{
	char hash[SHA224_HEX_LEN + 1];

	sha224_hex(key, strlen(key), hash);
	return x_asprintf(NAME_PREFIX "%.*s", HASH_DIGITS, hash);
}

static const struct kube_capacity *find_object(const struct capacity_objects *c, const char *name)
{
	CLEANUP(free_charp) char *key = x_asprintf("%s/%s", c->config.namespace, name);

	return informer_get(c->objects, key);
}

/* The scheduler looks at capacity for classes that bind late, and for no others. Source: kube-scheduler,
 * plugins/volumebinding/binder.go, checkVolumeProvisions(). */
static bool is_published(const struct capacity_objects *c, const struct kube_class *class)
{
	return class_is_ours(class, c->config.driver_name) && class->waits_for_consumer;
}

static bool is_gone(const struct capacity_objects *c, const struct node *node, const char *node_id)
{
	uint64_t seen_ns = node ? node->registered_ns : c->start_ns;

	return !cluster_nodes_have(c->config.cluster, node_id) || table_now(c) >= seen_ns + CAPACITY_GONE_NS;
}

static bool is_out_of_service(const struct capacity_objects *c, const char *node_id)
{
	return cluster_nodes_out_of_service(c->config.cluster, node_id);
}

static struct wish find_wish(const struct capacity_objects *c, const char *class_name, const char *node_id)
{
	const struct kube_class *class = informer_get(c->config.classes, class_name);
	const struct node *node = node_table_get(c->config.nodes, node_id);

	if (!is_published(c, class))
		return (struct wish){.kind = WISH_NO_OBJECT};
	if (node && node->live && is_out_of_service(c, node_id))
		return (struct wish){.kind = WISH_ZERO};
	if (node && node->live)
		return (struct wish){WISH_CAPACITY, class_capacity_on(node, class)};
	if (is_gone(c, node, node_id))
		return (struct wish){.kind = WISH_NO_OBJECT};
	return (struct wish){.kind = node ? WISH_ZERO : WISH_AS_IT_IS};
}

static void add_labels(struct json_writer *w, const struct capacity_objects *c)
{
	json_key(w, "labels");
	json_object(w);
	json_key_str(w, KUBE_CAPACITY_DRIVER, c->config.driver_name);
	json_key_str(w, LABEL_MANAGER, c->manager);
	json_object_end(w);
}

/* Quantities that are numbers may lose digits on their way; strings do not. */
static void add_amount(struct json_writer *w, const char *key, uint64_t bytes)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	json_key_str(w, key, text);
}

static void write_object(const struct capacity_objects *c, const char *key, const char *name,
	const struct capacity *capacity, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	const char *node_id;
	CLEANUP(free_charp) char *class_name = split_key(key, &node_id);

	json_object(&w);
	json_key_str(&w, "apiVersion", "storage.k8s.io/v1");
	json_key_str(&w, "kind", "CSIStorageCapacity");
	json_key(&w, "metadata");
	json_object(&w);
	json_key_str(&w, "name", name);
	json_key_str(&w, "namespace", c->config.namespace);
	add_labels(&w, c);
	json_object_end(&w);
	json_key(&w, "nodeTopology");
	json_object(&w);
	json_key(&w, "matchLabels");
	json_object(&w);
	json_key_str(&w, c->topology_key, node_id);
	json_object_end(&w);
	json_object_end(&w);
	json_key_str(&w, "storageClassName", class_name);
	add_amount(&w, "capacity", capacity->available_bytes);
	add_amount(&w, "maximumVolumeSize", capacity->max_volume_bytes);
	json_object_end(&w);
}

/* One line when writing begins to fail and one when no object fails any more, whatever happens to single ones
 * in between. */
static void note_result(struct capacity_objects *c, const struct error *error)
{
	if (error && !c->failing)
		log_warn("capacity objects cannot be written, trying again", F_ERR(error));
	else if (!error && c->failing && work_queue_failing(c->queue) == 0)
		log_info("capacity objects can be written again");
	c->failing = work_queue_failing(c->queue) > 0;
}

/* NOT_FOUND as the reply to a deletion is a success. As the reply to another request it means that the
 * namespace does not exist. */
static void replied(void *user, unsigned status, struct span body, const struct error *error)
{
	struct capacity_write *w = user;
	struct capacity_objects *c = w->owner;
	CLEANUP(free_charp) char *key = TAKE_PTR(w->key);
	bool is_absent = w->verb == KUBE_DELETE && error && error->code == ERR_NOT_FOUND;

	(void)status;
	(void)body;
	w->request = NULL;
	write_free(w);
	if (is_absent)
		error = NULL;
	work_queue_end(c->queue, key, error ? WORK_FAILED : WORK_DONE);
	note_result(c, error);
	work_queue_run(c->queue);
}

static void request(
	struct capacity_objects *c, const char *key, enum kube_verb verb, const char *name, struct span body)
{
	struct capacity_write *w = x_calloc(1, sizeof(*w));
	const struct kube_object_call call = {.verb = verb,
		.kind = &kube_kind_capacities,
		.namespace = c->config.namespace,
		.name = name,
		.field_manager = c->manager,
		.body = body,
		.timeout_ms = TIMEOUT_MS};

	*w = (struct capacity_write){.owner = c, .key = x_strdup(key), .verb = verb};
	LIST_INSERT_HEAD(&c->writes, w, entry);
	if (c->config.writes)
		bucket_charge(c->config.writes, table_now(c));
	w->request = kube_object_call(c->config.client, &call, replied, w);
}

static bool is_ours(const struct capacity_objects *c, const struct kube_capacity *object)
{
	return str_eq(kube_meta_label(&object->meta, LABEL_MANAGER), c->manager);
}

/* Objects of other publishers than external-provisioner are never touched, and its own only if asked for. */
static bool is_foreign(const struct capacity_objects *c, const struct kube_capacity *object)
{
	const char *manager = kube_meta_label(&object->meta, LABEL_MANAGER);

	return c->config.remove_foreign && !is_ours(c, object) && manager &&
	       str_starts(manager, "external-provisioner");
}

/* Return: the key of the slot that @object is for, caller frees; NULL: it is for none. */
static char *key_of(const struct capacity_objects *c, const struct kube_capacity *object)
{
	const char *node_id = kube_pairs_get(&object->topology, c->topology_key);

	if (!node_id || object->has_expressions || str_empty(object->storage_class))
		return NULL;
	return slot_key(object->storage_class, node_id);
}

/* An object that this release would give another name is deleted when the one of that name exists, or none is
 * wanted. Return: whether @object is to be deleted now. */
static bool is_superfluous(const struct capacity_objects *c, const struct kube_capacity *object)
{
	CLEANUP(free_charp) char *key = key_of(c, object);
	CLEANUP(free_charp) char *class_name = NULL;
	CLEANUP(free_charp) char *name = NULL;
	const char *node_id;
	struct wish wish;

	if (!is_ours(c, object))
		return is_foreign(c, object);
	if (!key)
		return true;
	class_name = split_key(key, &node_id);
	name = object_name(key);
	wish = find_wish(c, class_name, node_id);
	return find_object(c, name) || wish.kind == WISH_NO_OBJECT || wish.kind == WISH_ZERO;
}

/* @name: of an object that may be superfluous. Return: whether a request was made. */
static bool remove_superfluous(struct capacity_objects *c, const char *key, const char *name)
{
	const struct kube_capacity *object = find_object(c, name);

	if (!object || object->meta.deleting || !is_superfluous(c, object))
		return false;
	request(c, key, KUBE_DELETE, name, (struct span){0});
	return true;
}

static bool shows(
	const struct capacity_objects *c, const struct kube_capacity *object, const struct capacity *capacity)
{
	return is_ours(c, object) && object->has_capacity &&
	       object->capacity_bytes == capacity->available_bytes && object->has_maximum &&
	       object->maximum_bytes == capacity->max_volume_bytes;
}

static uint64_t limited(uint64_t bytes, uint64_t object_bytes, uint64_t shown_bytes)
{
	uint64_t limit_bytes = object_bytes > shown_bytes ? object_bytes : shown_bytes;

	return bytes < limit_bytes ? bytes : limit_bytes;
}

/* Less is shown at once, and more when others know of it. Return: whether there is something to show: without
 * an object nothing is offered anyway. */
static bool limit_growth(const struct capacity_objects *c, const struct kube_class *class,
	const char *node_id, const struct kube_capacity *object, struct capacity *capacity)
{
	struct capacity shown = {0};
	bool is_none = capacity->available_bytes == 0;

	if (!c->config.shown ||
		!c->config.shown(c->config.shown_user, node_id, class_needs_sync(class), &shown))
		return true;
	shown = class_capacity_of(&shown, class);
	capacity->available_bytes = limited(
		capacity->available_bytes, object ? object->capacity_bytes : 0, shown.available_bytes);
	capacity->max_volume_bytes = limited(
		capacity->max_volume_bytes, object ? object->maximum_bytes : 0, shown.max_volume_bytes);
	return object || is_none || capacity->available_bytes > 0;
}

/* Return: whether a request was made. */
static bool bring_up_to_date(struct capacity_objects *c, const char *key)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	CLEANUP(free_charp) char *name = object_name(key);
	const struct kube_capacity *object = find_object(c, name);
	const char *node_id;
	CLEANUP(free_charp) char *class_name = split_key(key, &node_id);
	struct wish wish = find_wish(c, class_name, node_id);

	if (wish.kind == WISH_CAPACITY && !limit_growth(c, informer_get(c->config.classes, class_name),
						  node_id, object, &wish.capacity))
		return false;
	if (wish.kind == WISH_NO_OBJECT && object && is_ours(c, object) && !object->meta.deleting) {
		request(c, key, KUBE_DELETE, name, (struct span){0});
		return true;
	}
	if (wish.kind == WISH_NO_OBJECT || wish.kind == WISH_AS_IT_IS ||
		(wish.kind == WISH_ZERO && !object) || (object && shows(c, object, &wish.capacity)))
		return false;
	write_object(c, key, name, &wish.capacity, &body);
	request(c, key, KUBE_APPLY, name, buf_span(&body));
	return true;
}

static void update_object(void *user, const char *key)
{
	struct capacity_objects *c = user;
	bool asked = *key == '/' ? remove_superfluous(c, key, key + 1) : bring_up_to_date(c, key);

	if (!asked)
		work_queue_end(c->queue, key, WORK_DONE);
}

static void add_object(struct capacity_objects *c, const struct kube_capacity *o)
{
	CLEANUP(free_charp) char *key = key_of(c, o);
	CLEANUP(free_charp) char *name = key ? object_name(key) : NULL;
	CLEANUP(free_charp) char *stray = x_asprintf("/%s", o->meta.name);

	if (is_ours(c, o) && key)
		work_queue_add(c->queue, key);
	if (is_foreign(c, o) || (is_ours(c, o) && !str_eq(name, o->meta.name)))
		work_queue_add(c->queue, stray);
}

struct visit {
	struct capacity_objects *c;
	const struct node *node;
	size_t n_objects; /* of the slots that live nodes in service have */
	size_t n_classes; /* that are published */
};

/* Queues the object, unless it has the content that it should have. */
static void visit_object(void *user, const void *object)
{
	const struct kube_capacity *o = object;
	struct visit *v = user;
	CLEANUP(free_charp) char *key = key_of(v->c, o);
	CLEANUP(free_charp) char *name = key ? object_name(key) : NULL;
	struct wish wish;

	if (is_ours(v->c, o) && str_eq(name, o->meta.name)) {
		wish = find_wish(v->c, o->storage_class, kube_pairs_get(&o->topology, v->c->topology_key));
		v->n_objects += wish.kind == WISH_CAPACITY;
		if (wish.kind == WISH_CAPACITY && shows(v->c, o, &wish.capacity))
			return;
	}
	add_object(v->c, o);
}

static void count_class(void *user, const void *object)
{
	struct visit *v = user;

	v->n_classes += is_published(v->c, object);
}

static void add_class(void *user, const void *object)
{
	const struct kube_class *class = object;
	const struct visit *v = user;
	CLEANUP(free_charp) char *key = slot_key(class->meta.name, v->node->report.node_id);

	if (is_published(v->c, class))
		work_queue_add(v->c->queue, key);
}

static bool is_active(const struct capacity_objects *c)
{
	return informer_is_synced(c->config.classes) && informer_is_synced(c->objects);
}

static size_t count_offered(const struct capacity_objects *c, const struct node *const *nodes, size_t n_nodes)
{
	size_t n = 0;

	for (size_t i = 0; i < n_nodes; i++)
		n += nodes[i]->live && !is_out_of_service(c, nodes[i]->report.node_id);
	return n;
}

/* Names differ by slot, so that counting the objects tells whether each slot has one. */
static void look_at_all(struct capacity_objects *c)
{
	struct visit v = {.c = c};
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	c->looked_ns = table_now(c);
	informer_each(c->objects, visit_object, &v);
	informer_each(c->config.classes, count_class, &v);
	if (v.n_objects == v.n_classes * count_offered(c, nodes, n))
		return;
	for (size_t i = 0; i < n; i++) {
		v.node = nodes[i];
		informer_each(c->config.classes, add_class, &v);
	}
}

static void object_changed(void *user, const char *key, const void *old, const void *new)
{
	struct capacity_objects *c = user;

	(void)key;
	if (!is_active(c))
		return;
	add_object(c, new ? new : old);
	work_queue_run(c->queue);
}

static void node_changed(void *user, const struct node *node)
{
	struct visit v = {.c = user, .node = node};

	if (!is_active(v.c))
		return;
	informer_each(v.c->config.classes, add_class, &v);
	work_queue_run(v.c->queue);
}

static void begin(void *user)
{
	struct capacity_objects *c = user;

	if (!is_active(c))
		return;
	look_at_all(c);
	work_queue_run(c->queue);
}

void capacity_objects_class_changed(struct capacity_objects *c)
{
	begin(c);
}

void capacity_objects_node_changed(struct capacity_objects *c, const char *node_id)
{
	const struct node *node = node_table_get(c->config.nodes, node_id);

	if (node)
		node_changed(c, node);
}

void capacity_objects_tick(struct capacity_objects *c)
{
	if (!is_active(c))
		return;
	if (table_now(c) - c->looked_ns >= LOOK_NS)
		look_at_all(c);
	work_queue_run(c->queue);
}

size_t capacity_objects_pending(const struct capacity_objects *c)
{
	return work_queue_pending(c->queue);
}

struct capacity_objects *capacity_objects_new(const struct capacity_objects_config *config)
{
	static const struct informer_events events = {.changed = object_changed, .synced = begin};
	struct capacity_objects *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	c->start_ns = table_now(c);
	c->manager = x_asprintf("%.*s-controller", MANAGER_PREFIX_MAX, config->driver_name);
	c->topology_key = name_topology_key(config->driver_name);
	c->selector = x_asprintf(KUBE_CAPACITY_DRIVER "=%s", config->driver_name);
	c->path = x_asprintf("/apis/storage.k8s.io/v1/namespaces/%s/csistoragecapacities", config->namespace);
	c->kind = kube_kind_capacities;
	c->kind.path = c->path;
	c->kind.label_selector = c->selector;
	const struct work_queue_config queue = {
		.work = update_object, .user = c, .max_running = MAX_RUNNING, .now_ns = queue_now};
	c->queue = work_queue_new(&queue);
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
	for (struct capacity_write *w = LIST_FIRST(&c->writes), *next; w; w = next) {
		next = LIST_NEXT(w, entry);
		write_free(w);
	}
	work_queue_free(c->queue);
	free(c->manager);
	free(c->topology_key);
	free(c->selector);
	free(c->path);
	free(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/node_objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/informer.h"
#include "kube/object_call.h"
#include "kube/work_queue.h"
#include "resources/pmem_node.h"

/* Requests at once: enough to use up the rate that the client allows. */
#define MAX_RUNNING 16
#define TIMEOUT_MS  10000
#define BODY_MAX    (1U << 20)

/* Limits for writes that change only the time until which volumes are recorded, since that may change in all
 * objects at once. The rate is a small part of REPORT_WRITES_PER_S (controller_kube.c); the burst has as many
 * writes as the rate allows between two looks at all nodes. */
#define RECORDED_PER_S 4
#define RECORDED_BURST 240

/* How often nodes are looked at about which nothing is reported any more. */
#define LOOK_NS (60 * NS_PER_S)

/* Work on one node's object that waits for the API server. */
struct node_write {
	LIST_ENTRY(node_write) entry; /* in its owner's list */
	struct node_objects *owner;
	char *node_id;
	struct pmem_node *wanted; /* NULL: the object is deleted */
	struct kube_request *request;
};

struct node_objects {
	struct node_objects_config config;
	struct kube_kind kind;
	char *selector;
	struct informer *objects;
	struct work_queue *queue;
	LIST_HEAD(, node_write) writes;
	uint64_t start_ns;
	uint64_t looked_ns; /* when all nodes were looked at last */
	struct bucket recorded;
	bool failing; /* requests fail, which was logged once */
};

static uint64_t table_now(const struct node_objects *o)
{
	return o->config.now_ns ? o->config.now_ns(o->config.user) : clock_ns();
}

static uint64_t queue_now(void *user)
{
	return table_now(user);
}

static void write_free(struct node_write *w)
{
	kube_request_cancel(w->request);
	LIST_REMOVE(w, entry);
	free(w->node_id);
	pmem_node_free(w->wanted);
	free(w);
}

/* The wall clock, by which people read when @since_ns of the table's clock was. */
static void format_time(
	const struct node_objects *o, uint64_t since_ns, char out[static KUBE_SECONDS_LEN + 1])
{
	uint64_t ago_s = (table_now(o) - since_ns) / NS_PER_S;

	kube_time_format((int64_t)time(NULL) - (int64_t)ago_s, out);
}

static void count_volume(struct pmem_node *n, const struct volume_report *v)
{
	if (v->phase == PHASE_ERASING) {
		n->n_erasing++;
		return;
	}
	n->n_volumes++;
	if (v->is_inline) {
		n->n_inline++;
		n->inline_bytes += v->size_bytes;
	}
	n->n_missing += v->phase == PHASE_MISSING;
	n->n_damaged += v->phase == PHASE_DAMAGED;
}

/* Their reservations end when the object shows them. Names whose count is limited: the others are known by
 * the numbers of reports. */
static void add_new_volume(
	const struct node_objects *o, struct pmem_node *n, const struct volume_report *v, size_t *n_new)
{
	if (v->seen_ns == 0 || table_now(o) - v->seen_ns > NODE_OBJECTS_NEW_NS || str_empty(v->name) ||
		v->phase == PHASE_ERASING || *n_new == PMEM_NODE_NEW_VOLUMES_MAX)
		return;
	strv_add(&n->new_volumes, v->name);
	++*n_new;
}

static bool has_region(const struct pmem_node *n, const char *name)
{
	for (size_t i = 0; i < n->n_regions; i++) {
		if (str_eq(n->regions[i].name, name))
			return true;
	}
	return false;
}

/* The definition allows one region of a name. Volume groups may have the same name: the first one is shown.
 */
static void add_pool(struct pmem_node *n, const struct pool_report *p)
{
	struct pmem_region *r;

	if (has_region(n, p->name))
		return;
	if (n->n_regions == PMEM_NODE_REGIONS_MAX) {
		n->n_others++;
		n->others_managed_bytes += p->capacity.total_bytes;
		n->others_available_bytes += p->capacity.available_bytes;
		return;
	}
	r = pmem_node_add_region(n, p->name);
	r->total_bytes = p->region_bytes;
	r->managed_bytes = p->capacity.total_bytes;
	r->available_bytes = p->capacity.available_bytes;
	r->max_volume_bytes = p->capacity.max_volume_bytes;
	r->max_sector_volume_bytes = p->capacity.max_sector_volume_bytes;
	r->erasing_bytes = p->erasing_bytes;
	r->n_free_extents = p->n_free_extents;
	for (size_t i = 0; i < p->n_free_extents; i++) {
		char text[24];

		snprintf(text, sizeof(text), "%" PRIu64, p->free_extent_bytes[i]);
		strv_add(&r->free_extents, text);
	}
	r->unit_bytes = p->rules.unit_bytes;
	r->map_align_bytes = p->rules.map_align_bytes;
	r->btt_start_bytes = p->rules.btt_start_bytes;
	r->complete = !p->incomplete;
	if (p->durability != DURABILITY_UNKNOWN)
		r->durability = x_strdup(durability_name(p->durability));
}

static struct pmem_node *show_report(const struct node_objects *o, const struct node *node)
{
	struct pmem_node *n = x_calloc(1, sizeof(*n));
	char contact[KUBE_SECONDS_LEN + 1];
	const struct volume_report *v;
	size_t n_new = 0;
	size_t at = 0;

	format_time(o, node->registered_ns, contact);
	n->meta.name = pmem_node_object_name(node->report.node_id, o->config.driver_name);
	n->node = x_strdup(node->report.node_id);
	n->driver = x_strdup(o->config.driver_name);
	n->device_mode = x_strdup(node->report.device_mode);
	n->driver_version = x_strdup(node->report.version);
	n->boot_id = x_strdup(node->report.boot_id);
	n->last_contact = x_strdup(contact);
	n->report = node->report.number;
	for (size_t i = 0; i < node->report.n_pools; i++)
		add_pool(n, &node->report.pools[i]);
	while ((v = node_next_volume(node, &at))) {
		count_volume(n, v);
		add_new_volume(o, n, v, &n_new);
	}
	return n;
}

static struct pmem_verdict judge_contact(const struct node *node)
{
	if (!node)
		return (struct pmem_verdict){"Unknown", "NotRegistered",
			"The driver of the node has not registered with the controller that leads."};
	if (!node->live)
		return (struct pmem_verdict){"Unknown", "LeaseExpired",
			"The driver of the node was stopped, or its reports do not reach the controller."};
	return (struct pmem_verdict){"True", "Registered", "The driver reports to the controller."};
}

static bool has_status(const struct node *node, const char *reason)
{
	const struct volume_report *v;
	size_t at = 0;

	while ((v = node_next_volume(node, &at)) != NULL) {
		if (health_find(&v->health, reason))
			return true;
	}
	return false;
}

static struct pmem_verdict judge_devices(const struct node *node, const struct pmem_node *n)
{
	if (!node || !node->live)
		return (struct pmem_verdict){
			"Unknown", "NoContact", "The state of the devices is not known without contact."};
	if (!node->report.has_inventory)
		return (struct pmem_verdict){
			"Unknown", "NotReported", "The driver does not report its devices."};
	for (size_t i = 0; i < n->n_regions; i++) {
		if (!n->regions[i].complete)
			return (struct pmem_verdict){
				"False", "RegionIncomplete", "A device of at least one region is missing."};
	}
	if (n->n_missing > 0)
		return (struct pmem_verdict){
			"False", "VolumesMissing", "The device of at least one volume is missing."};
	if (n->n_damaged > 0)
		return (struct pmem_verdict){
			"False", "VolumesDamaged", "The state file of at least one volume cannot be read."};
	if (has_status(node, HEALTH_MEDIA_ERROR))
		return (struct pmem_verdict){"False", "MediaErrors",
			"The memory of at least one volume cannot be read everywhere."};
	if (has_status(node, HEALTH_DIMM_LOST_DATA) || has_status(node, HEALTH_DIRTY_SHUTDOWN))
		return (struct pmem_verdict){"False", "DimmsLostData",
			"Memory modules below at least one volume have lost content at the last shutdown."};
	if (has_status(node, HEALTH_DIMM_DEGRADED))
		return (struct pmem_verdict){
			"False", "DimmsDegraded", "Memory modules below at least one volume report trouble."};
	return (struct pmem_verdict){"True", "Complete", "All devices are present."};
}

static bool is_gone(const struct node_objects *o, const struct node *node, const char *node_id)
{
	uint64_t seen_ns = node ? node->registered_ns : o->start_ns;

	return !(node && node->live) && !cluster_nodes_have(o->config.cluster, node_id) &&
	       table_now(o) >= seen_ns + NODE_OBJECTS_GONE_NS;
}

/* Sets in @n until when the volumes of the node are recorded. A node that is neither live nor in the cluster
 * gets no time: it may come back with other volumes. */
static void show_recorded(const struct node_objects *o, const char *node_id, const struct node *node,
	const struct pmem_node *observed, struct pmem_node *n)
{
	const char *shown = observed ? observed->recorded_until : NULL;
	const char *until = shown;

	if (!(node && node->live) && !cluster_nodes_have(o->config.cluster, node_id))
		until = NULL;
	else if (node && o->config.recorded)
		until = o->config.recorded(o->config.recorded_user, node, shown);
	free(n->recorded_until);
	n->recorded_until = x_strdup(until);
}

/* Makes the object that @node_id should have. Return: pmem_node_free(); NULL: nothing can be said yet, or
 * there is no such node. */
static struct pmem_node *find_wanted(
	const struct node_objects *o, const char *node_id, const struct pmem_node *observed)
{
	const struct node *node = node_table_get(o->config.nodes, node_id);
	const struct pmem_conditions *before = observed ? &observed->conditions : NULL;
	struct pmem_verdict contact;
	struct pmem_verdict devices;
	struct pmem_node *n;

	if (!node && (!observed || table_now(o) < o->start_ns + NODE_OBJECTS_START_NS))
		return NULL;
	n = node ? show_report(o, node) : pmem_node_dup(observed);
	show_recorded(o, node_id, node, observed, n);
	contact = judge_contact(node);
	devices = judge_devices(node, n);
	pmem_condition_set(&n->conditions, before, "Ready", &contact);
	pmem_condition_set(&n->conditions, before, "DevicesHealthy", &devices);
	return n;
}

/* One line when writing begins to fail and one when no object fails any more, whatever happens to single ones
 * in between. */
static void note_result(struct node_objects *o, const struct error *error)
{
	if (error && !o->failing)
		log_warn("PmemNode objects cannot be written, trying again", F_ERR(error));
	else if (!error && o->failing && work_queue_failing(o->queue) == 0)
		log_info("PmemNode objects can be written again");
	o->failing = work_queue_failing(o->queue) > 0;
}

static void end_write(struct node_write *w, const struct error *error)
{
	CLEANUP(free_charp) char *node_id = x_strdup(w->node_id);
	struct node_objects *o = w->owner;
	bool is_absent = !w->wanted && error && error->code == ERR_NOT_FOUND;

	write_free(w);
	if (is_absent)
		error = NULL;
	work_queue_end(o->queue, node_id, error ? WORK_FAILED : WORK_DONE);
	note_result(o, error);
	work_queue_run(o->queue);
}

static void request(struct node_write *w, enum kube_verb verb, const char *subresource, struct span body,
	kube_reply_fn fn)
{
	CLEANUP(free_charp) char *name = pmem_node_object_name(w->node_id, w->owner->config.driver_name);
	const struct kube_object_call call = {.verb = verb,
		.kind = &kube_kind_pmem_nodes,
		.name = name,
		.subresource = subresource,
		.field_manager = w->owner->config.driver_name,
		.body = body,
		.timeout_ms = TIMEOUT_MS};

	if (w->owner->config.writes)
		bucket_charge(w->owner->config.writes, table_now(w->owner));
	w->request = kube_object_call(w->owner->config.client, &call, fn, w);
}

static void on_last_reply(void *user, unsigned status, struct span body, const struct error *error)
{
	struct node_write *w = user;

	(void)status;
	(void)body;
	w->request = NULL;
	end_write(w, error);
}

static void write_status(struct node_write *w)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);

	pmem_node_write_status(w->wanted, &body);
	request(w, KUBE_APPLY, "status", buf_span(&body), on_last_reply);
}

static void on_spec_reply(void *user, unsigned status, struct span body, const struct error *error)
{
	struct node_write *w = user;

	(void)status;
	(void)body;
	w->request = NULL;
	if (error)
		end_write(w, error);
	else
		write_status(w);
}

static void write_spec(struct node_write *w)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);

	pmem_node_write_spec(w->wanted, &body);
	request(w, KUBE_APPLY, /* subresource= */ NULL, buf_span(&body), on_spec_reply);
}

/* @wanted: taken over */
static struct node_write *write_new(struct node_objects *o, const char *node_id, struct pmem_node *wanted)
{
	struct node_write *w = x_calloc(1, sizeof(*w));

	*w = (struct node_write){.owner = o, .node_id = x_strdup(node_id), .wanted = wanted};
	LIST_INSERT_HEAD(&o->writes, w, entry);
	return w;
}

/* The label need not be compared: objects without it are not watched, and made by apply, which sets it. */
static bool spec_differs(const struct pmem_node *wanted, const struct pmem_node *observed)
{
	return !str_eq(wanted->node, observed->node) || !str_eq(wanted->driver, observed->driver);
}

/* Whether the object has to be written. If only the time differs until which volumes are recorded, a new time
 * is written at a limited rate, and the removal of the time at once. */
static bool differs(struct node_objects *o, const struct pmem_node *wanted, const struct pmem_node *observed)
{
	if (!pmem_node_equal(wanted, observed))
		return true;
	if (str_eq(wanted->recorded_until, observed->recorded_until))
		return false;
	return !wanted->recorded_until || bucket_take(&o->recorded, table_now(o)) == 0;
}

static void write_object(void *user, const char *node_id)
{
	struct node_objects *o = user;
	CLEANUP(free_charp) char *name = pmem_node_object_name(node_id, o->config.driver_name);
	const struct pmem_node *observed = informer_get(o->objects, name);
	CLEANUP(pmem_node_freep) struct pmem_node *wanted = find_wanted(o, node_id, observed);
	const struct node *node = node_table_get(o->config.nodes, node_id);

	bool is_over =
		observed && wanted && wanted->n_volumes + wanted->n_erasing == 0 && is_gone(o, node, node_id);

	/* A spec cannot be changed; an object with another one makes place for ours. */
	if (is_over || (observed && wanted && spec_differs(wanted, observed))) {
		request(write_new(o, node_id, /* wanted= */ NULL), KUBE_DELETE, /* subresource= */ NULL,
			(struct span){0}, on_last_reply);
		return;
	}
	if (!wanted || (observed && !differs(o, wanted, observed)) ||
		(!observed && is_gone(o, node, node_id))) {
		work_queue_end(o->queue, node_id, WORK_DONE);
		return;
	}
	if (observed)
		write_status(write_new(o, node_id, TAKE_PTR(wanted)));
	else
		write_spec(write_new(o, node_id, TAKE_PTR(wanted)));
}

static void object_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct pmem_node *n = new ? new : old;
	CLEANUP(free_charp) char *name = NULL;
	struct node_objects *o = user;

	if (n->node)
		name = pmem_node_object_name(n->node, o->config.driver_name);
	if (!str_eq(name, key)) {
		if (new)
			log_warn(
				"a PmemNode object does not have the name that its spec calls for; it is not "
				"changed unless a node needs that name",
				F_STR("object", key));
		return;
	}
	/* A deleted object is made again only with the next look at all nodes: the API server deletes the
	 * definition when there are no objects left (apiextensions-apiserver, crdFinalizer), which a write at
	 * once would prevent. */
	if (!new)
		return;
	work_queue_add(o->queue, n->node);
	work_queue_run(o->queue);
	if (o->config.shown)
		o->config.shown(o->config.shown_user, n->node);
}

static void node_changed(void *user, const struct node *node)
{
	struct node_objects *o = user;

	if (!informer_is_synced(o->objects))
		return;
	work_queue_add(o->queue, node->report.node_id);
	work_queue_run(o->queue);
}

static void add_object(void *user, const void *object)
{
	const struct pmem_node *n = object;
	struct node_objects *o = user;

	if (n->node)
		work_queue_add(o->queue, n->node);
}

static void look_at_all(struct node_objects *o)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(o->config.nodes, &nodes);

	for (size_t i = 0; i < n; i++)
		work_queue_add(o->queue, nodes[i]->report.node_id);
	informer_each(o->objects, add_object, o);
	o->looked_ns = table_now(o);
}

static void synced(void *user)
{
	struct node_objects *o = user;

	look_at_all(o);
	work_queue_run(o->queue);
}

void node_objects_tick(struct node_objects *o)
{
	if (!informer_is_synced(o->objects))
		return;
	if (table_now(o) - o->looked_ns >= LOOK_NS)
		look_at_all(o);
	work_queue_run(o->queue);
}

bool node_objects_capacity(const struct node_objects *o, const char *node_id, bool sync, struct capacity *ret)
{
	CLEANUP(free_charp) char *name = pmem_node_object_name(node_id, o->config.driver_name);
	const struct pmem_node *n = informer_get(o->objects, name);
	const struct pmem_condition *ready = n ? pmem_condition_find(&n->conditions, "Ready") : NULL;
	const struct node *node = node_table_get(o->config.nodes, node_id);
	bool is_behind = n && node && n->report != node->report.number;

	*ret = (struct capacity){0};
	for (size_t i = 0; ready && !is_behind && str_eq(ready->status, "True") && i < n->n_regions; i++) {
		const struct pmem_region *r = &n->regions[i];

		const struct capacity all = {r->managed_bytes, r->available_bytes, r->max_volume_bytes,
			r->max_sector_volume_bytes};
		const struct capacity usable = capacity_for(&all, durability_parse(r->durability), sync);

		capacity_add(ret, &usable);
	}
	return !o->failing;
}

size_t node_objects_pending(const struct node_objects *o)
{
	return work_queue_pending(o->queue);
}

struct node_objects *node_objects_new(const struct node_objects_config *config)
{
	static const struct informer_events events = {.changed = object_changed, .synced = synced};
	struct node_objects *o = x_calloc(1, sizeof(*o));

	o->config = *config;
	o->start_ns = table_now(o);
	bucket_init(&o->recorded, RECORDED_PER_S, RECORDED_BURST);
	o->selector = x_asprintf(PMEM_LABEL_DRIVER "=%s", config->driver_name);
	o->kind = kube_kind_pmem_nodes;
	o->kind.label_selector = o->selector;
	const struct work_queue_config queue = {.work = write_object,
		.user = o,
		.max_running = MAX_RUNNING,
		.interval_ns = NODE_OBJECTS_INTERVAL_NS,
		.now_ns = queue_now};
	o->queue = work_queue_new(&queue);
	node_table_watch(config->nodes, node_changed, o);
	o->objects = informer_new(config->client, &o->kind, &events, o);
	return o;
}

void node_objects_free(struct node_objects *o)
{
	if (!o)
		return;
	node_table_unwatch(o->config.nodes, node_changed, o);
	informer_free(o->objects);
	for (struct node_write *w = LIST_FIRST(&o->writes), *next; w; w = next) {
		next = LIST_NEXT(w, entry);
		write_free(w);
	}
	work_queue_free(o->queue);
	free(o->selector);
	free(o);
}

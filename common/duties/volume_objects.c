/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/volume_objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "controller/controller_private.h"
#include "controller/recorded_volumes.h"
#include "controller/volume_status.h"
#include "duties/claim_lookup.h"
#include "duties/rebound_claims.h"
#include "duties/records_by_node.h"
#include "duties/reported_limit.h"
#include "duties/reported_record.h"
#include "duties/volume_concerns.h"
#include "kube/informer.h"
#include "kube/work_queue.h"
#include "pacing/fair_turns.h"

/* Requests at once. Calls of users share the connection with them. */
#define MAX_RUNNING 8
/* A volume that is created or deleted changes several times in a row: the last state is enough. */
#define INTERVAL_NS (2 * NS_PER_S)
/* How often records are looked at that wait for time to pass. */
#define LOOK_NS (30 * NS_PER_S)
/* A call at another replica writes its outcome, most often at once: until then its record is not touched. */
#define CALL_NS (10 * NS_PER_S)
/* How often a claim is looked for whose volume no node has: a look reads all claims. */
#define CLAIM_LOOK_NS (3600 * NS_PER_S)
/* How often a PersistentVolume is looked for that refers to a retained volume. */
#define VOLUME_LOOK_NS (300 * NS_PER_S)

/* Work on one record, or a look-up of its claim, that waits for an answer. */
struct volume_work {
	LIST_ENTRY(volume_work) all;
	struct volume_objects *owner; /* NULL: it has gone */
	char *key;
};

struct volume_objects {
	struct volume_objects_config config;
	struct kube_kind kind;
	char *selector;
	struct informer *objects;
	struct work_queue *queue;
	LIST_HEAD(, volume_work) works;
	struct volume_concerns concerns;
	struct records_by_node *by_node;
	struct reported_limit *reported;
	struct recorded_volumes recorded;
	struct fair_turns *turns; /* of writes that follow from reports; parties are nodes */
	uint64_t looked_ns;
	bool failing; /* which is in the log */
};

static uint64_t now_ns(const struct volume_objects *o)
{
	return controller_now_ns(o->config.controller);
}

static uint64_t queue_now(void *user)
{
	return now_ns(user);
}

static const struct node_table *nodes_of(const struct volume_objects *o)
{
	return o->config.controller->config.nodes;
}

static struct concern *find_concern(const struct volume_objects *o, const char *key)
{
	return volume_concerns_find(&o->concerns, key);
}

static void forget_concern(struct volume_objects *o, const char *key)
{
	volume_concerns_forget(&o->concerns, key);
}

static const struct pmem_volume *find_record(const struct volume_objects *o, const char *key)
{
	CLEANUP(free_charp) char *name = pmem_volume_object_name(key, o->config.driver_name);

	return informer_get(o->objects, name);
}

/* One line when writing begins to fail and one when no record fails any more. */
static void note_result(struct volume_objects *o, const struct error *error)
{
	if (error && !o->failing)
		log_warn("PmemVolume objects cannot be written, trying again", F_ERR(error));
	else if (!error && o->failing && work_queue_failing(o->queue) == 0)
		log_info("PmemVolume objects can be written again");
	o->failing = work_queue_failing(o->queue) > 0;
}

static struct volume_work *work_new(struct volume_objects *o, const char *key)
{
	struct volume_work *w = x_calloc(1, sizeof(*w));

	w->owner = o;
	w->key = x_strdup(key);
	LIST_INSERT_HEAD(&o->works, w, all);
	return w;
}

/* Return: the owner; NULL: it has gone. */
static struct volume_objects *work_end(struct volume_work *w, const struct error *error)
{
	/* Another version: the informer is about to show it. */
	bool is_old = error && (error->code == ERR_ABORTED || error->code == ERR_NOT_FOUND ||
				       error->code == ERR_EXISTS);
	struct volume_objects *o = w->owner;

	if (o) {
		LIST_REMOVE(w, all);
		work_queue_end(o->queue, w->key, error && !is_old ? WORK_FAILED : WORK_DONE);
		note_result(o, is_old ? NULL : error);
	}
	free(w->key);
	free(w);
	return o;
}

static void on_written(void *user, struct pmem_volume *record, const struct error *error)
{
	struct volume_objects *o;

	pmem_volume_free(record);
	o = work_end(user, error);
	if (o)
		work_queue_run(o->queue);
}

/* That of @nodes (strv) which has used up most of its share: the others need not wait for it elsewhere. */
static const char *find_busiest(const struct volume_objects *o, char *const *nodes)
{
	const char *busiest;

	if (!nodes || !nodes[0])
		return "";
	busiest = nodes[0];
	for (char *const *node = nodes + 1; *node; node++) {
		if (fair_turns_busier(o->turns, *node, busiest, now_ns(o)))
			busiest = *node;
	}
	return busiest;
}

/* Whether a write that follows from what nodes report may begin now. Otherwise the key has its turn later,
 * when only the last state is written. The specification and the release of a record that calls have made
 * follow from these calls. */
static bool may_write(struct volume_objects *o, const char *key, enum volume_record_write what,
	const struct pmem_volume *record)
{
	return (what != RECORD_STATUS && !record->origin) ||
	       fair_turns_take(o->turns, find_busiest(o, record->nodes), key, now_ns(o));
}

static void write_record(struct volume_objects *o, const char *key, enum volume_record_write what,
	const struct pmem_volume *record)
{
	if (!may_write(o, key, what, record)) {
		work_queue_end(o->queue, key, WORK_DONE);
		return;
	}
	controller_write_record(o->config.controller, what, record, on_written, work_new(o, key));
}

static struct volume_key key_of(const char *key)
{
	struct volume_key of = {0};

	memcpy(of.hex, key, PMEM_VOLUME_KEY_LEN);
	return of;
}

/* Whether this process works on a call for the volume. The end of a call is not notified: the key has another
 * turn then. */
static bool leaves_to_call(struct volume_objects *o, const char *key)
{
	struct volume_key of = key_of(key);

	if (!key_is_locked(o->config.controller->locks, &of))
		return false;
	work_queue_add(o->queue, key);
	return true;
}

static bool may_log(struct volume_objects *o)
{
	return !o->config.lines || log_quota_take(o->config.lines, clock_ns());
}

/* After a read for a reported volume. Return: the record that is to be made, or NULL: it is there and about
 * to be shown, no node reports the volume any more, or a call works on it. */
static struct pmem_volume *judge_read(struct volume_objects *o, const char *key, bool is_there)
{
	const struct concern *c = find_concern(o, key);
	struct pmem_volume *made = NULL;

	if (leaves_to_call(o, key))
		return NULL;
	if (!is_there && c && c->handle)
		made = reported_record_new(nodes_of(o), o->config.driver_name, key, c->handle);
	if (made && may_log(o))
		log_info("made a record of a volume that a node reports", F_STR("volume", c->handle),
			F_STR("node", made->nodes[0]));
	if (!made)
		forget_concern(o, key);
	return made;
}

static void on_looked(void *user, struct pmem_volume *record, const struct error *error)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *made = NULL;
	bool is_there = record != NULL;
	struct volume_work *w = user;
	struct volume_objects *o = w->owner;

	pmem_volume_free(record);
	if (o && !error)
		made = judge_read(o, w->key, is_there);
	if (made) {
		controller_write_record(o->config.controller, RECORD_CREATE, made, on_written, w);
		return;
	}
	o = work_end(w, error);
	if (o)
		work_queue_run(o->queue);
}

/* The nodes that report @handle and may have one more record because of that. @ret: strv_free(). Return: how
 * many nodes report it. */
static size_t find_reporters(struct volume_objects *o, const char *handle, char ***ret)
{
	struct node_hit *hits;
	size_t n = node_table_find_volume(nodes_of(o), handle, &hits);

	for (size_t i = 0; i < n; i++) {
		if (reported_limit_allows(o->reported, hits[i].node->report.node_id, now_ns(o)))
			strv_add(ret, hits[i].node->report.node_id);
	}
	free(hits);
	return n;
}

static void look_for_record(struct volume_objects *o, const char *key, const char *handle)
{
	CLEANUP(strv_freep) char **nodes = NULL;
	struct volume_key of = key_of(key);

	/* names that a node no longer reports must not fill its queue */
	if (find_reporters(o, handle, &nodes) == 0) {
		forget_concern(o, key);
		fair_turns_forget(o->turns, key);
	}
	if (!nodes || !fair_turns_take(o->turns, find_busiest(o, nodes), key, now_ns(o))) {
		work_queue_end(o->queue, key, WORK_DONE);
		return;
	}
	controller_read_record(o->config.controller, &of, on_looked, work_new(o, key));
}

/* @node_id, if its last report says that it has no copy; otherwise NULL. */
static const struct node *find_absent(
	const struct volume_objects *o, const struct pmem_volume *v, const char *node_id)
{
	const struct node *node = node_table_get(nodes_of(o), node_id);
	const struct volume_report *r;
	size_t at = 0;

	if (!node || !node->live || !node->report.has_inventory)
		return NULL;
	while ((r = node_next_volume(node, &at)) != NULL) {
		if (volume_status_is_copy(v, r))
			return NULL;
	}
	return node;
}

static bool add_holders(struct pmem_volume *v, const struct node_hit *hits, size_t n)
{
	bool changed = false;

	for (size_t i = 0; i < n; i++) {
		if (hits[i].volume->phase != PHASE_ERASING && !hits[i].volume->is_inline)
			changed = pmem_volume_add_node(v, hits[i].node->report.node_id) || changed;
	}
	return changed;
}

/* Nodes that report a copy and are not in the record: damaged ones, which have no name, by handle, and by
 * name under any handle where the record was made of reports. A record of the controller's own calls names
 * all nodes that were asked: what another one says of that name is not believed. */
static bool add_reported(const struct volume_objects *o, struct pmem_volume *v)
{
	struct node_hit *hits;
	size_t n = volume_status_find(v, nodes_of(o), &hits);
	bool changed = add_holders(v, hits, n);

	free(hits);
	if (!v->volume_name || !v->origin)
		return changed;
	n = node_table_find_name(nodes_of(o), v->volume_name, &hits);
	changed = add_holders(v, hits, n) || changed;
	free(hits);
	return changed;
}

/* How long the record is as it is; another version begins the time again. */
static struct concern *note_version(struct volume_objects *o, const char *key, const struct pmem_volume *v)
{
	return volume_concerns_note_version(&o->concerns, key, v->meta.resource_version, now_ns(o));
}

/* Whether no caller expects the volume to exist any more. */
static bool is_deleted(const struct pmem_volume *v)
{
	return v->deleting || v->retained;
}

/* Whether more was asked for than the volume has. */
static bool wants_size(const struct pmem_volume *v)
{
	return v->handle && v->size_bytes > v->capacity_bytes;
}

/* Remove nodes that were asked and have nothing. The last node of a volume that was given out stays, because
 * the volume is missing there. Most nodes reported before the record was written, and a report that changes
 * nothing is not notified: records with such nodes are examined every LOOK_NS. */
static bool drop_absent(struct volume_objects *o, const char *key, struct pmem_volume *v)
{
	size_t n_kept = v->handle && !v->origin && !is_deleted(v) ? 1 : 0;
	struct concern *c = note_version(o, key, v);
	uint64_t settled_ns = c->since_ns + VOLUME_OBJECTS_SETTLED_NS;
	bool waits = strv_len(v->nodes) == 0 || v->retained || wants_size(v);
	bool changed = false;

	for (size_t i = strv_len(v->nodes); i > 0; i--) {
		const struct node *node = find_absent(o, v, v->nodes[i - 1]);

		if (!node)
			continue;
		waits = true;
		if (strv_len(v->nodes) > n_kept && node->registered_ns >= settled_ns)
			changed = pmem_volume_drop_node(v, v->nodes[i - 1]) || changed;
	}
	if (!waits)
		volume_concerns_free(&o->concerns, c);
	return changed;
}

/* The size of the largest copy on @node_id, by what it has reported since @settled_ns. Return: false: it has
 * not reported since. */
static bool read_size(const struct volume_objects *o, const struct pmem_volume *v, const char *node_id,
	uint64_t settled_ns, uint64_t *ret_bytes)
{
	const struct node *node = node_table_get_live(nodes_of(o), node_id);
	const struct volume_report *r;
	size_t at = 0;

	if (!node || !node->report.has_inventory || node->registered_ns < settled_ns)
		return false;
	while ((r = node_next_volume(node, &at)) != NULL) {
		if (volume_status_is_copy(v, r) && r->phase != PHASE_ERASING && r->size_bytes > *ret_bytes)
			*ret_bytes = r->size_bytes;
	}
	return true;
}

/* A growth that was asked for and has not come about is given up when no node can be at it any more. Return:
 * whether @v has changed. */
static bool drop_size(struct volume_objects *o, const char *key, struct pmem_volume *v)
{
	const struct concern *c = find_concern(o, key);
	uint64_t size_bytes = 0;

	if (!c || !wants_size(v) || is_deleted(v))
		return false;
	for (size_t i = 0; i < strv_len(v->nodes); i++) {
		if (!read_size(o, v, v->nodes[i], c->since_ns + VOLUME_OBJECTS_SETTLED_NS, &size_bytes))
			return false;
	}
	if (size_bytes == 0 || size_bytes >= v->size_bytes)
		return false;
	v->size_bytes = size_bytes;
	return true;
}

static bool has_reported(const struct volume_objects *o, const char *node_id)
{
	const struct node *node = node_table_get(nodes_of(o), node_id);

	return node && node->report.has_inventory;
}

/* Whether a node that is shown with a copy has not registered with this controller. */
static bool waits_for_nodes(const struct volume_objects *o, const struct pmem_volume *v)
{
	for (size_t i = 0; i < v->n_copies; i++) {
		const char *node_id = v->copies[i].node;

		if (node_id && !has_reported(o, node_id) &&
			!controller_is_gone(o->config.controller, node_id))
			return true;
	}
	return false;
}

/* Whether nodes of the record may still register with this controller, which has just started: until then
 * another one has shown what there is. */
static bool expects_nodes(const struct volume_objects *o, const struct pmem_volume *v)
{
	if (!controller_in_start_window(o->config.controller))
		return false;
	for (size_t i = 0; i < strv_len(v->nodes); i++) {
		if (!has_reported(o, v->nodes[i]))
			return true;
	}
	return waits_for_nodes(o, v);
}

/* Whether no node has, erases or may have anything of it. */
static bool is_over(const struct volume_objects *o, const char *key, const struct pmem_volume *v)
{
	struct node_hit *hits = NULL;
	size_t n = volume_status_find(v, nodes_of(o), &hits);

	free(hits);
	return n == 0 && !waits_for_nodes(o, v) && !volume_status_is_noted(nodes_of(o), key);
}

/* Whether all nodes of the record of a volume that was given out have said since it has settled that they
 * have no copy. */
static bool is_missed(const struct volume_objects *o, const struct concern *c, const struct pmem_volume *v)
{
	if (!c || !v->handle || v->origin || is_deleted(v) ||
		now_ns(o) < c->since_ns + VOLUME_OBJECTS_SETTLED_NS)
		return false;
	for (size_t i = 0; i < strv_len(v->nodes); i++) {
		const struct node *node = find_absent(o, v, v->nodes[i]);

		if (!node || node->registered_ns < c->since_ns + VOLUME_OBJECTS_SETTLED_NS)
			return false;
	}
	return true;
}

/* A record that has changed meanwhile has another concern, whose claim was not looked for. */
static void take_claim(struct volume_objects *o, const char *key, const struct claim_state *state)
{
	const struct pmem_volume *v = find_record(o, key);
	struct concern *c = find_concern(o, key);

	if (!c || c->looked_ns == 0)
		return;
	if (!state)
		c->looked_ns = 0;
	else
		c->is_unwanted = !state->has_volume && !state->has_claim && !state->is_referenced;
	if (state && v)
		c->is_used = state->is_referenced || (state->handle && str_eq(state->handle, v->handle));
	if (!c->is_unwanted && !c->is_used)
		return;
	work_queue_add(o->queue, key);
	work_queue_run(o->queue);
}

static void on_claim_looked(void *user, const struct claim_state *state, const struct error *error)
{
	struct volume_work *w = user;
	struct volume_objects *o = w->owner;

	(void)error;
	if (o) {
		LIST_REMOVE(w, all);
		take_claim(o, w->key, state);
	}
	free(w->key);
	free(w);
}

/* A look-up reads all claims and may take a minute. It does not count as work on the record, so that many
 * look-ups share one list, and other records do not wait for it. */
static void look_for_claim(struct volume_objects *o, const char *key, const struct pmem_volume *v)
{
	const struct claim_lookup *l = &o->config.lookup;
	uint64_t interval_ns = v->retained ? VOLUME_LOOK_NS : CLAIM_LOOK_NS;
	struct concern *c = find_concern(o, key);

	if (!l->look || str_empty(v->volume_name) || !claim_lookup_finds(v->volume_name))
		return;
	if (c->looked_ns > 0 && now_ns(o) - c->looked_ns < interval_ns)
		return;
	c->looked_ns = now_ns(o);
	l->look(l->self, v->volume_name, v->handle, on_claim_looked, work_new(o, key));
}

/* Not at once: the PersistentVolume with which the volume was deleted may be about to go. */
static void look_for_use(struct volume_objects *o, const char *key, const struct pmem_volume *v)
{
	struct concern *c = find_concern(o, key);

	if (c && c->looked_ns == 0)
		c->looked_ns = now_ns(o);
	else if (c)
		look_for_claim(o, key, v);
}

/* The status of the record is right. */
static void end_update(struct volume_objects *o, const char *key, const struct pmem_volume *v)
{
	const struct concern *c = find_concern(o, key);

	if (str_eq(v->phase, "Retained")) {
		look_for_use(o, key, v);
		work_queue_end(o->queue, key, WORK_DONE);
	} else if (!is_missed(o, c, v)) {
		work_queue_end(o->queue, key, WORK_DONE);
	} else if (c->is_unwanted) {
		log_info("releasing the record of a volume that neither a node nor a claim has",
			F_STR("volume", v->handle));
		write_record(o, key, RECORD_RELEASE, v);
	} else {
		look_for_claim(o, key, v);
		work_queue_end(o->queue, key, WORK_DONE);
	}
}

/* An administrator has made a PersistentVolume for what was retained: it is a volume like any other again. */
static bool take_use(const struct volume_objects *o, const char *key, struct pmem_volume *v)
{
	const struct concern *c = find_concern(o, key);

	if (!v->retained || v->deleting || strv_len(v->nodes) == 0 || !c || !c->is_used)
		return false;
	v->retained = false;
	return true;
}

/* Whether a call may be about to write the record, so that a status would be outdated at once. */
static bool expects_outcome(struct volume_objects *o, const char *key, const struct pmem_volume *v)
{
	bool is_open = v->deleting ? strv_len(v->nodes) > 0 : !v->handle && !v->origin;

	return is_open && now_ns(o) - note_version(o, key, v)->since_ns < CALL_NS;
}

/* Return: false: it is right. */
static bool write_status(struct volume_objects *o, const char *key, const struct pmem_volume *observed)
{
	const struct volume_view view = {.nodes = nodes_of(o),
		.cluster = o->config.controller->config.cluster,
		.judge = o->config.lost ? lost_nodes_judge : NULL,
		.user = o->config.lost};
	CLEANUP(pmem_volume_freep) struct pmem_volume *status = volume_status_new(observed, &view);

	rebound_claims_show(o->config.rebound, status);
	if (pmem_volume_status_equal(status, observed))
		return false;
	write_record(o, key, RECORD_STATUS, status);
	return true;
}

static void update(struct volume_objects *o, const char *key, const struct pmem_volume *observed)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_dup(observed);

	if (reported_record_is_of_other_kind(observed, nodes_of(o))) {
		if (may_log(o))
			log_info("the record of a volume or snapshot is made again as what its node reports",
				F_STR("volume", observed->handle));
		write_record(o, key, RECORD_RELEASE, v);
		return;
	}
	bool added = !v->deleting && add_reported(o, v);
	bool dropped = drop_absent(o, key, v);
	bool sized = drop_size(o, key, v);
	bool used = take_use(o, key, v);
	bool ends = strv_len(v->nodes) == 0 && (is_deleted(v) || !v->handle || v->origin);

	if (ends && is_over(o, key, v)) {
		write_record(o, key, RECORD_RELEASE, v);
		return;
	}
	/* without nodes in the record, reports do not lead to it */
	if (ends)
		(void)volume_concerns_note(&o->concerns, key, now_ns(o));
	bool relabelled = observed->labels_differ && !is_deleted(v);
	if (added || dropped || sized || used || relabelled) {
		write_record(o, key, RECORD_SPEC, v);
		return;
	}
	if (expects_nodes(o, observed)) {
		(void)volume_concerns_note(&o->concerns, key, now_ns(o));
		work_queue_end(o->queue, key, WORK_DONE);
		return;
	}
	if (!write_status(o, key, observed))
		end_update(o, key, observed);
}

/* A call of this process works on it. While that waits for a copy, the status shows how far that is; the call
 * reads the record again if it has another version when it writes it. */
static void show_call(struct volume_objects *o, const char *key, const struct pmem_volume *observed)
{
	if (!observed || !volume_status_is_filling(observed, nodes_of(o)) || !write_status(o, key, observed))
		work_queue_end(o->queue, key, WORK_DONE);
}

static void work(void *user, const char *key)
{
	struct volume_objects *o = user;
	const struct pmem_volume *observed = find_record(o, key);
	const struct concern *c = find_concern(o, key);

	bool is_called = leaves_to_call(o, key);

	if (observed && expects_outcome(o, key, observed)) {
		work_queue_end(o->queue, key, WORK_DONE);
	} else if (is_called) {
		show_call(o, key, observed);
	} else if (observed) {
		update(o, key, observed);
	} else if (c && c->handle) {
		look_for_record(o, key, c->handle);
	} else {
		forget_concern(o, key);
		work_queue_end(o->queue, key, WORK_DONE);
	}
}

static void note_reported(struct volume_objects *o, const char *key, const char *handle)
{
	volume_concerns_note_handle(&o->concerns, key, handle, now_ns(o));
}

static void look_at_volume(struct volume_objects *o, const struct volume_report *v)
{
	struct volume_key key = volume_key_of_handle(v->id);

	if (v->is_inline)
		return;
	if (v->phase != PHASE_ERASING && v->phase != PHASE_CREATING && !find_record(o, key.hex))
		note_reported(o, key.hex, v->id);
	work_queue_add(o->queue, key.hex);
}

static void look_at_records(struct volume_objects *o, const char *node_id)
{
	const struct volume_key *keys;
	size_t n = records_by_node_get(o->by_node, node_id, &keys);

	for (size_t i = 0; i < n; i++)
		work_queue_add(o->queue, keys[i].hex);
}

/* The records of what it has, and of what it should have. */
static void look_at_node(struct volume_objects *o, const struct node *node)
{
	const struct volume_report *v;
	size_t at = 0;

	while ((v = node_next_volume(node, &at)) != NULL)
		look_at_volume(o, v);
	look_at_records(o, node->report.node_id);
}

static const struct pmem_volume *find_by_handle(void *user, const char *handle)
{
	struct volume_key key = volume_key_of_handle(handle);

	return find_record(user, key.hex);
}

static void node_changed(void *user, const struct node *node)
{
	struct volume_objects *o = user;

	if (!informer_is_synced(o->objects))
		return;
	volume_events_reported(&o->config.events, node, find_by_handle, o, now_ns(o));
	look_at_node(o, node);
	work_queue_run(o->queue);
}

static void synced(void *user)
{
	struct volume_objects *o = user;
	const struct node *const *nodes;
	size_t n = node_table_nodes(nodes_of(o), &nodes);

	for (size_t i = 0; i < n; i++)
		look_at_node(o, nodes[i]);
	work_queue_run(o->queue);
}

static void object_changed(void *user, const char *name, const void *old, const void *new)
{
	const struct pmem_volume *before = old;
	const struct pmem_volume *after = new;
	struct volume_objects *o = user;
	struct volume_key key = {0};

	if (strlen(name) <= PMEM_VOLUME_KEY_LEN || name[PMEM_VOLUME_KEY_LEN] != '.')
		return;
	memcpy(key.hex, name, PMEM_VOLUME_KEY_LEN);
	volume_events_changed(&o->config.events, before, after, now_ns(o));
	records_by_node_note(o->by_node, &key, before ? before->nodes : NULL, after ? after->nodes : NULL);
	reported_limit_note(o->reported, &key, before, after);
	if (after)
		recorded_volumes_note(&o->recorded, after);
	if (before && !after && before->handle && !before->deleting)
		note_reported(o, key.hex, before->handle);
	work_queue_add(o->queue, key.hex);
	if (informer_is_synced(o->objects))
		work_queue_run(o->queue);
}

void volume_objects_node_changed(struct volume_objects *o, const char *node_id)
{
	if (!informer_is_synced(o->objects))
		return;
	look_at_records(o, node_id);
	work_queue_run(o->queue);
}

void volume_objects_claim_changed(struct volume_objects *o, const char *volume_name)
{
	char key[PMEM_VOLUME_KEY_LEN + 1];

	pmem_volume_key(volume_name, key);
	work_queue_add(o->queue, key);
	if (informer_is_synced(o->objects))
		work_queue_run(o->queue);
}

static void expect_node(void *user, const char *node_id)
{
	lost_nodes_expect(user, node_id);
}

static void look_at_all(struct volume_objects *o)
{
	const struct concern *c;

	o->looked_ns = now_ns(o);
	LIST_FOREACH(c, &o->concerns.all, all)
	{
		work_queue_add(o->queue, c->key);
	}
	if (o->config.lost)
		records_by_node_each(o->by_node, expect_node, o->config.lost);
}

void volume_objects_tick(struct volume_objects *o)
{
	if (!informer_is_synced(o->objects))
		return;
	if (now_ns(o) - o->looked_ns >= LOOK_NS)
		look_at_all(o);
	fair_turns_run(o->turns, now_ns(o));
	work_queue_run(o->queue);
}

struct each_record {
	void (*fn)(void *user, const struct pmem_volume *record);
	void *user;
};

static void pass_record(void *user, const void *object)
{
	const struct each_record *each = user;

	each->fn(each->user, object);
}

static void each_record(void *self, void (*fn)(void *user, const struct pmem_volume *record), void *user)
{
	const struct volume_objects *o = self;
	struct each_record each = {fn, user};

	if (informer_is_synced(o->objects))
		informer_each(o->objects, pass_record, &each);
}

struct record_list volume_objects_records(struct volume_objects *o)
{
	return (struct record_list){.each = each_record, .self = o};
}

const char *volume_objects_recorded_until(
	struct volume_objects *o, const struct node *node, const char *shown)
{
	if (!informer_is_synced(o->objects))
		return shown;
	return recorded_volumes_until(&o->recorded, node, shown, find_by_handle, o);
}

size_t volume_objects_pending(const struct volume_objects *o)
{
	return work_queue_pending(o->queue) + fair_turns_waiting(o->turns);
}

/* Frees fields of an object in the informer's memory, which has one object per volume. The fields are not
 * needed there: before the duty writes or deletes an object, it reads it again from the API. */
static void trim_record(void *object)
{
	struct pmem_volume *v = object;

	free(TAKE_PTR(v->meta.uid));
	free(TAKE_PTR(v->driver));
	if (!v->origin)
		free(TAKE_PTR(v->meta.created));
}

static void turn_came(void *user, const char *key)
{
	struct volume_objects *o = user;

	work_queue_add(o->queue, key);
}

struct volume_objects *volume_objects_new(const struct volume_objects_config *config)
{
	static const struct informer_events events = {.changed = object_changed, .synced = synced};
	struct volume_objects *o = x_calloc(1, sizeof(*o));

	o->config = *config;
	o->selector = x_asprintf(PMEM_LABEL_DRIVER "=%s", config->driver_name);
	o->kind = kube_kind_pmem_volumes;
	o->kind.label_selector = o->selector;
	o->kind.trim = trim_record;
	volume_concerns_init(&o->concerns);
	o->by_node = records_by_node_new();
	o->reported = reported_limit_new(&config->limit);
	LIST_INIT(&o->works);
	const struct work_queue_config queue = {.work = work,
		.user = o,
		.max_running = MAX_RUNNING,
		.interval_ns = INTERVAL_NS,
		.now_ns = queue_now};
	o->queue = work_queue_new(&queue);
	const struct fair_turns_config turns = {.common = config->writes,
		.share_per_second = VOLUME_OBJECTS_SHARE,
		.share_burst = VOLUME_OBJECTS_SHARE_BURST,
		.due = turn_came,
		.user = o};
	o->turns = fair_turns_new(&turns);
	node_table_watch(config->controller->config.nodes, node_changed, o);
	o->objects = informer_new(config->client, &o->kind, &events, o);
	return o;
}

static void release_lists(struct volume_objects *o)
{
	struct volume_work *w;

	LIST_FOREACH(w, &o->works, all)
	{
		w->owner = NULL;
	}
	volume_concerns_done(&o->concerns);
	records_by_node_free(o->by_node);
	reported_limit_free(o->reported);
	fair_turns_free(o->turns);
}

void volume_objects_free(struct volume_objects *o)
{
	if (!o)
		return;
	node_table_unwatch(o->config.controller->config.nodes, node_changed, o);
	informer_free(o->objects);
	release_lists(o);
	work_queue_free(o->queue);
	free(o->selector);
	free(o);
}

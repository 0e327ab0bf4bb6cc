/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/capacity_private.h"

#define TIMEOUT_MS 10000
#define BODY_MAX   8192

/* The watch brings what we wrote within that time, or has lost its connection. */
#define OWN_WRITE_NS (10 * NS_PER_S)

void capacity_slot_free(struct capacity_slot *slot)
{
	kube_request_cancel(slot->request);
	free(slot->class_name);
	free(slot->node_id);
	free(slot->object);
	free(slot->version);
	free(slot);
}

void capacity_stray_free(struct capacity_stray *stray)
{
	kube_request_cancel(stray->request);
	free(stray->object);
	free(stray);
}

void capacity_enqueue(struct capacity_slot *slot)
{
	struct capacity_objects *c = slot->owner;

	if (slot->queued)
		return;
	slot->queued = true;
	slot->next = NULL;
	*c->queue_end = slot;
	c->queue_end = &slot->next;
}

void capacity_stray_add(struct capacity_objects *c, const char *object)
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

static void add_amounts(struct json_writer *w, const struct class_room *room)
{
	char text[24];

	/* Quantities that are numbers may lose digits on their way; strings do not. */
	snprintf(text, sizeof(text), "%ju", (uintmax_t)room->available_bytes);
	json_key_str(w, "capacity", text);
	snprintf(text, sizeof(text), "%ju", (uintmax_t)room->maximum_bytes);
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

void capacity_pump(struct capacity_objects *c)
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

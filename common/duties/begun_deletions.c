/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/begun_deletions.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "controller/controller_private.h"

/* How often all records are looked at. */
#define WALK_NS (60 * NS_PER_S)
/* After a failure, or while a volume is still in use. */
#define AGAIN_NS (300 * NS_PER_S)
#define CALL_NS  (60 * NS_PER_S)
/* Calls at a time: others come first. */
#define RUNNING_MAX 4
/* One node may hold up this many. */
#define RUNNING_OF_NODE_MAX 2
/* Requests, whose handles have limits. */
#define ARENA_BYTES (64U << 10)

/* A volume whose record says that it is being deleted. */
struct deletion {
	struct name_link link; /* by handle */
	LIST_ENTRY(deletion) all;
	struct begun_deletions *owner; /* NULL: it has gone while this was busy */
	struct arena *arena;           /* of the call that runs; NULL: none does */
	char *handle;
	char *name;
	char **nodes; /* strv: of the record, as the last walk found it before the call */
	uint64_t due_ns;
	uint64_t absent_ns; /* when neither PersistentVolume nor claim was found first; 0: never */
	bool is_kept;  /* one was found: its caller repeats the call, or an administrator wants the volume */
	bool is_ready; /* a node of the record is live */
	bool present;  /* seen by the walk that runs */
	bool busy;
	bool has_failed;
	Csi__V1__DeleteVolumeRequest request;
};

struct begun_deletions {
	struct begun_deletions_config config;
	struct name_index index;
	LIST_HEAD(, deletion) list;
	struct deletion *running[RUNNING_MAX];
	size_t n_running;
	uint64_t now_ns;
	uint64_t walked_ns; /* 0: never */
};

struct begun_deletions *begun_deletions_new(const struct begun_deletions_config *config)
{
	struct begun_deletions *b = x_calloc(1, sizeof(*b));

	b->config = *config;
	name_index_init(&b->index);
	LIST_INIT(&b->list);
	return b;
}

/* It is in no list any more. */
static void deletion_free(struct deletion *d)
{
	arena_free(d->arena);
	free(d->handle);
	free(d->name);
	strv_free(d->nodes);
	free(d);
}

static void take_out(struct begun_deletions *b, struct deletion *d)
{
	LIST_REMOVE(d, all);
	name_index_remove(&b->index, &d->link);
}

void begun_deletions_free(struct begun_deletions *b)
{
	struct deletion *d;

	if (!b)
		return;
	while ((d = LIST_FIRST(&b->list)) != NULL) {
		take_out(b, d);
		d->owner = NULL;
		if (!d->busy)
			deletion_free(d);
	}
	name_index_done(&b->index);
	free(b);
}

static void drop_running(struct begun_deletions *b, const struct deletion *d)
{
	size_t i = 0;

	while (b->running[i] != d)
		i++;
	b->running[i] = b->running[--b->n_running];
}

/* Return: false: the owner has gone, and @d with it. */
static bool end_busy(struct deletion *d)
{
	if (!d->owner) {
		deletion_free(d);
		return false;
	}
	arena_free(TAKE_PTR(d->arena));
	d->busy = false;
	drop_running(d->owner, d);
	d->due_ns = d->owner->now_ns + AGAIN_NS;
	return true;
}

static void finish(void *user, struct error *error)
{
	CLEANUP(error_freep) struct error *why = error;
	struct deletion *d = user;

	if (!end_busy(d))
		return;
	if (!why || !d->has_failed)
		d->owner->config.ended(d->owner->config.user, d->handle, why);
	d->has_failed = why != NULL;
}

static bool is_wanted(void *user)
{
	const struct deletion *d = user;

	return d->owner != NULL;
}

/* The same call as before. */
static void repeat_call(struct deletion *d)
{
	struct controller *c = d->owner->config.controller;

	d->arena = arena_new(ARENA_BYTES);
	const struct waiter waiter = {.arena = d->arena,
		.deadline_ns = controller_now_ns(c) + CALL_NS,
		.finish = finish,
		.is_wanted = is_wanted,
		.user = d};

	if (!d->has_failed)
		log_info("continuing a deletion that was begun, and that no caller repeats",
			F_STR("volume", d->handle));
	csi__v1__delete_volume_request__init(&d->request);
	d->request.volume_id = d->handle;
	controller_delete(c, &waiter, &d->request);
}

static void on_looked(void *user, const struct claim_state *state, const struct error *error)
{
	struct deletion *d = user;

	if (!d->owner || error) {
		(void)end_busy(d);
		return;
	}
	uint64_t now_ns = d->owner->now_ns;
	d->is_kept = d->is_kept || state->has_volume || state->is_referenced || state->has_claim;
	if (d->absent_ns == 0)
		d->absent_ns = now_ns;
	if (!d->is_kept && now_ns - d->absent_ns >= BEGUN_DELETIONS_AFTER_NS)
		repeat_call(d);
	else
		(void)end_busy(d);
}

static void begin(struct begun_deletions *b, struct deletion *d)
{
	d->busy = true;
	b->running[b->n_running++] = d;
	b->config.lookup.look(b->config.lookup.self, d->name, d->handle, on_looked, d);
}

/* A node that hangs keeps its calls until their deadlines, and others go on meanwhile. */
static bool has_room(const struct begun_deletions *b, const struct deletion *d)
{
	for (size_t i = 0; i < strv_len(d->nodes); i++) {
		unsigned n = 0;

		for (size_t at = 0; at < b->n_running; at++)
			n += strv_contains(b->running[at]->nodes, d->nodes[i]);
		if (n >= RUNNING_OF_NODE_MAX)
			return false;
	}
	return true;
}

static bool has_live_node(const struct begun_deletions *b, const struct pmem_volume *record)
{
	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		if (controller_live_node(b->config.controller, record->nodes[i]))
			return true;
	}
	return false;
}

static void see_record(void *user, const struct pmem_volume *record)
{
	struct begun_deletions *b = user;
	struct name_link *link;
	struct deletion *d;

	if (!record->deleting || record->snapshot || !record->handle || strv_len(record->nodes) == 0)
		return;
	if (!record->volume_name || !claim_lookup_finds(record->volume_name))
		return;
	link = name_index_first(&b->index, record->handle);
	d = link ? OWNER_OF(link, struct deletion, link) : NULL;
	if (!d) {
		d = x_calloc(1, sizeof(*d));
		*d = (struct deletion){.owner = b,
			.handle = x_strdup(record->handle),
			.name = x_strdup(record->volume_name),
			.due_ns = b->now_ns + BEGUN_DELETIONS_AFTER_NS};
		LIST_INSERT_HEAD(&b->list, d, all);
		name_index_add(&b->index, &d->link, d->handle);
	}
	d->present = true;
	d->is_ready = has_live_node(b, record);
	if (!d->busy && !strv_eq(d->nodes, record->nodes)) {
		strv_free(d->nodes);
		d->nodes = strv_dup(record->nodes);
	}
}

static void drop_absent(struct begun_deletions *b)
{
	for (struct deletion *d = LIST_FIRST(&b->list), *next; d; d = next) {
		next = LIST_NEXT(d, all);
		if (!d->present && !d->busy) {
			take_out(b, d);
			deletion_free(d);
			continue;
		}
		d->present = false;
	}
}

void begun_deletions_tick(struct begun_deletions *b, uint64_t now_ns)
{
	struct deletion *d;

	b->now_ns = now_ns;
	if (b->walked_ns == 0 || now_ns - b->walked_ns >= WALK_NS) {
		b->walked_ns = now_ns;
		b->config.records.each(b->config.records.self, see_record, b);
		drop_absent(b);
	}
	LIST_FOREACH(d, &b->list, all)
	{
		if (b->n_running == RUNNING_MAX)
			break;
		if (!d->busy && !d->is_kept && d->is_ready && now_ns >= d->due_ns && has_room(b, d))
			begin(b, d);
	}
}

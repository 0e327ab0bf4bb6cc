/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_table.h - what the controller knows of each node: its last report, whether its lease runs, and what
 * the controller itself has learned since by the replies of that node.
 *
 * A node that has registered once stays in the table when its lease ends, until it is forgotten: it may still
 * own volumes. Each change gets the next generation. What is handed out is borrowed until the next change of
 * the table. Nothing is looked up by walking over nodes or volumes. Threads: one owner. Nothing blocks or
 * reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "volume/report.h"

/* How long what a reply said is believed against reports, which may have been made before. */
#define NODE_NOTE_NS 30000000000ULL

#define NODE_HASH_LEN 8

/* One registration; the strings are never NULL. */
struct node_report {
	char *node_id;
	char *endpoint;
	char *device_mode;
	char *version;
	char *boot_id;
	char *instance;    /* of the driver's run; "": it has given none */
	uint64_t lease_ms; /* 0: for ever */
	struct pool_report *pools;
	size_t n_pools;
	struct volume_report *volumes; /* only with has_inventory */
	size_t n_volumes;
	bool has_inventory;
	bool bound; /* its certificate says node-<id> */
};

/* What a reply of the node said of one volume. */
struct node_note {
	struct volume_report volume;
	bool deleted; /* only volume.id is of use then */
	uint64_t until_ns;
};

struct node {
	struct node_report report; /* as the node sent it */
	struct node_note *notes;
	size_t n_notes;
	bool live;
	uint64_t registered_ns;  /* the last report */
	uint64_t lease_until_ns; /* of a live node; DEADLINE_NONE: for ever */
	uint64_t generation;     /* of the last change; notes and reports that change nothing do not count */
	char hash[NODE_HASH_LEN + 1]; /* the part of volume IDs that names the node (volume/id.h) */
};

struct node_hit {
	const struct node *node;
	const struct volume_report *volume;
};

/** node_report_done() - release what it points to. node_report_free(): a report on the heap and all of it;
 * NULL is allowed. */
void node_report_done(struct node_report *r);
void node_report_free(struct node_report *r);
DEFINE_CLEANUP(struct node_report *, node_report_free);

/** node_report_equal() - whether both say the same, lease times aside. */
bool node_report_equal(const struct node_report *a, const struct node_report *b);

struct node_table;

/** node_table_new() - an empty table. Return: never NULL; node_table_free(). */
struct node_table *node_table_new(void);
void node_table_free(struct node_table *t);
DEFINE_CLEANUP(struct node_table *, node_table_free);

/** node_table_put() - the node of @report (taken) is live, and all that was known of it is replaced, except
 * for notes that @report may be too old to show. @now_ns: any clock that goes forward, the same in all calls
 */
void node_table_put(struct node_table *t, struct node_report *report, uint64_t now_ns);

/** node_table_end() - the lease of @node_id has ended; an unknown node is ignored. */
void node_table_end(struct node_table *t, const char *node_id);

/** node_table_forget() - @node_id never was; ends its lease first. An unknown node is ignored. */
void node_table_forget(struct node_table *t, const char *node_id);

/** node_table_expire() - end the leases that are over, forget the notes that are. */
void node_table_expire(struct node_table *t, uint64_t now_ns);

/** node_table_get() - the node, live or not. Return: NULL if @node_id is not in the table. */
const struct node *node_table_get(const struct node_table *t, const char *node_id);

/** node_table_nodes() - all nodes, live or not, sorted by ID. Return: how many. */
size_t node_table_nodes(const struct node_table *t, const struct node *const **ret);

/** node_table_find_hash() - the nodes, live or not, with that @hash: eight hex digits. @ret: sorted by ID;
 * caller frees the array; NULL without any. Return: how many. */
size_t node_table_find_hash(const struct node_table *t, const char *hash, const struct node ***ret);

/**
 * node_table_find_volume() - where the volume with that @id is.
 * node_table_find_name() - where volumes are that were made for @name.
 * @ret: sorted by node; caller frees the array; NULL without any
 *
 * On nodes live or not, as far as reports and notes say: volumes noted as made are there, volumes noted as
 * deleted are not. Return: how many.
 */
size_t node_table_find_volume(const struct node_table *t, const char *id, struct node_hit **ret);
size_t node_table_find_name(const struct node_table *t, const char *name, struct node_hit **ret);

/** node_next_volume() - walk over the volumes of @node, notes respected; *@at is 0 at first. Return: NULL
 * after the last. */
const struct volume_report *node_next_volume(const struct node *node, size_t *at);

/**
 * node_table_note_created() - @node_id said that it has @v (copied): believed until it reports it.
 * node_table_note_deleted() - it said that it has no @id: believed until it reports so.
 *
 * For NODE_NOTE_NS at most. An unknown node is ignored.
 */
void node_table_note_created(
	struct node_table *t, const char *node_id, const struct volume_report *v, uint64_t now_ns);
void node_table_note_deleted(struct node_table *t, const char *node_id, const char *id, uint64_t now_ns);

/** Called when @node was added, its lease ended or began again, or its report or notes have changed. It must
 * not change the table. Before a node is forgotten, it is called with that node as not live. */
typedef void (*node_changed_fn)(void *user, const struct node *node);

/** node_table_watch() - call @fn from inside each change, until node_table_unwatch() with the same two. */
void node_table_watch(struct node_table *t, node_changed_fn fn, void *user);
void node_table_unwatch(struct node_table *t, node_changed_fn fn, void *user);

/** node_table_generation() - the number of the last change. */
uint64_t node_table_generation(const struct node_table *t);

/** node_table_instance() - a UUID for which generations count; another one after a node was forgotten. */
const char *node_table_instance(const struct node_table *t);

/** node_table_changes() - nodes whose generation is above @since, oldest change first. @ret: caller frees the
 * array; NULL without any. Return: how many. */
size_t node_table_changes(const struct node_table *t, uint64_t since, const struct node ***ret);

/** node_capacity() - of all pools of @node together, by its last report. */
struct capacity node_capacity(const struct node *node);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_table.h - the state of each node as the controller knows it: its last report, its lease, and what its
 * replies to calls have shown since then.
 *
 * A node that has registered once stays in the table when its lease ends, until it is removed, because it may
 * still own volumes. Returned pointers are borrowed until the next change of the table. Look-ups use indexes
 * and never walk over all nodes or volumes. Threads: one owner. Nothing blocks or reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "volume/report.h"

/* How long a reply takes precedence over reports, which may have been made before it. */
#define NODE_NOTE_NS 30000000000ULL

#define NODE_HASH_LEN 8

/* The largest amount that a node can have: the physical address space of the architectures with persistent
 * memory has at most 52 bits. Source: Intel SDM volume 3A, 4.1.4 (MAXPHYADDR); Arm ARM, FEAT_LPA. */
#define NODE_BYTES_MAX (1ULL << 52)

/* One registration; the strings are never NULL. */
struct node_report {
	char *node_id;
	char *endpoint;
	char *device_mode;
	char *version;
	char *boot_id;
	char *instance;  /* of the driver's run; "": not given */
	uint64_t number; /* of the report, see registry.proto; 0: not given */
	uint64_t lease_ms;
	struct pool_report *pools;
	size_t n_pools;
	struct volume_report *volumes; /* without has_inventory: of an earlier report, or none */
	size_t n_volumes;
	bool has_inventory;
	/* Handles in the report that name another node; strv, NULL: none. They prove nothing: the node had
	 * another name once, or it lies. */
	char **foreign;
	bool bound;                /* its certificate is for node-<id> */
	bool is_at_endpoint;       /* it came from the address that is its endpoint */
	bool serves_node_volumes;  /* registry.proto */
	bool serves_expansion;     /* likewise */
	bool serves_modification;  /* likewise */
	bool makes_kata_volumes;   /* likewise */
	bool makes_direct_volumes; /* likewise */
	bool knows_durability;     /* likewise */
};

/* The state of one volume as a reply of the node has shown it. */
struct node_note {
	struct volume_report volume;
	uint64_t reported_bytes; /* size of the volume in the report; 0: it is not there, or not made */
	bool deleted;            /* only volume.id is set then */
	uint64_t until_ns;
};

struct node {
	struct node_report report; /* as the node sent it */
	struct node_note *notes;
	size_t n_notes;
	bool live;
	uint64_t registered_ns;       /* the last report */
	uint64_t lease_until_ns;      /* of a live node */
	char hash[NODE_HASH_LEN + 1]; /* the part of volume IDs that names the node (volume/id.h) */
};

struct node_hit {
	const struct node *node;
	const struct volume_report *volume;
};

/** node_hit_is_noted() - whether the volume is known by a reply of the node, which its report does not show
 * yet.
 */
bool node_hit_is_noted(const struct node_hit *hit);

/** node_report_makes() - whether the node makes volumes that need all of @needs (params_needs()). */
bool node_report_makes(const struct node_report *r, unsigned needs);

/** node_report_done() - release what it points to. node_report_free(): destroy a report on the heap; NULL is
 * allowed. */
void node_report_done(struct node_report *r);
void node_report_free(struct node_report *r);
DEFINE_CLEANUP(struct node_report *, node_report_free);

/** node_report_equal() - whether both are equal except for lease times. */
bool node_report_equal(const struct node_report *a, const struct node_report *b);

struct node_table;

/** node_table_new() - an empty table. Return: never NULL; node_table_free(). */
struct node_table *node_table_new(void);
void node_table_free(struct node_table *t);
DEFINE_CLEANUP(struct node_table *, node_table_free);

/** node_table_put() - the node of @report (taken) is live. The report replaces everything that was known
 * about it, except for notes about changes that may be newer than @report. @now_ns: any clock that goes
 * forward, the same in all calls
 */
void node_table_put(struct node_table *t, struct node_report *report, uint64_t now_ns);

/** node_table_end() - the lease of @node_id has ended; an unknown node is ignored. */
void node_table_end(struct node_table *t, const char *node_id);

/** node_table_forget() - remove @node_id; ends its lease first. An unknown node is ignored. */
void node_table_forget(struct node_table *t, const char *node_id);

/** node_table_expire() - end the leases and drop the notes whose time is over. */
void node_table_expire(struct node_table *t, uint64_t now_ns);

/** node_table_get() - the node, live or not. Return: NULL if @node_id is not in the table. */
const struct node *node_table_get(const struct node_table *t, const char *node_id);

/** node_table_get_live() - the node. Return: NULL if it is not in the table, or not live. */
const struct node *node_table_get_live(const struct node_table *t, const char *node_id);

/** node_table_nodes() - all nodes, live or not, sorted by ID. Return: how many. */
size_t node_table_nodes(const struct node_table *t, const struct node *const **ret);

/** node_table_find_hash() - the nodes, live or not, with that @hash: eight hex digits. @ret: sorted by ID;
 * caller frees the array; NULL without any. Return: how many. */
size_t node_table_find_hash(const struct node_table *t, const char *hash, const struct node ***ret);

/**
 * node_table_find_volume() - find the nodes that have the volume with that @id. node_table_find_name(): those
 * that have volumes made for @name.
 * @ret: sorted by node; caller frees the array; NULL without any
 *
 * Nodes need not be live. Reports and notes are used: volumes that are noted as created are included, volumes
 * that are noted as deleted are not. Return: how many.
 */
size_t node_table_find_volume(const struct node_table *t, const char *id, struct node_hit **ret);
size_t node_table_find_name(const struct node_table *t, const char *name, struct node_hit **ret);

/** node_next_volume() - walk over the volumes of @node, including notes; *@at is 0 at first. Return: NULL
 * after the last. */
const struct volume_report *node_next_volume(const struct node *node, size_t *at);

/**
 * node_table_note_created() - @node_id has replied that it has @v (copied): used until it reports the volume,
 * and not at all if its last report has it.
 * node_table_note_grown(): it has replied that @id, which it has reported, has @size_bytes: used until its
 * report shows at least that size.
 * node_table_note_deleted(): it has replied that it does not have @id: used until its report shows that.
 *
 * For NODE_NOTE_NS at most. An unknown node is ignored, and of grown volumes also one that is not known on
 * that node, or that is so large already.
 */
void node_table_note_created(
	struct node_table *t, const char *node_id, const struct volume_report *v, uint64_t now_ns);
void node_table_note_grown(
	struct node_table *t, const char *node_id, const char *id, uint64_t size_bytes, uint64_t now_ns);
void node_table_note_deleted(struct node_table *t, const char *node_id, const char *id, uint64_t now_ns);

/** Called when @node was added, its lease ended or began again, or its report or notes have changed. It must
 * not change the table. Before a node is removed, it is called with that node as not live. */
typedef void (*node_changed_fn)(void *user, const struct node *node);

/** node_table_watch() - call @fn during each change, until node_table_unwatch() with the same arguments. */
void node_table_watch(struct node_table *t, node_changed_fn fn, void *user);
void node_table_unwatch(struct node_table *t, node_changed_fn fn, void *user);

/** node_capacity() - the capacity of all pools of @node together, from its last report. @sync: for volumes
 * that need MAP_SYNC (durability_needs_sync()). */
struct capacity node_capacity(const struct node *node, bool sync);

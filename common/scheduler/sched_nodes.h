/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_nodes.h - the scheduler extender's copy of the controller's node table.
 *
 * A node whose lease has ended stays for a while, as stale: its volumes and its size are still known. What is
 * handed out is borrowed until the next change. Threads: one owner. Nothing blocks or reads a clock.
 */
#pragma once

#include "base/span.h"
#include "nodes/node_table.h"
#include "pmem/best_fit.h"
#include "pmem/layout.h"

/* Larger than any volume: what is asked for beyond it fits nowhere. */
#define SCHED_SIZE_MAX (1ULL << 50)

/* What its report says of a pool that a decision looks at. */
struct sched_pool {
	struct capacity capacity;  /* its total alone, where nothing else that it says makes sense */
	struct layout_rules rules; /* unit_bytes 0: nothing that it says makes sense */
	bool has_rules;            /* volumes are namespaces, which need room for what the kernel adds */
};

struct sched_node {
	const struct node_report *report;
	struct best_fit_extent *bins; /* what is free, by pool */
	struct sched_pool *pools;     /* as many as the report has; in one piece of memory with the bins */
	size_t n_bins;
	size_t n_pools;
	uint64_t unit_bytes; /* of each pool, a power of two; 0: it is not one, they differ, or have rules */
	size_t index;        /* small; not another node's before this one is forgotten */
	bool stale;          /* the lease has ended, or the controller that reported it has gone */
};

struct sched_nodes;

/** sched_nodes_new() - an empty table. Return: never NULL; sched_nodes_free(). */
struct sched_nodes *sched_nodes_new(void);
void sched_nodes_free(struct sched_nodes *nodes);
DEFINE_CLEANUP(struct sched_nodes *, sched_nodes_free);

/** sched_nodes_put() - the node of @report (taken) is live, and this is all that is known of it. */
void sched_nodes_put(struct sched_nodes *nodes, struct node_report *report);

/** sched_nodes_end() - the lease of @node_id has ended; an unknown node is ignored. */
void sched_nodes_end(struct sched_nodes *nodes, const char *node_id);

/** sched_nodes_begin_table() - all that there is follows, as of another run of the controller.
 * sched_nodes_end_table(): nodes that were not put since then are stale; those that were stale before are
 * forgotten. */
void sched_nodes_begin_table(struct sched_nodes *nodes);
void sched_nodes_end_table(struct sched_nodes *nodes);

/** sched_nodes_sweep() - forget nodes that have been stale since the call before. */
void sched_nodes_sweep(struct sched_nodes *nodes);

/** sched_nodes_get() - the node called @name, stale or not. Return: NULL if it is not known. */
const struct sched_node *sched_nodes_get(const struct sched_nodes *nodes, struct span name);

/** sched_nodes_find() - the same for @n names at a time, which costs less. @ret: one per name */
void sched_nodes_find(
	const struct sched_nodes *nodes, const struct span *names, size_t n, const struct sched_node **ret);

/** sched_nodes_limit() - above the index of each node. */
size_t sched_nodes_limit(const struct sched_nodes *nodes);

/** sched_nodes_at() - the node with that @index, or NULL. */
const struct sched_node *sched_nodes_at(const struct sched_nodes *nodes, size_t index);

/** sched_node_volume() - the volume made for @name in the inventory of @node, or NULL. One that is being
 * erased is none. */
const struct volume_report *sched_node_volume(
	const struct sched_nodes *nodes, const struct sched_node *node, const char *name);

/** sched_nodes_have_volume() - whether that is so of any node. */
bool sched_nodes_have_volume(const struct sched_nodes *nodes, const char *name);

/** sched_node_raw_bytes() - what a volume takes from a piece of free space in that @pool of @node. Return:
 * UINT64_MAX: by the node's own account it fits nowhere there. */
uint64_t sched_node_raw_bytes(const struct sched_node *node, size_t pool, uint64_t size_bytes, bool sector);

/** sched_node_most_bytes() - the same in the pool where it takes most, whether it fits or not. @size_bytes:
 * at most SCHED_SIZE_MAX */
uint64_t sched_node_most_bytes(const struct sched_node *node, uint64_t size_bytes, bool sector);

/* Both are called from inside of a change, which is complete then. */
struct sched_nodes_watcher {
	void (*changed)(void *user, const struct sched_node *node); /* its report, not whether it is stale */
	void (*forgotten)(void *user, size_t index);
	void *user;
};

/** sched_nodes_watch() - tell @w (copied), which is the only one, of changes. */
void sched_nodes_watch(struct sched_nodes *nodes, const struct sched_nodes_watcher *w);

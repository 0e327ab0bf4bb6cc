/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_nodes.h - the nodes that have persistent memory, as their PmemNode objects show them.
 *
 * Returned pointers are borrowed until the next change. Threads: one owner. Nothing blocks or reads a clock.
 */
#pragma once

#include "base/cleanup.h"
#include "base/span.h"
#include "pmem/best_fit.h"
#include "pmem/capacity.h"
#include "pmem/namespace_layout.h"
#include "resources/pmem_node.h"

/* Larger than any volume: a larger request fits nowhere. Sums of very many do not overflow. */
#define SCHED_SIZE_MAX (1ULL << 46)

/* A volume that is to be made on a node. */
struct sched_item {
	uint64_t size_bytes;
	bool sector; /* usage=FileIO */
	bool sync;   /* it needs MAP_SYNC */
};

/* The properties of a pool that decisions need. */
struct sched_pool {
	struct capacity capacity;  /* only its total is set if the rest is invalid */
	struct layout_rules rules; /* unit_bytes 0: what is shown of it is invalid */
	bool only_fsync;           /* the kernel refuses MAP_SYNC there */
	bool has_rules; /* volumes are namespaces, which also need space for the kernel's metadata */
};

struct sched_node {
	const char *name;
	char *const *pool_names;         /* strv, by pool */
	struct best_fit_extent *extents; /* free extents, by pool */
	struct sched_pool *pools;        /* in one block of memory with the extents */
	size_t n_extents;
	size_t n_pools;
	uint64_t unit_bytes;  /* of each pool, a power of two; 0: it is not one, they differ, or have rules */
	uint64_t report;      /* number of the report that is shown */
	size_t index;         /* small; not reused before this node is removed */
	bool differs_in_sync; /* the kernel refuses MAP_SYNC in some of its pools, and not in others */
	bool stale;           /* its driver does not report to the controller */
};

struct sched_nodes;

/** sched_nodes_new() - an empty table. Return: never NULL; sched_nodes_free(). */
struct sched_nodes *sched_nodes_new(void);
void sched_nodes_free(struct sched_nodes *nodes);
DEFINE_CLEANUP(struct sched_nodes *, sched_nodes_free);

/** sched_nodes_put() - the object of a node is @n (copied), whose node is set. */
void sched_nodes_put(struct sched_nodes *nodes, const struct pmem_node *n);

/** sched_nodes_remove() - the object of the node called @name is gone; an unknown node is ignored. */
void sched_nodes_remove(struct sched_nodes *nodes, const char *name);

/** sched_nodes_get() - the node called @name. Return: NULL if it is not known. */
const struct sched_node *sched_nodes_get(const struct sched_nodes *nodes, struct span name);

/** sched_nodes_find() - the same for @n names at a time, which costs less. @ret: one per name */
void sched_nodes_find(
	const struct sched_nodes *nodes, const struct span *names, size_t n, const struct sched_node **ret);

/** sched_nodes_limit() - a number greater than the index of each node. */
size_t sched_nodes_limit(const struct sched_nodes *nodes);

/** sched_nodes_at() - the node with that @index, or NULL. */
const struct sched_node *sched_nodes_at(const struct sched_nodes *nodes, size_t index);

/** sched_node_raw_bytes() - the bytes that @item takes from a free extent of @pool of @node. Return:
 * UINT64_MAX: according to the node it does not fit there. */
uint64_t sched_node_raw_bytes(const struct sched_node *node, size_t pool, const struct sched_item *item);

/** sched_node_most_bytes() - the same for the pool in which it takes most, whether it fits or not.
 * @size_bytes: at most SCHED_SIZE_MAX */
uint64_t sched_node_most_bytes(const struct sched_node *node, uint64_t size_bytes, bool sector);

/* Both are called during a change, when the table is already consistent. */
struct sched_nodes_watcher {
	void (*changed)(void *user, const struct sched_node *node);
	void (*removed)(void *user, size_t index);
	void *user;
};

/** sched_nodes_watch() - call @w (copied), the only watcher, on changes. */
void sched_nodes_watch(struct sched_nodes *nodes, const struct sched_nodes_watcher *w);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_lists.h - the objects of the API server that are compared, as they were read, and indexes of them.
 * Threads: one owner at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kube/objects/objects.h"
#include "resources/pmem_node.h"
#include "resources/pmem_volume.h"

/* Objects of one kind. */
struct cluster_list {
	void **objects; /* each begins with a struct kube_meta */
	size_t n;
};

/* The scope of the comparison; the texts are borrowed. */
struct cluster_scope {
	const char *driver_name;
	const char *namespace;    /* of the CSIStorageCapacity objects */
	char *const *node_labels; /* label selectors, strv: the driver is to run on a Node that one selects */
	int64_t now_s;            /* the time, in seconds since 1970; 0: not known, nothing is too old */
};

/* Lists of one driver. Each is named after the struct of its objects. */
struct cluster_lists {
	struct cluster_scope scope;
	struct cluster_list pvs; /* struct kube_volume, of this driver */
	struct cluster_list claims;
	struct cluster_list classes;
	struct cluster_list nodes;     /* those with the label of the driver */
	struct cluster_list chosen;    /* Nodes that one of scope.node_labels selects */
	struct cluster_list csi_nodes; /* of those Nodes that have no PmemNode */
	struct cluster_list capacities;
	struct cluster_list pmem_nodes;
	struct cluster_list pmem_volumes;
};

/** cluster_lists_done() - release all objects; safe on a zeroed one. */
void cluster_lists_done(struct cluster_lists *l);

/** cluster_list_add() - append @object, which is taken over. */
void cluster_list_add(struct cluster_list *l, void *object);

struct cluster_slot {
	const char *key;
	const void *object;
};

/* Objects by a text of theirs. */
struct cluster_index {
	struct cluster_slot *slots;
	size_t n;
};

/** cluster_index_make() - sort the objects of @l by @key_of(), which returns a text of the object or NULL: it
 * is left out. Return: borrows from @l; cluster_index_done(). */
struct cluster_index cluster_index_make(const struct cluster_list *l,
	const char *(*key_of)(const void *object, const void *user), const void *user);

/** cluster_index_get() - an object with @key, or NULL. */
const void *cluster_index_get(const struct cluster_index *x, const char *key);

/** cluster_index_done() - release the index, not the objects; safe on a zeroed one. */
void cluster_index_done(struct cluster_index *x);

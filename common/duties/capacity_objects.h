/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity_objects.h - one CSIStorageCapacity object per node and StorageClass of ours, from which
 * kube-scheduler learns where a volume can be made.
 *
 * Only the leader has this duty. The capacity that a node reports is written at once, by server-side apply;
 * while a request for an object runs, only the latest amounts wait. A node whose lease has ended, or whose
 * Node has the taint out-of-service, has a capacity of 0; the objects of the former are deleted when its Node
 * has been deleted, or after CAPACITY_GONE_NS. Objects of nodes that have not registered are not changed for
 * the same time after the duty began. The name of an object follows from node and class; objects of other
 * names, which earlier releases created, are deleted when they have a successor. Objects have no owner: a new
 * Deployment adopts them by their labels. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "kube/informer.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"
#include "pacing/bucket.h"

#define CAPACITY_GONE_NS (600 * 1000000000ULL)

struct capacity_objects;

/* Strings are borrowed. */
struct capacity_objects_config {
	struct kube_client *client;
	const char *namespace; /* where the objects are */
	const char *driver_name;
	struct node_table *nodes;
	struct informer *classes; /* its changes are passed on by capacity_objects_class_changed() */
	const struct cluster_nodes *cluster;
	bool remove_foreign; /* also objects that external-provisioner made */
	/* Upper limit for the capacity that an object shows: the capacity of @node_id, for volumes that need
	 * MAP_SYNC (@sync) or not, that the scheduler extender knows. When the capacity in an object grows,
	 * kube-scheduler tries pods again and asks the extender, which must know of the free space by then.
	 * Return: false: there is no such limit. NULL: there never is. */
	bool (*shown)(void *user, const char *node_id, bool sync, struct capacity *ret);
	void *shown_user;
	struct bucket *writes;          /* charged with each write; NULL: no other writes depend on them */
	uint64_t (*now_ns)(void *user); /* the clock of the node table */
	void *user;
};

/** capacity_objects_new() - begin to watch and to write. Return: never NULL; capacity_objects_free(),
 * before the informer of classes and the client are freed. */
struct capacity_objects *capacity_objects_new(const struct capacity_objects_config *config);

/** capacity_objects_free() - requests that run are given up. NULL is allowed. */
void capacity_objects_free(struct capacity_objects *c);
DEFINE_CLEANUP(struct capacity_objects *, capacity_objects_free);

/** capacity_objects_class_changed() - for the informer of classes: its changed(). */
void capacity_objects_class_changed(struct capacity_objects *c);

/** capacity_objects_node_changed() - cluster_nodes.h or lost_nodes.h has named @node_id, or others know more
 * of its capacity now. */
void capacity_objects_node_changed(struct capacity_objects *c, const char *node_id);

/** capacity_objects_tick() - to be called each second. */
void capacity_objects_tick(struct capacity_objects *c);

/** capacity_objects_pending() - how many objects are not as they should be, for metrics. */
size_t capacity_objects_pending(const struct capacity_objects *c);

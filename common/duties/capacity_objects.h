/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity_objects.h - one CSIStorageCapacity object per node and StorageClass of ours, from which
 * kube-scheduler learns where a volume can be made.
 *
 * What a node reports is written at once; while a request for an object runs, only the latest amounts wait.
 * A node whose lease has ended has nothing to give; its objects go when its Node has gone, or after ten
 * minutes. Objects of nodes that have not registered are left as they are for as long as that after the
 * start. Of several objects for one node and class one is kept. Only the leader writes, and updates carry the
 * resourceVersion that was read. Objects have no owner: a new Deployment takes them over by their labels.
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "controller/possible_owners.h"
#include "kube/informer.h"
#include "nodes/node_table.h"

#define CAPACITY_GONE_NS (600 * 1000000000ULL)

struct capacity_objects;

/* Strings are borrowed. */
struct capacity_objects_config {
	struct kube_client *client;
	const char *namespace; /* where the objects are */
	const char *driver_name;
	struct node_table *nodes;
	struct informer *classes; /* its changes are passed on by capacity_objects_class_changed() */
	struct possible_owners owners;
	bool remove_foreign;            /* also objects that external-provisioner made */
	uint64_t (*now_ns)(void *user); /* the clock of the node table */
	void *user;
};

/** capacity_objects_new() - begin to watch; nothing is written. Return: never NULL; capacity_objects_free(),
 * before the informer of classes and the client are freed. */
struct capacity_objects *capacity_objects_new(const struct capacity_objects_config *config);

/** capacity_objects_free() - requests that run are given up. NULL is allowed. */
void capacity_objects_free(struct capacity_objects *c);
DEFINE_CLEANUP(struct capacity_objects *, capacity_objects_free);

/** capacity_objects_lead() - begin or end to write. */
void capacity_objects_lead(struct capacity_objects *c, bool leading);

/** capacity_objects_class_changed() - for the informer of classes: its changed(). */
void capacity_objects_class_changed(struct capacity_objects *c, const char *name);

/** capacity_objects_tick() - to be called each second. */
void capacity_objects_tick(struct capacity_objects *c);

/** capacity_objects_pending() - how many objects are not as they should be, for metrics. */
size_t capacity_objects_pending(const struct capacity_objects *c);

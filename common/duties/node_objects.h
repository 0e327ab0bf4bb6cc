/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_objects.h - one PmemNode object per node, which shows what the node has reported
 * (resources/pmem_node.h).
 *
 * Only the leader has this duty. An object is written when what it shows has changed, at most every
 * NODE_OBJECTS_INTERVAL_NS, and never for a heartbeat alone. So is an object whose volumes are not all
 * recorded any more (recorded_volumes.h). If only the time changes until which they are recorded, the object
 * is written with the look at all nodes, a few objects at a time. A node whose lease has ended becomes
 * Ready=Unknown; so does one that has not registered with this controller NODE_OBJECTS_START_NS after the
 * duty began. The object of such a node is deleted when the node has not registered for NODE_OBJECTS_GONE_NS
 * and the cluster has neither its Node nor its driver, unless it shows volumes, also such as are being
 * erased. All times are those of this process's clock, never those that others wrote. Fields of an object
 * that another program has changed are overwritten; an object with another spec, which cannot be changed, is
 * deleted. A deleted object is made again with the next look at all nodes, once a minute. Threads: the
 * loop's; nothing blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/client.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"
#include "pacing/bucket.h"

#define NODE_OBJECTS_INTERVAL_NS (5 * NS_PER_S)
#define NODE_OBJECTS_START_NS    (90 * NS_PER_S)
/* How long a volume is named as new. */
#define NODE_OBJECTS_NEW_NS  (120 * NS_PER_S)
#define NODE_OBJECTS_GONE_NS (3600 * NS_PER_S)

struct node_objects;

/* All borrowed. */
struct node_objects_config {
	struct kube_client *client;
	const char *driver_name;
	struct node_table *nodes;
	const struct cluster_nodes *cluster;
	/* Called when the watch shows an object of @node_id that was made or changed; NULL: not needed. */
	void (*shown)(void *user, const char *node_id);
	void *shown_user;
	/* Returns until when the volumes of @node are recorded, as volume_objects_recorded_until(). Without
	 * this function objects keep the time that they show. */
	const char *(*recorded)(void *user, const struct node *node, const char *shown);
	void *recorded_user;
	struct bucket
		*writes; /* charged with each write, which does not wait: each node has one object, written
			  * every NODE_OBJECTS_INTERVAL_NS at most; NULL: no other writes depend on them */
	uint64_t (*now_ns)(void *user); /* the clock of the node table; NULL: clock_ns() */
	void *user;
};

/** node_objects_new() - begin to watch and to write. Return: never NULL; node_objects_free(), before client
 * and node table. */
struct node_objects *node_objects_new(const struct node_objects_config *config);

/** node_objects_free() - requests that run are given up. NULL is allowed. */
void node_objects_free(struct node_objects *o);
DEFINE_CLEANUP(struct node_objects *, node_objects_free);

/** node_objects_tick() - to be called each second. */
void node_objects_tick(struct node_objects *o);

/** node_objects_capacity() - what the object of @node_id, as the watch has it, offers: nothing without an
 * object, while its condition Ready is not True, and while it shows an earlier report than the last one: the
 * same space may have been taken and given back since. @sync: for volumes that need MAP_SYNC. Return: false:
 * objects cannot be written at the moment, so that they say nothing about what others know. */
bool node_objects_capacity(
	const struct node_objects *o, const char *node_id, bool sync, struct capacity *ret);

/** node_objects_pending() - how many objects are not as they should be, for metrics. */
size_t node_objects_pending(const struct node_objects *o);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_release.h - releases claims whose node is out of service or was removed, so that their pods start
 * elsewhere with a new volume. The old volume and its PersistentVolume stay.
 *
 * Only the user of a claim can say that its pods need no data of the volume, by the annotation
 * CLAIM_RELEASE_ANNOTATION, a duration. When the Node of the volume has had the taint out-of-service, or has
 * not existed, for that long, and its driver has not registered, then the PersistentVolume gets the reclaim
 * policy Retain, the pods of that node that use the claim are deleted, and at last the claim; each change
 * carries the version or the UID of what was read. PersistentVolume and Node are read live, every 30 s, while
 * the node is not registered. The time is measured by this process: another leader begins again, and so does
 * a look after a longer gap. Only volumes are released whose handle names the node, and a node ID is taken
 * for the name of the Node, as in all manifests. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/informer.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"

#define CLAIM_RELEASE_ANNOTATION "pmem-csi.intel.com/release-after"

struct claim_release;

/* All borrowed. */
struct claim_release_config {
	struct kube_client *client;
	const char *driver_name;
	const struct node_table *nodes;
	const struct cluster_nodes *cluster;
	const struct informer *claims;
	/* An Event on @claim, whose strings are borrowed for the call. */
	void (*tell)(void *user, const struct kube_meta *claim, const char *reason, const char *message,
		uint64_t now_ns);
	void *user;
};

/** claim_release_new() - Return: never NULL; claim_release_free(), before client and informer. */
struct claim_release *claim_release_new(const struct claim_release_config *config);

/** claim_release_free() - requests that run are given up; what was begun is continued by the next leader.
 * NULL is allowed. */
void claim_release_free(struct claim_release *r);
DEFINE_CLEANUP(struct claim_release *, claim_release_free);

/** claim_release_tick() - to be called every few seconds by the one controller that leads, when all nodes
 * have had the time to register. @now_ns: any clock that goes forward, the same in all calls */
void claim_release_tick(struct claim_release *r, uint64_t now_ns);

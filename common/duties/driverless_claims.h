/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverless_claims.h - moves PVCs away from nodes where their volume will not be made: the annotation
 * volume.kubernetes.io/selected-node is removed, and kube-scheduler chooses again.
 *
 * That is done for claims of our driver that are not bound and whose node has neither our driver (it is not
 * registered here, nor in the CSINode) nor the labels of one of the terms of the node selector, for two
 * minutes (driverless_claim_rules.h). The change carries the claim's resourceVersion: a claim that has
 * changed since is not touched. CSINode and Node are read live, only for nodes that claims wait for, every 30
 * s. A request that fails is repeated after a back-off (kube/work_queue.h), a look at a node not before the
 * 30 s are over. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "duties/node_terms.h"
#include "kube/informer.h"
#include "nodes/node_table.h"

struct driverless_claims;

/* All borrowed. */
struct driverless_claims_config {
	struct kube_client *client;
	const char *driver_name;
	const struct node_terms *node_selector;
	const struct node_table *nodes;
	const struct informer *classes;
	const struct informer *claims;
};

/** driverless_claims_new() - Return: never NULL; driverless_claims_free(), before informers and client. */
struct driverless_claims *driverless_claims_new(const struct driverless_claims_config *config);

/** driverless_claims_free() - NULL is allowed. */
void driverless_claims_free(struct driverless_claims *d);
DEFINE_CLEANUP(struct driverless_claims *, driverless_claims_free);

/** driverless_claims_tick() - to be called every few seconds by the one controller that leads. @now_ns: any
 * clock that goes forward, the same in all calls */
void driverless_claims_tick(struct driverless_claims *d, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rescheduler.h - moves PVCs away from nodes where nobody will make their volume: the annotation
 * volume.kubernetes.io/selected-node is removed, and kube-scheduler chooses again.
 *
 * That is done for claims of our driver that are not bound and whose node has neither our driver (it is not
 * registered here, nor in the CSINode) nor all labels of the node selector, for two minutes
 * (reschedule_rules.h). The change carries the claim's resourceVersion: a claim that has changed since is not
 * touched. CSINode and Node are read live, only for nodes that claims wait for, every 30 s. Threads: the
 * loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strmap.h"
#include "kube/informer.h"
#include "nodes/node_table.h"

struct rescheduler;

/* All borrowed. */
struct rescheduler_config {
	struct kube_client *client;
	const char *driver_name;
	const struct strmap *node_selector; /* empty: no node has the labels */
	const struct node_table *nodes;
	const struct informer *classes;
	const struct informer *claims;
};

/** rescheduler_new() - Return: never NULL; rescheduler_free(), before informers and client. */
struct rescheduler *rescheduler_new(const struct rescheduler_config *config);

/** rescheduler_free() - NULL is allowed. */
void rescheduler_free(struct rescheduler *r);
DEFINE_CLEANUP(struct rescheduler *, rescheduler_free);

/** rescheduler_tick() - to be called every few seconds by the one controller that leads. @now_ns: any clock
 * that goes forward, the same in all calls */
void rescheduler_tick(struct rescheduler *r, uint64_t now_ns);

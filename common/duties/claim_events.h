/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_events.h - tells with Events on PVCs why their volumes cannot be made: there is no live node where
 * they fit.
 *
 * An unbound claim of our driver gets an Event when it has waited for some seconds, another one after three
 * minutes if what there is to tell has changed, and after half an hour if not. When CreateVolume fails,
 * external-provisioner posts the Event, with our error message. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"

struct claim_events;

/* All borrowed. */
struct claim_events_config {
	const char *driver_name;
	const struct node_table *nodes;
	const struct cluster_nodes *cluster;
	const struct informer *classes;
	const struct informer *claims;
	/* @claim: a struct kube_claim; its meta, too, is borrowed for the call only */
	void (*tell)(void *user, const struct kube_meta *claim, const char *message, uint64_t now_ns);
	void *user;
};

/** claim_events_new() - Return: never NULL; claim_events_free(). */
struct claim_events *claim_events_new(const struct claim_events_config *config);

/** claim_events_free() - NULL is allowed. */
void claim_events_free(struct claim_events *e);
DEFINE_CLEANUP(struct claim_events *, claim_events_free);

/** claim_events_tick() - to be called every few seconds by the one controller that leads, when all nodes have
 * had the time to register. @now_ns: any clock that goes forward, the same in all calls */
void claim_events_tick(struct claim_events *e, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trouble_events.h - tells with Events on Nodes and PVCs what nodes report of themselves: devices of volumes
 * that are not there, state files that cannot be read, volumes with which something is wrong, pools that lack
 * a device.
 *
 * Trouble is reported when it has lasted for some seconds, again after three minutes if what there is to tell
 * has changed, and after half an hour if not; of a node with many such volumes the Node's Event names the
 * first one, and PVCs get Events for eight volumes of a node and 64 in all, unless their class is of another
 * driver. Nodes have no permission at the API server, so that the controller writes for them. Threads: the
 * loop's; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "kube/informer.h"
#include "kube/object.h"
#include "nodes/node_table.h"

struct trouble_events;

/* All borrowed. */
struct trouble_events_config {
	const char *driver_name;
	const struct node_table *nodes;
	const struct informer *classes;
	const struct informer *claims;
	/* @reason: one word in CamelCase; @claim: borrowed for the call only */
	void (*tell_node)(
		void *user, const char *node_id, const char *reason, const char *message, uint64_t now_ns);
	void (*tell_claim)(void *user, const struct kube_meta *claim, const char *reason, const char *message,
		uint64_t now_ns);
	void *user;
};

/** trouble_events_new() - Return: never NULL; trouble_events_free(). */
struct trouble_events *trouble_events_new(const struct trouble_events_config *config);

/** trouble_events_free() - NULL is allowed. */
void trouble_events_free(struct trouble_events *e);
DEFINE_CLEANUP(struct trouble_events *, trouble_events_free);

/** trouble_events_tick() - to be called every few seconds by the one controller that leads. @now_ns: any
 * clock that goes forward, the same in all calls */
void trouble_events_tick(struct trouble_events *e, uint64_t now_ns);

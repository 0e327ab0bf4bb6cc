/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_events.h - Events on the claim of a volume: one when the volume becomes unreachable, one when it is
 * mounted without the MAP_SYNC that its class promises, and one when its writers were stopped so that it
 * could be copied.
 *
 * That a volume is unreachable follows from a change of its record, so that neither a new leader nor a write
 * that is repeated gives another one. The next Event comes after the volume was reachable in between. A pause
 * is taken from the report of a node with a volume that it has reported before, and is not in the report
 * before; pauses that a controller finds when it starts were reported by the leader before. Threads: the
 * loop's; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "kube/informer.h"
#include "kube/object.h"
#include "nodes/node_table.h"
#include "resources/pmem_volume.h"

/* All borrowed. */
struct volume_events {
	const struct informer *claims;
	/* @reason: one word in CamelCase; @claim: borrowed for the call only */
	void (*tell_claim)(void *user, const struct kube_meta *claim, const char *reason, const char *message,
		uint64_t now_ns);
	/* likewise, of what needs no attention */
	void (*inform_claim)(void *user, const struct kube_meta *claim, const char *reason,
		const char *message, uint64_t now_ns);
	void *user;
};

/* A node may stop the writers of several volumes for one group snapshot. */
#define VOLUME_EVENTS_PAUSES_MAX 32

/** volume_events_changed() - the record @before is @after now; either may be NULL. */
void volume_events_changed(const struct volume_events *e, const struct pmem_volume *before,
	const struct pmem_volume *after, uint64_t now_ns);

/** volume_events_reported() - @node has changed, as its table says. At most VOLUME_EVENTS_PAUSES_MAX pauses
 * in one report cause an Event. @find: the record of the volume with that handle, borrowed; NULL: no such
 * record */
void volume_events_reported(const struct volume_events *e, const struct node *node,
	const struct pmem_volume *(*find)(void *user, const char *handle), void *user, uint64_t now_ns);

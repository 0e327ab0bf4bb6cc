/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_events.h - one Event on the claim of a volume when the volume becomes unreachable.
 *
 * It follows from a change of the volume's record, so that neither a new leader nor a write that is repeated
 * gives another one. The next Event comes after the volume was reachable in between. Threads: the loop's;
 * nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "kube/informer.h"
#include "kube/object.h"
#include "resources/pmem_volume.h"

/* All borrowed. */
struct volume_events {
	const struct informer *claims;
	/* @reason: one word in CamelCase; @claim: borrowed for the call only */
	void (*tell_claim)(void *user, const struct kube_meta *claim, const char *reason, const char *message,
		uint64_t now_ns);
	void *user;
};

/** volume_events_changed() - the record @before is @after now; either may be NULL. */
void volume_events_changed(const struct volume_events *e, const struct pmem_volume *before,
	const struct pmem_volume *after, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphans.h - finds copies of volumes that no caller was given, and deletes those that certainly are such.
 *
 * A copy is an orphan when a reply got lost and the call was not repeated: external-provisioner forgets
 * claims whose volumes are being made when it restarts. It is deleted when all of that holds: a record that
 * was not made of reports names its node, so that our controller asked for it; it was never staged or
 * published, which the node checks once more; its name is `pvc-<uid>`; no PV of any name has its handle; and
 * either the PV of that name is another volume (of a cache volume: does not list this node), or, read twice
 * at least five minutes apart, there is neither that PV nor a PVC of that uid, nor has this leader seen such
 * a PV while the node was connected. A PV that has gone without a call to delete its volume was removed by
 * hand, or with all others when etcd was restored; a record that is missing since then is made of reports.
 * Anything else that fits no PV is only reported, once. Nothing is done about a name while a call for it is
 * under way. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "controller/controller.h"
#include "duties/claim_lookup.h"

struct orphans;

struct orphans_observer {
	/* @error: NULL: it is deleted; otherwise deleting it failed and is tried again */
	void (*deleted)(void *user, const char *node_id, const char *volume_id, const struct error *error);
	/* No PV is this volume, but it may hold data. @why: what keeps it from being deleted */
	void (*kept)(void *user, const char *node_id, const char *volume_id, const char *why);
	void *user;
};

/* The records of volumes, as an informer has them. */
struct record_list {
	/* Calls @fn for each record, in any order. */
	void (*each)(void *self, void (*fn)(void *user, const struct pmem_volume *record), void *user);
	void *self;
};

struct orphans_config {
	struct controller *controller; /* borrowed, and its node table, records and caller */
	struct record_list records;
	struct claim_lookup lookup;
	struct orphans_observer observer;
};

/** orphans_new() - Return: never NULL. orphans_free(): answers that come later are ignored; before the
 * controller is freed. */
struct orphans *orphans_new(const struct orphans_config *config);
void orphans_free(struct orphans *l);
DEFINE_CLEANUP(struct orphans *, orphans_free);

/** orphans_tick() - look at what is due; to be called every few seconds by the one controller that leads.
 * @now_ns: the clock of the controller */
void orphans_tick(struct orphans *l, uint64_t now_ns);

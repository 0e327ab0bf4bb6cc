/* SPDX-License-Identifier: Apache-2.0 */
/*
 * begun_deletions.h - finishes deletions of volumes that a call has begun and that no caller repeats any
 * more.
 *
 * DeleteVolume writes into the record that the volume is being deleted before it asks a node. If the node is
 * away, external-provisioner repeats the call for as long as the PersistentVolume exists; when its finalizers
 * are removed by hand meanwhile, no caller does. The leader then repeats the call itself: a node of the
 * record is back, the record has had the mark for BEGUN_DELETIONS_AFTER_NS, and two look-ups that are at
 * least as far apart found neither PersistentVolume nor claim. A volume for which one was found is left alone
 * until another replica leads, since an administrator may have kept it: a PersistentVolume that is made again
 * is absent for a moment. At most half of the few calls that run at a time go to one node. Snapshots are
 * left to their callers, and to cluster check, since the cluster need not show their objects, and so are
 * volumes whose name external-provisioner does not give. Nothing is deleted without that mark. Threads: the
 * loop's; nothing blocks.
 */
#pragma once

#include "duties/orphans.h"

/* External-provisioner repeats its calls every five minutes at the latest. */
#define BEGUN_DELETIONS_AFTER_NS 600000000000ULL

struct begun_deletions;

/* Borrowed, but the observer is copied. */
struct begun_deletions_config {
	struct controller *controller;
	struct record_list records;
	struct claim_lookup lookup;
	/* @error: NULL: it is done; otherwise it is tried again. Called for the first failure only. */
	void (*ended)(void *user, const char *handle, const struct error *error);
	void *user;
};

/** begun_deletions_new() - Return: never NULL; begun_deletions_free(), before the controller is freed: what
 * runs ends on its own. */
struct begun_deletions *begun_deletions_new(const struct begun_deletions_config *config);
void begun_deletions_free(struct begun_deletions *b);
DEFINE_CLEANUP(struct begun_deletions *, begun_deletions_free);

/** begun_deletions_tick() - look at what is due; to be called every few seconds by the one controller that
 * leads. @now_ns: the clock of the controller */
void begun_deletions_tick(struct begun_deletions *b, uint64_t now_ns);

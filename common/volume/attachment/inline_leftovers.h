/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inline_leftovers.h - finds inline volumes whose pod is gone, and keeps for how long that has been so.
 *
 * kubelet unpublishes a volume before it removes the folder of its pod (pkg/kubelet/kubelet_volumes.go,
 * cleanupOrphanedPodDirs()). A node that was replaced or whose kubelet has lost its folder never calls
 * NodeUnpublishVolume, and no controller knows inline volumes. Decision: docs/decisions/119. Threads: one at
 * a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount_table;
struct volume_record;

/**
 * inline_is_left_over() - whether @r is an inline volume that is mounted at none of its targets, and whose
 * pods have no folder any more.
 *
 * Blocks on kubelet's folder. Return: also false where that cannot be known: no target is recorded or it is
 * not in kubelet's layout (<kubelet's folder>/pods/<UID>/volumes/...); the folder of pods is absent, cannot
 * be read or is empty, as where kubelet's disk is not mounted.
 */
bool inline_is_left_over(const struct volume_record *r, const struct mount_table *mounts);

/* The inline volumes that were seen to be left over, each with the time of the first look. All zero at first.
 */
struct inline_leftovers {
	struct inline_leftover *list;
	size_t n;
};

/** inline_leftovers_done() - release what @l owns. */
void inline_leftovers_done(struct inline_leftovers *l);

/** inline_leftovers_look() - note whether the volume @id is left over now. @now_ns: clock_ns(). Return:
 * whether it was at an earlier look, too, and has been for ten minutes. */
bool inline_leftovers_look(struct inline_leftovers *l, const char *id, bool is_left_over, uint64_t now_ns);

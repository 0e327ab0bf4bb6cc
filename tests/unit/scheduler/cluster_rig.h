/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_rig.h - nodes and pods for tests of what is reserved and decided.
 */
#pragma once

#include "scheduler/reservations.h"

#define RIG_GIB (1ULL << 30)

struct cluster_rig {
	struct sched_nodes *nodes;
	struct reservations *reservations;
	size_t n_changed;
};

/** cluster_rig_open() - no nodes, no reservations. cluster_rig_close(): release. */
void cluster_rig_open(struct cluster_rig *rig);
void cluster_rig_close(struct cluster_rig *rig);

/** cluster_rig_node() - @name has regions with @a_gib and, unless 0, @b_gib free, as of its report with the
 * number @report. Return: borrowed until the next change of it. */
const struct sched_node *cluster_rig_node(
	struct cluster_rig *rig, const char *name, uint64_t a_gib, uint64_t b_gib, uint64_t report);

/** cluster_rig_place() - an object says that the volume @name of @gib GiB is made on @node. */
void cluster_rig_place(struct cluster_rig *rig, const char *name, const char *node, uint64_t gib);

/** cluster_rig_get() - the node called @name. */
const struct sched_node *cluster_rig_get(const struct cluster_rig *rig, const char *name);

/** rig_needs() - @n volumes called @name, then @name with a number, of the @gib. Return:
 * pod_needs_done(). */
struct pod_needs rig_needs(const char *name, size_t n, const uint64_t *gib);

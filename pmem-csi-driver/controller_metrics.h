/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_metrics.h - what the controller serves for monitoring besides metrics.h: its nodes, its requests
 * to the API server, and whether it leads. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "base/buf.h"
#include "kube/client.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"

struct controller_metrics;

/** controller_metrics_new() - Return: never NULL; controller_metrics_free(). */
struct controller_metrics *controller_metrics_new(const struct node_table *nodes);

/** controller_metrics_free() - NULL is allowed. */
void controller_metrics_free(struct controller_metrics *m);

/** controller_metrics_observer() - for the client of the API server; valid as long as @m. */
struct kube_observer controller_metrics_observer(struct controller_metrics *m);

struct controller_metrics_kube {
	bool leads;
	size_t capacities_pending; /* capacity objects that have to be written */
	size_t nodes_pending;      /* PmemNodes that have to be written */
	size_t volumes_pending;    /* PmemVolumes */
	const struct cluster_nodes *cluster;
};

/** controller_metrics_add() - append all. */
void controller_metrics_add(const struct controller_metrics *m, const struct controller_metrics_kube *kube,
	uint64_t now_ns, struct buf *out);

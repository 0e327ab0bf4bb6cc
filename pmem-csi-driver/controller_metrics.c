/* SPDX-License-Identifier: Apache-2.0 */
#include "controller_metrics.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "kube/request_counts.h"

struct controller_metrics {
	const struct node_table *nodes;
	struct kube_request_counts *requests;
};

static void add_states(struct buf *out, const struct node *const *nodes, size_t n)
{
	const struct prometheus_label live[] = {{"state", "live"}, {0}};
	const struct prometheus_label gone[] = {{"state", "gone"}, {0}};
	size_t n_live = 0;

	for (size_t i = 0; i < n; i++)
		n_live += nodes[i]->live;
	prometheus_family(out, "pmem_nodes", PROMETHEUS_GAUGE,
		"Nodes that have registered since the controller started; gone: those whose lease has ended.");
	prometheus_sample(out, "pmem_nodes", live, (double)n_live);
	prometheus_sample(out, "pmem_nodes", gone, (double)(n - n_live));
}

enum per_node { NODE_TOTAL, NODE_AVAILABLE, NODE_MAXIMUM, NODE_VOLUMES, NODE_AGE };

static double value_of(const struct node *node, enum per_node what, uint64_t now_ns)
{
	const struct capacity c = node_capacity(node, /* sync= */ false);

	switch (what) {
	case NODE_TOTAL:
		return (double)c.total_bytes;
	case NODE_AVAILABLE:
		return (double)c.available_bytes;
	case NODE_MAXIMUM:
		return (double)c.max_volume_bytes;
	case NODE_VOLUMES:
		return (double)node->report.n_volumes;
	case NODE_AGE:
		break;
	}
	return (double)(now_ns - node->registered_ns) / (double)NS_PER_S;
}

/* The table keeps nodes for ever, but a node that was removed from the cluster will not report again. */
static bool is_removed(const struct node *node, const struct controller_metrics_kube *kube)
{
	return !node->live && !cluster_nodes_have(kube->cluster, node->report.node_id);
}

static void add_per_node(struct buf *out, const struct node *const *nodes, size_t n,
	const struct controller_metrics_kube *kube, uint64_t now_ns)
{
	static const struct {
		const char *name;
		const char *help;
		bool also_gone;
	} families[] = {
		[NODE_TOTAL] = {"pmem_node_amount_managed", "Amount of PMEM on the node that is managed.",
			false},
		[NODE_AVAILABLE] = {"pmem_node_amount_available",
			"Remaining amount of PMEM on the node that can be used for new volumes.", false},
		[NODE_MAXIMUM] = {"pmem_node_amount_max_volume_size",
			"The size of the largest volume that can be created on the node.", false},
		[NODE_VOLUMES] = {"pmem_node_volumes", "Volumes that the node has reported.", false},
		[NODE_AGE] = {"pmem_registry_age_seconds",
			"Time since the node has registered last, unless it was removed from the cluster.",
			true},
	};

	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		prometheus_family(out, families[f].name, PROMETHEUS_GAUGE, families[f].help);
		for (size_t i = 0; i < n; i++) {
			const struct prometheus_label labels[] = {{"node", nodes[i]->report.node_id}, {0}};

			if (nodes[i]->live || (families[f].also_gone && !is_removed(nodes[i], kube)))
				prometheus_sample(out, families[f].name, labels,
					value_of(nodes[i], (enum per_node)f, now_ns));
		}
	}
}

static void add_kube(struct buf *out, const struct controller_metrics_kube *kube)
{
	prometheus_family(out, "pmem_leader", PROMETHEUS_GAUGE, "1: this controller is the leader.");
	prometheus_sample(out, "pmem_leader", NULL, kube->leads);
	prometheus_family(out, "pmem_capacity_objects_pending", PROMETHEUS_GAUGE,
		"CSIStorageCapacity objects that are out of date; 0 unless leading.");
	prometheus_sample(out, "pmem_capacity_objects_pending", NULL, (double)kube->capacities_pending);
	prometheus_family(out, "pmem_node_objects_pending", PROMETHEUS_GAUGE,
		"PmemNodes that are out of date; 0 unless leading.");
	prometheus_sample(out, "pmem_node_objects_pending", NULL, (double)kube->nodes_pending);
	prometheus_family(out, "pmem_volume_objects_pending", PROMETHEUS_GAUGE,
		"PmemVolumes that are out of date; 0 unless leading.");
	prometheus_sample(out, "pmem_volume_objects_pending", NULL, (double)kube->volumes_pending);
}

void controller_metrics_add(const struct controller_metrics *m, const struct controller_metrics_kube *kube,
	uint64_t now_ns, struct buf *out)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(m->nodes, &nodes);

	add_states(out, nodes, n);
	add_per_node(out, nodes, n, kube, now_ns);
	add_kube(out, kube);
	kube_request_counts_add(m->requests, out);
}

struct controller_metrics *controller_metrics_new(const struct node_table *nodes)
{
	struct controller_metrics *m = x_calloc(1, sizeof(*m));

	m->nodes = nodes;
	m->requests = kube_request_counts_new();
	return m;
}

void controller_metrics_free(struct controller_metrics *m)
{
	if (!m)
		return;
	kube_request_counts_free(m->requests);
	free(m);
}

struct kube_observer controller_metrics_observer(struct controller_metrics *m)
{
	return kube_request_counts_observer(m->requests);
}

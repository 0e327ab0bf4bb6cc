/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/cluster_rig.h"

#include "base/mem.h"
#include "unit/scheduler/pmem_nodes.h"

static void on_changed(void *user)
{
	struct cluster_rig *rig = user;

	rig->n_changed++;
}

void cluster_rig_open(struct cluster_rig *rig)
{
	*rig = (struct cluster_rig){.nodes = sched_nodes_new()};
	rig->reservations = reservations_new(rig->nodes, on_changed, rig);
}

void cluster_rig_close(struct cluster_rig *rig)
{
	reservations_free(rig->reservations);
	sched_nodes_free(rig->nodes);
}

const struct sched_node *cluster_rig_node(
	struct cluster_rig *rig, const char *name, uint64_t a_gib, uint64_t b_gib, uint64_t report)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new(name);

	n->report = report;
	pmem_node_set_region(n, 0, a_gib);
	if (b_gib > 0)
		pmem_node_set_region(n, 1, b_gib);
	sched_nodes_put(rig->nodes, n);
	return cluster_rig_get(rig, name);
}

void cluster_rig_place(struct cluster_rig *rig, const char *name, const char *node, uint64_t gib)
{
	reservations_place(rig->reservations, name, node, &(struct sched_item){gib * RIG_GIB, false, false},
		RESERVATION_FOR_EVER);
}

const struct sched_node *cluster_rig_get(const struct cluster_rig *rig, const char *name)
{
	return sched_nodes_get(rig->nodes, span_of(name));
}

struct pod_needs rig_needs(const char *name, size_t n, const uint64_t *gib)
{
	struct pod_needs needs = {.v = x_calloc(n, sizeof(*needs.v)), .n = n};

	for (size_t i = 0; i < n; i++) {
		needs.v[i].name = i == 0 ? x_strdup(name) : x_asprintf("%s%zu", name, i);
		needs.v[i].what = x_asprintf("claim default/%s", needs.v[i].name);
		needs.v[i].size_bytes = gib[i] * RIG_GIB;
	}
	return needs;
}

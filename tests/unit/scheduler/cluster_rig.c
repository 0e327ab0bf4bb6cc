/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/cluster_rig.h"

#include "base/mem.h"
#include "unit/nodes/reports.h"

static void on_changed(void *user)
{
	struct cluster_rig *rig = user;

	rig->n_changed++;
}

void cluster_rig_open(struct cluster_rig *rig)
{
	*rig = (struct cluster_rig){.nodes = sched_nodes_new()};
	rig->charges = sched_charges_new(rig->nodes, on_changed, rig);
}

void cluster_rig_close(struct cluster_rig *rig)
{
	sched_charges_free(rig->charges);
	sched_nodes_free(rig->nodes);
}

static void set_region(struct pool_report *r, const char *name, uint64_t gib)
{
	*r = (struct pool_report){.name = x_strdup(name),
		.capacity.total_bytes = 16 * RIG_GIB,
		.capacity.available_bytes = gib * RIG_GIB,
		.capacity.max_volume_bytes = gib * RIG_GIB,
		.capacity.max_sector_volume_bytes = gib * RIG_GIB,
		.rules.unit_bytes = 4 << 20};
}

const struct sched_node *cluster_rig_node(
	struct cluster_rig *rig, const char *name, uint64_t a_gib, uint64_t b_gib, const char *volume)
{
	struct node_report *r = report_new(name);

	free(r->pools[0].name);
	r->pools = x_realloc(r->pools, 2, sizeof(*r->pools));
	set_region(&r->pools[0], "region0", a_gib);
	if (b_gib > 0)
		set_region(&r->pools[r->n_pools++], "region1", b_gib);
	if (volume)
		report_add_volume(r, volume, volume);
	sched_nodes_put(rig->nodes, r);
	return cluster_rig_get(rig, name);
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

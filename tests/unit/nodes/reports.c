/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/nodes/reports.h"

#include "base/mem.h"

#define GIB (1ULL << 30)

struct node_report *report_new(const char *node_id)
{
	struct node_report *r = x_calloc(1, sizeof(*r));

	r->node_id = x_strdup(node_id);
	r->endpoint = x_strdup("tcp://192.0.2.1:10001");
	r->device_mode = x_strdup("fake");
	r->version = x_strdup("2.0.0");
	r->boot_id = x_strdup("boot");
	r->instance = x_strdup("run");
	r->serves_node_volumes = true;
	r->serves_expansion = true;
	r->serves_modification = true;
	r->lease_ms = 90000;
	r->pools = x_calloc(1, sizeof(*r->pools));
	r->n_pools = 1;
	r->pools[0] = (struct pool_report){.name = x_strdup("region0"),
		.capacity.total_bytes = 16 * GIB,
		.capacity.available_bytes = 8 * GIB,
		.capacity.max_volume_bytes = 4 * GIB,
		.capacity.max_sector_volume_bytes = 3 * GIB};
	r->has_inventory = true;
	return r;
}

struct volume_report *report_add_volume(struct node_report *r, const char *id, const char *name)
{
	r->volumes = x_realloc(r->volumes, r->n_volumes + 1, sizeof(*r->volumes));
	r->volumes[r->n_volumes] = (struct volume_report){
		.id = x_strdup(id), .name = x_strdup(name), .size_bytes = GIB, .phase = PHASE_READY};
	return &r->volumes[r->n_volumes++];
}

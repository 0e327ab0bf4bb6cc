/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/pmem_nodes.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

#define DRIVER    "pmem"
#define GIB       (1ULL << 30)
#define MAX_BYTES (1u << 20)

struct pmem_node *pmem_node_new(const char *name)
{
	struct pmem_node *n = x_calloc(1, sizeof(*n));
	struct pmem_region *r;

	n->meta.name = pmem_node_object_name(name, DRIVER);
	n->node = x_strdup(name);
	n->driver = x_strdup(DRIVER);
	n->device_mode = x_strdup("fake");
	n->report = 1;
	pmem_node_set_ready(n, "True");
	r = pmem_node_add_region(n, "region0");
	r->managed_bytes = 16 * GIB;
	r->available_bytes = 8 * GIB;
	r->max_volume_bytes = 4 * GIB;
	r->max_sector_volume_bytes = 3 * GIB;
	r->complete = true;
	return n;
}

struct pmem_region *pmem_node_set_region(struct pmem_node *n, size_t i, uint64_t gib)
{
	CLEANUP(free_charp) char *name = x_asprintf("region%zu", i);
	struct pmem_region *r = i < n->n_regions ? &n->regions[i] : pmem_node_add_region(n, name);

	r->managed_bytes = 16 * GIB;
	r->available_bytes = gib * GIB;
	r->max_volume_bytes = gib * GIB;
	r->max_sector_volume_bytes = gib * GIB;
	r->unit_bytes = 4 << 20;
	r->complete = true;
	return r;
}

void pmem_node_set_ready(struct pmem_node *n, const char *status)
{
	pmem_conditions_done(&n->conditions);
	pmem_condition_add(
		&n->conditions, "Ready", &(struct pmem_verdict){status, "R", "m"}, "2026-01-02T03:04:05Z");
}

char *pmem_node_json(const struct pmem_node *n)
{
	CLEANUP(buf_done) struct buf spec = BUF_INIT(MAX_BYTES);
	CLEANUP(buf_done) struct buf status = BUF_INIT(MAX_BYTES);

	pmem_node_write_spec(n, &spec);
	pmem_node_write_status(n, &status);
	return x_asprintf(
		"%.*s,%s", (int)spec.len - 1, buf_str(&spec), strstr(buf_str(&status), "\"status\":"));
}

char *pmem_volume_json(const char *name, const char *node, const char *phase, uint64_t report)
{
	CLEANUP(free_charp) char *object = pmem_volume_object_name_for(name, DRIVER);

	return x_asprintf(
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"volumeName\":\"%s\"},\"status\":{\"nodes\":"
		"[{\"node\":\"%s\",\"phase\":\"%s\",\"size\":\"4Gi\",\"report\":%llu}]}}",
		object, name, node, phase, (unsigned long long)report);
}

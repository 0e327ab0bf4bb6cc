/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/reported_record.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/volume_status.h"

/* Whether the report shows if @v is a volume or a snapshot. The node does not know that of a copy whose state
 * file is damaged. */
static bool tells_kind(const struct volume_report *v)
{
	return v->phase != PHASE_DAMAGED && v->phase != PHASE_ERASING && !v->is_inline;
}

struct pmem_volume *reported_record_new(
	const struct node_table *nodes, const char *driver_name, const char *key, const char *handle)
{
	struct pmem_volume *v = NULL;
	struct node_hit *hits;
	size_t n = node_table_find_volume(nodes, handle, &hits);

	for (size_t i = 0; i < n; i++) {
		if (hits[i].volume->phase == PHASE_ERASING || hits[i].volume->is_inline)
			continue;
		if (!v) {
			v = pmem_volume_new(key, driver_name);
			v->origin = x_strdup(PMEM_VOLUME_REPORTED);
			v->size_bytes = hits[i].volume->size_bytes;
			v->source = x_strdup(hits[i].volume->source);
		}
		v->snapshot = v->snapshot || (tells_kind(hits[i].volume) && hits[i].volume->snapshot);
		if (!v->volume_name && !str_empty(hits[i].volume->name))
			v->volume_name = x_strdup(hits[i].volume->name);
		pmem_volume_add_node(v, hits[i].node->report.node_id);
	}
	free(hits);
	return v;
}

bool reported_record_is_of_other_kind(const struct pmem_volume *record, const struct node_table *nodes)
{
	struct node_hit *hits = NULL;
	bool is_other = false;

	if (!record->origin || !record->handle || record->deleting || record->retained)
		return false;
	/* it is released already, and others keep it */
	if (record->meta.deleting && !strv_contains(record->meta.finalizers, PMEM_VOLUME_FINALIZER))
		return false;
	size_t n = volume_status_find(record, nodes, &hits);
	for (size_t i = 0; i < n; i++) {
		if (!tells_kind(hits[i].volume))
			continue;
		is_other = hits[i].volume->snapshot != record->snapshot;
		if (!is_other)
			break;
	}
	free(hits);
	return is_other;
}

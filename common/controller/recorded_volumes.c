/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/recorded_volumes.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "volume/id.h"

void recorded_volumes_note(struct recorded_volumes *r, const struct pmem_volume *record)
{
	if (record->origin && record->handle && !volume_id_has_node(record->handle) &&
		kube_time_valid(record->meta.created) && strcmp(record->meta.created, r->newest) > 0)
		snprintf(r->newest, sizeof(r->newest), "%s", record->meta.created);
}

/* Whether the report has all volumes of the node. Those in a region that is not complete may be missing in
 * it. */
static bool reports_all(const struct node_report *report)
{
	for (size_t i = 0; i < report->n_pools; i++) {
		if (report->pools[i].incomplete)
			return false;
	}
	return report->has_inventory;
}

/* Whether a record must exist before the node counts as recorded. Volumes that are being erased were deleted
 * by a call, and inline volumes never have records. */
static bool needs_record(const struct volume_report *v)
{
	return !v->is_inline && v->phase != PHASE_ERASING && !volume_id_has_node(v->id);
}

/* Whether the volume has a record that names the node. A record with another handle belongs to another volume
 * with the same key. */
static bool is_recorded(const struct pmem_volume *record, const char *handle, const char *node_id)
{
	return record && str_eq(record->handle, handle) && pmem_volume_has_node(record, node_id);
}

const char *recorded_volumes_until(const struct recorded_volumes *r, const struct node *node,
	const char *shown, const struct pmem_volume *(*find)(void *user, const char *handle), void *user)
{
	const struct node_report *report = &node->report;

	if (!reports_all(report))
		return NULL;
	/* only volumes in the report itself count, without changes that replies have shown since */
	for (size_t i = 0; i < report->n_volumes; i++) {
		const struct volume_report *v = &report->volumes[i];

		if (needs_record(v) && !is_recorded(find(user, v->id), v->id, report->node_id))
			return NULL;
	}
	return node->live && r->newest[0] != '\0' ? r->newest : shown;
}

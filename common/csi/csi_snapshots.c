/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/csi_snapshots.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/field_limits.h"
#include "csi/reply.h"

Csi__V1__Snapshot *csi_snapshot_of(const struct snapshot_info *i, struct arena *arena)
{
	const struct csi_snapshot s = {.id = i->id,
		.source = i->source,
		.group = i->group,
		.size_bytes = i->size_bytes,
		.taken_s = i->taken_s,
		.ready = !i->missing};

	return csi_snapshot(&s, arena);
}

int csi_create_snapshot(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__CreateSnapshotRequest *request, Csi__V1__CreateSnapshotResponse *reply,
	struct error **err)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *info = NULL;
	CLEANUP(strmap_done) struct strmap parameters = {0};
	const struct snapshot_request q = {.name = request->name,
		.source = request->source_volume_id,
		.made_by_controller = csi->made_by_controller,
		.parameters = &parameters};

	if (csi_check_snapshot(request, err) < 0)
		return -1;
	CSI_READ_MAP(request, parameters, &parameters);
	if (volumes_create_snapshot(csi->volumes, &q, &info, err) < 0)
		return -1;
	reply->snapshot = csi_snapshot_of(info, call->arena);
	return 0;
}

/* The central controller deletes a group one by one. */
static int refuse_member(const struct csi *csi, const char *id, struct error **err)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *info = NULL;
	CLEANUP(error_freep) struct error *absent = NULL;

	if (csi->made_by_controller || volumes_get_snapshot(csi->volumes, id, &info, &absent) < 0)
		return 0;
	return info->group ? csi_refuse_member(id, info->group, err) : 0;
}

int csi_delete_snapshot(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__DeleteSnapshotRequest *request, Csi__V1__DeleteSnapshotResponse *reply,
	struct error **err)
{
	(void)call;
	(void)reply;
	if (csi_require(request->snapshot_id, "snapshot_id", err) < 0 ||
		refuse_member(csi, request->snapshot_id, err) < 0)
		return -1;
	return volumes_delete_snapshot(csi->volumes, request->snapshot_id, err);
}

static bool is_asked_for(const Csi__V1__ListSnapshotsRequest *request, const struct snapshot_info *i)
{
	return (str_empty(request->snapshot_id) || str_eq(request->snapshot_id, i->id)) &&
	       (str_empty(request->source_volume_id) || str_eq(request->source_volume_id, i->source));
}

/* The page is of those that are asked for, so that all are read. */
int csi_list_snapshots(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ListSnapshotsRequest *request, Csi__V1__ListSnapshotsResponse *reply,
	struct error **err)
{
	struct snapshot_info **all;
	const char *after;
	size_t max;
	size_t n;
	bool ignored;

	if (csi_read_page(request->max_entries, request->starting_token, &after, &max, err) < 0 ||
		volumes_require_ready(csi->volumes, err) < 0)
		return -1;
	volumes_list_snapshots(csi->volumes, after, /* max= */ 0, &all, &n, &ignored);
	reply->entries = arena_alloc(call->arena, (n < max ? n : max) * sizeof(*reply->entries));
	for (size_t i = 0; i < n; i++) {
		if (is_asked_for(request, all[i]) && reply->n_entries == max && str_empty(reply->next_token))
			reply->next_token =
				csi_token(call->arena, reply->entries[max - 1]->snapshot->snapshot_id);
		else if (is_asked_for(request, all[i]) && reply->n_entries < max)
			reply->entries[reply->n_entries++] =
				csi_snapshot_entry(csi_snapshot_of(all[i], call->arena), call->arena);
		snapshot_info_free(all[i]);
	}
	free(all);
	return 0;
}

int csi_get_snapshot(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetSnapshotRequest *request, Csi__V1__GetSnapshotResponse *reply, struct error **err)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *info = NULL;

	if (csi_require(request->snapshot_id, "snapshot_id", err) < 0 ||
		volumes_require_ready(csi->volumes, err) < 0)
		return -1;
	if (volumes_get_snapshot(csi->volumes, request->snapshot_id, &info, err) < 0)
		return -1;
	reply->snapshot = csi_snapshot_of(info, call->arena);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_snapshots.h - the calls of csi.v1.Controller about snapshots, for the volumes of this node.
 *
 * Bodies of handlers (handler.h); CreateSnapshot, DeleteSnapshot and ListSnapshots are for workers. Threads:
 * safe.
 */
#pragma once

#include "csi.pb-c.h"

#include "csi/csi.h"
#include "volume/volumes.h"

/** csi_snapshot_of() - make the message about @info. */
Csi__V1__Snapshot *csi_snapshot_of(const struct snapshot_info *info, struct arena *arena);

/** csi_create_snapshot() - CreateSnapshot. Return: 0, or -1 as volumes_create_snapshot(). */
int csi_create_snapshot(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__CreateSnapshotRequest *request, Csi__V1__CreateSnapshotResponse *reply,
	struct error **err) MUST_CHECK;

/** csi_delete_snapshot() - DeleteSnapshot. Return: 0, or -1 as volumes_delete_snapshot(), and with
 * ERR_INVALID_ARGUMENT for a snapshot that belongs to a group, unless the central controller calls. */
int csi_delete_snapshot(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__DeleteSnapshotRequest *request, Csi__V1__DeleteSnapshotResponse *reply,
	struct error **err) MUST_CHECK;

/** csi_list_snapshots() - ListSnapshots. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_ABORTED (bad token),
 * ERR_UNAVAILABLE. */
int csi_list_snapshots(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ListSnapshotsRequest *request, Csi__V1__ListSnapshotsResponse *reply,
	struct error **err) MUST_CHECK;

/** csi_get_snapshot() - GetSnapshot. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_NOT_FOUND,
 * ERR_UNAVAILABLE. */
int csi_get_snapshot(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetSnapshotRequest *request, Csi__V1__GetSnapshotResponse *reply,
	struct error **err) MUST_CHECK;

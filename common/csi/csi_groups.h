/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_groups.h - csi.v1.GroupController for the volumes of this node, and what the central controller
 * has in common with it.
 *
 * Threads: safe.
 */
#pragma once

#include "csi.pb-c.h"

#include "base/arena.h"
#include "csi/csi.h"

/** csi_group_service() - make the service csi.v1.GroupController for the volumes of this node. @csi is
 * borrowed for the life of the service. */
struct grpc_service csi_group_service(struct csi *csi);

/** csi_check_group() - check all fields of @request except the parameters. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (no name; no volumes, too many, one listed twice or without ID). */
int csi_check_group(const Csi__V1__CreateVolumeGroupSnapshotRequest *request, struct error **err) MUST_CHECK;

/** csi_group() - make the message about the group @id with @n @snapshots (borrowed, as is the array): it was
 * taken when the first of them was, and is ready when all are. */
Csi__V1__VolumeGroupSnapshot *csi_group(
	const char *id, Csi__V1__Snapshot **snapshots, size_t n, struct arena *arena);

/** csi_fill_group_capabilities() - set the capabilities of csi.v1.GroupController. */
void csi_fill_group_capabilities(Csi__V1__GroupControllerGetCapabilitiesResponse *reply, struct arena *arena);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - makes parts of replies for nodes and for the central controller. Everything is allocated in the
 * call's arena.
 *
 * Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "csi.pb-c.h"

#include "base/arena.h"
#include "volume/health/health.h"

/* A page token is this prefix and the last ID of the previous page. The prefix makes tokens recognisable, so
 * that others are refused with ABORTED. */
#define CSI_TOKEN_PREFIX "after/"

/** csi_token() - make the token of the page that begins after @last_id. */
char *csi_token(struct arena *arena, const char *last_id);

/** csi_condition() - make the condition of a volume as of CSI 1.12, by what is known to be wrong with it. */
Csi__V1__VolumeCondition *csi_condition(const struct volume_health *h, struct arena *arena);

/** csi_volume_health() - make the health of volume @id as of CSI 1.13. */
Csi__V1__VolumeHealth *csi_volume_health(const char *id, const struct volume_health *h, struct arena *arena);

/** csi_missing_status() - make the status of a volume whose device was not found. */
Csi__V1__ListVolumesResponse__VolumeStatus *csi_missing_status(struct arena *arena);

/** csi_confirmed() - make a reply that confirms all of @request; borrows from @request. */
Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *csi_confirmed(
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct arena *arena);

/** csi_content_source() - make the content source of a copy of the volume, or snapshot, @handle. */
Csi__V1__VolumeContentSource *csi_content_source(struct arena *arena, const char *handle, bool is_snapshot);

/* The properties of a snapshot that callers of CSI get. */
struct csi_snapshot {
	const char *id;
	const char *source; /* ID of the volume; NULL: not known */
	const char *group;  /* ID of the group snapshot that it belongs to; NULL: none */
	uint64_t size_bytes;
	uint64_t taken_s; /* when the volume was as it shows it, seconds since 1970 in UTC */
	bool ready;       /* it can be restored now */
};

/** csi_snapshot() - make the message about @s. csi_snapshot_entry(): of a list. */
Csi__V1__Snapshot *csi_snapshot(const struct csi_snapshot *s, struct arena *arena);
Csi__V1__ListSnapshotsResponse__Entry *csi_snapshot_entry(Csi__V1__Snapshot *s, struct arena *arena);

/** csi_fill_capacity() - set the available bytes and the size of the largest volume that can be created. */
void csi_fill_capacity(Csi__V1__GetCapacityResponse *reply, struct arena *arena, uint64_t available_bytes,
	uint64_t max_volume_bytes);

/* Optional capabilities of a service of volumes. */
struct csi_offers {
	bool expands; /* volumes can be expanded */
	bool health;  /* the health calls of CSI 1.13 */
};

/** csi_fill_controller_capabilities() - set the capabilities of csi.v1.Controller. Clones, snapshots
 * and modification are among them: volumes of any device manager can be copied, and parameters of any can be
 * changed. */
void csi_fill_controller_capabilities(
	Csi__V1__ControllerGetCapabilitiesResponse *reply, struct arena *arena, struct csi_offers offers);

/** csi_fill_plugin_info(), csi_fill_plugin_capabilities(), csi_fill_ready() - fill the replies of
 * csi.v1.Identity. Groups of snapshots are always offered. @expands: volumes can be expanded */
void csi_fill_plugin_info(Csi__V1__GetPluginInfoResponse *reply, struct arena *arena, const char *driver_name,
	const char *version);
void csi_fill_plugin_capabilities(
	Csi__V1__GetPluginCapabilitiesResponse *reply, struct arena *arena, bool expands);
void csi_fill_ready(Csi__V1__ProbeResponse *reply, struct arena *arena, bool ready);

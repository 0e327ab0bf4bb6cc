/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - parts of replies that nodes and the central controller have in common. All of it lives in the
 * call's arena.
 *
 * Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "csi.pb-c.h"

#include "base/arena.h"

/* A page token is this and the last ID of the page before: recognisable, so that a wrong one is ABORTED. */
#define CSI_TOKEN_PREFIX "after/"

/** csi_token() - for the page that begins behind @last_id. */
char *csi_token(struct arena *arena, const char *last_id);

/** csi_missing_status() - of a volume whose device was not found. */
Csi__V1__ListVolumesResponse__VolumeStatus *csi_missing_status(struct arena *arena);

/** csi_confirmed() - that all of @request is confirmed; borrows from it. */
Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *csi_confirmed(
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct arena *arena);

/** csi_fill_capacity() - set what is available in all, and the largest volume that can be made of it. */
void csi_fill_capacity(Csi__V1__GetCapacityResponse *reply, struct arena *arena, uint64_t available_bytes,
	uint64_t max_volume_bytes);

/** csi_fill_controller_capabilities() - what csi.v1.Controller serves. */
void csi_fill_controller_capabilities(Csi__V1__ControllerGetCapabilitiesResponse *reply, struct arena *arena);

/** csi_fill_plugin_info() - csi_fill_plugin_capabilities(), csi_fill_ready(): the answers of Identity. */
void csi_fill_plugin_info(Csi__V1__GetPluginInfoResponse *reply, struct arena *arena, const char *driver_name,
	const char *version);
void csi_fill_plugin_capabilities(Csi__V1__GetPluginCapabilitiesResponse *reply, struct arena *arena);
void csi_fill_ready(Csi__V1__ProbeResponse *reply, struct arena *arena, bool ready);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_health.h - the calls of CSI 1.13 that are about the health of volumes.
 *
 * Replies are made from memory, in the call's arena. Threads: safe. Never waits. Source: CSI
 * specification 1.13, ControllerListVolumeHealth, ControllerGetVolumeHealth, NodeGetVolumeHealth,
 * NodeGetStorageHealth.
 */
#pragma once

#include "csi.pb-c.h"

#include "csi/csi.h"
#include "volume/health/volumes_health.h"

/**
 * csi_fill_health_page() - set a page of ControllerListVolumeHealth.
 * @all: of all volumes with which something is wrong, sorted by ID
 *
 * Return: 0, or -1 as csi_read_page().
 */
int csi_fill_health_page(const Csi__V1__ControllerListVolumeHealthRequest *request,
	const struct health_table *all, Csi__V1__ControllerListVolumeHealthResponse *reply,
	struct arena *arena, struct error **err) MUST_CHECK;

/** csi_list_volume_health(), csi_get_volume_health(), csi_node_volume_health(), csi_storage_health() - what
 * the node answers. Return: 0, or -1 with ERR_UNAVAILABLE (the driver is starting), ERR_INVALID_ARGUMENT,
 * ERR_NOT_FOUND, or as csi_fill_health_page(). */
int csi_list_volume_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerListVolumeHealthRequest *request,
	Csi__V1__ControllerListVolumeHealthResponse *reply, struct error **err) MUST_CHECK;
int csi_get_volume_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerGetVolumeHealthRequest *request,
	Csi__V1__ControllerGetVolumeHealthResponse *reply, struct error **err) MUST_CHECK;
int csi_node_volume_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeGetVolumeHealthRequest *request, Csi__V1__NodeGetVolumeHealthResponse *reply,
	struct error **err) MUST_CHECK;
int csi_storage_health(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeGetStorageHealthRequest *request, Csi__V1__NodeGetStorageHealthResponse *reply,
	struct error **err) MUST_CHECK;

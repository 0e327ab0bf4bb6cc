/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_request.h - what is read out of requests and refused in them, by a node and by the central
 * controller alike.
 *
 * Threads: safe.
 */
#pragma once

#include "csi.pb-c.h"

#include "base/strmap.h"
#include "csi/capability.h"

/** csi_read_range() - bytes of @range, 0 where it says nothing. @range: may be NULL. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int csi_read_range(const Csi__V1__CapacityRange *range, uint64_t *ret_required, uint64_t *ret_limit,
	struct error **err) MUST_CHECK;

/** csi_check_create() - all but range, parameters and topology. @ret: for all capabilities together. Return:
 * 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_check_create(const Csi__V1__CreateVolumeRequest *request, struct capability_set *ret,
	struct error **err) MUST_CHECK;

/** csi_check_validate() - that all fields are there; that their values can be served is for the answer.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_check_validate(
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct error **err) MUST_CHECK;

/** csi_can_serve() - whether volumes with the capabilities of @request can be created at all. @parameters:
 * those of the StorageClass */
bool csi_can_serve(const Csi__V1__GetCapacityRequest *request, const struct strmap *parameters);

/** csi_read_page() - which page of ListVolumes is asked for. @ret_after: the ID behind which it begins,
 * borrowed from @request; NULL: it is the first one. @ret_max: most entries, never more than fit into a
 * reply. Return: 0, or -1 with ERR_INVALID_ARGUMENT (a negative number of entries), ERR_ABORTED (the token is
 * not of csi_token()). */
int csi_read_page(const Csi__V1__ListVolumesRequest *request, const char **ret_after, size_t *ret_max,
	struct error **err) MUST_CHECK;

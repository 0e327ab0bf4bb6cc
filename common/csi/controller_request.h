/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_request.h - reads and checks requests to csi.v1.Controller, on a node and in the central
 * controller.
 *
 * Threads: safe.
 */
#pragma once

#include "csi.pb-c.h"

#include "base/strmap.h"
#include "csi/capability.h"

/** csi_read_range() - read the bytes in @range, 0 for what is not given. @range: may be NULL. Return: 0, or
 * -1 with ERR_INVALID_ARGUMENT. */
int csi_read_range(const Csi__V1__CapacityRange *range, uint64_t *ret_required, uint64_t *ret_limit,
	struct error **err) MUST_CHECK;

/* Source of a new volume: the volume or snapshot that it is to be a copy of. */
struct csi_source {
	const char *handle; /* borrowed from the request; NULL: the new volume is empty */
	bool is_snapshot;
};

/** csi_read_source() - read which volume or snapshot the new volume is to be a copy of. Whether it exists is
 * not checked. Return: 0, or -1 with ERR_INVALID_ARGUMENT (neither a volume nor a snapshot; no ID). */
int csi_read_source(
	const Csi__V1__CreateVolumeRequest *request, struct csi_source *ret, struct error **err) MUST_CHECK;

/** csi_check_snapshot() - check all fields of @request except the parameters. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int csi_check_snapshot(const Csi__V1__CreateSnapshotRequest *request, struct error **err) MUST_CHECK;

/** csi_refuse_member() - fail, since the snapshot @id is deleted with its group only ("DeleteSnapshot Errors"
 * in the CSI specification). Return: -1 with ERR_INVALID_ARGUMENT. */
int csi_refuse_member(const char *id, const char *group, struct error **err) MUST_CHECK;

/** csi_check_create() - check all fields except range, parameters and topology. @ret: for all capabilities
 * together; capability_set_done(), also after a failure. The mount flags of a copy for which no file system
 * is requested may be those of any. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_check_create(const Csi__V1__CreateVolumeRequest *request, struct capability_set *ret,
	struct error **err) MUST_CHECK;

/** csi_read_create_parameters() - read the parameters of @request. If the VolumeAttributesClass and the
 * StorageClass have the same key, the value of the VolumeAttributesClass is used. @out: gets them;
 * strmap_done(), also after a failure. Return: 0, or -1 with ERR_INVALID_ARGUMENT (the VolumeAttributesClass
 * has a parameter that it cannot have). Parameters of the StorageClass are not checked. */
int csi_read_create_parameters(
	const Csi__V1__CreateVolumeRequest *request, struct strmap *out, struct error **err) MUST_CHECK;

/** csi_read_modify() - check all fields of @request, whose parameters are added to @out: strmap_done(), also
 * after a failure. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_read_modify(const Csi__V1__ControllerModifyVolumeRequest *request, struct strmap *out,
	struct error **err) MUST_CHECK;

/** csi_check_expand() - check all fields, and read the range as csi_read_range(). @ret_is_block: whether the
 * capability is for block access; false without one. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_check_expand(const Csi__V1__ControllerExpandVolumeRequest *request, uint64_t *ret_required,
	uint64_t *ret_limit, bool *ret_is_block, struct error **err) MUST_CHECK;

/** csi_check_validate() - check that all fields are given. Whether their values can be served is the result
 * of the call and not checked here. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int csi_check_validate(
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct error **err) MUST_CHECK;

/** csi_can_serve() - whether volumes with the capabilities of @request can be created at all. @parameters:
 * those of the StorageClass */
bool csi_can_serve(const Csi__V1__GetCapacityRequest *request, const struct strmap *parameters);

/** csi_read_page() - read which page of a list of volumes is requested, by the fields of the request.
 * @ret_after: the ID after which it begins, borrowed from @starting_token; NULL: it is the first page.
 * @ret_max: most entries, never more than fit into a reply. Return: 0, or -1 with ERR_INVALID_ARGUMENT (a
 * negative number of entries), ERR_ABORTED (the token was not made by csi_token()). */
int csi_read_page(int32_t max_entries, const char *starting_token, const char **ret_after, size_t *ret_max,
	struct error **err) MUST_CHECK;

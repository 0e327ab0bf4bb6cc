/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/controller_request.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "csi/field_limits.h"
#include "csi/reply.h"
#include "volume/id.h"
#include "volume/params.h"

/* More would not fit into a message: an entry has up to 1,400 bytes, and at a controller one more topology
 * per copy. */
#define LIST_PAGE_MAX 2500

int csi_read_range(
	const Csi__V1__CapacityRange *range, uint64_t *ret_required, uint64_t *ret_limit, struct error **err)
{
	if (range && range->required_bytes < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "capacity_range.required_bytes is negative");
	if (range && range->limit_bytes < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "capacity_range.limit_bytes is negative");
	*ret_required = range ? (uint64_t)range->required_bytes : 0;
	*ret_limit = range ? (uint64_t)range->limit_bytes : 0;
	return 0;
}

int csi_read_source(const Csi__V1__CreateVolumeRequest *request, struct csi_source *ret, struct error **err)
{
	const Csi__V1__VolumeContentSource *source = request->volume_content_source;

	*ret = (struct csi_source){0};
	if (!source)
		return 0;
	if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT) {
		*ret = (struct csi_source){source->snapshot->snapshot_id, /* is_snapshot= */ true};
		return csi_require(ret->handle, "volume_content_source.snapshot.snapshot_id", err);
	}
	if (source->type_case != CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume_content_source names neither a volume nor a snapshot");
	ret->handle = source->volume->volume_id;
	return csi_require(ret->handle, "volume_content_source.volume.volume_id", err);
}

int csi_check_snapshot(const Csi__V1__CreateSnapshotRequest *request, struct error **err)
{
	if (csi_require(request->name, "name", err) < 0)
		return -1;
	return csi_require(request->source_volume_id, "source_volume_id", err);
}

int csi_refuse_member(const char *id, const char *group, struct error **err)
{
	return err_set(err, ERR_INVALID_ARGUMENT,
		"snapshot %s belongs to the group snapshot %s, and is deleted together with it only", id,
		group);
}

int csi_check_create(
	const Csi__V1__CreateVolumeRequest *request, struct capability_set *ret, struct error **err)
{
	struct csi_source source;

	if (csi_require(request->name, "name", err) < 0)
		return -1;
	if (capabilities_check(request->volume_capabilities, request->n_volume_capabilities,
		    /* any_mode= */ false, ret, err) < 0)
		return -1;
	if (csi_read_source(request, &source, err) < 0)
		return -1;
	/* of a copy, the node knows the file system */
	return source.handle || !ret->fs_type ? 0 : capability_set_check_flags(ret, ret->fs_type, err);
}

int csi_read_create_parameters(
	const Csi__V1__CreateVolumeRequest *request, struct strmap *out, struct error **err)
{
	CLEANUP(params_done) struct volume_params ignored = {0};
	CLEANUP(strmap_done) struct strmap mutable = {0};

	CSI_READ_MAP(request, mutable_parameters, &mutable);
	if (params_parse(PARAMS_MODIFY, &mutable, &ignored, err) < 0)
		return err_wrap(err, "mutable_parameters");
	CSI_READ_MAP(request, parameters, out);
	CSI_READ_MAP(request, mutable_parameters, out);
	return 0;
}

/* Without parameters, as a VolumeAttributesClass may be, nothing changes. */
int csi_read_modify(
	const Csi__V1__ControllerModifyVolumeRequest *request, struct strmap *out, struct error **err)
{
	CLEANUP(params_done) struct volume_params ignored = {0};

	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	CSI_READ_MAP(request, mutable_parameters, out);
	return params_parse(PARAMS_MODIFY, out, &ignored, err);
}

int csi_check_expand(const Csi__V1__ControllerExpandVolumeRequest *request, uint64_t *ret_required,
	uint64_t *ret_limit, bool *ret_is_block, struct error **err)
{
	CLEANUP(capability_done) struct capability cap = {0};

	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (!request->capacity_range)
		return err_set(err, ERR_INVALID_ARGUMENT, "capacity_range is missing");
	if (csi_read_range(request->capacity_range, ret_required, ret_limit, err) < 0)
		return -1;
	if (*ret_required == 0 && *ret_limit == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "neither required_bytes nor limit_bytes is given");
	if (*ret_limit > 0 && *ret_required > *ret_limit)
		return err_set(err, ERR_INVALID_ARGUMENT, "required_bytes is larger than limit_bytes");
	if (request->volume_capability && capability_read(request->volume_capability, &cap, err) < 0)
		return -1;
	*ret_is_block = cap.block;
	return 0;
}

int csi_check_validate(const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct error **err)
{
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (request->n_volume_capabilities == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_capabilities is missing");
	return capabilities_require(request->volume_capabilities, request->n_volume_capabilities,
		/* any_mode= */ false, err);
}

bool csi_can_serve(const Csi__V1__GetCapacityRequest *request, const struct strmap *parameters)
{
	CLEANUP(error_freep) struct error *refusal = NULL;
	CLEANUP(capability_set_done) struct capability_set set = {0};

	if (request->n_volume_capabilities == 0)
		return true;
	if (capabilities_check(request->volume_capabilities, request->n_volume_capabilities,
		    /* any_mode= */ true, &set, &refusal) < 0)
		return false;
	return !set.spans_nodes || str_eq(strmap_get(parameters, "persistencyModel"), "cache");
}

static int read_token(const char *token, const char **ret_after, struct error **err)
{
	if (str_empty(token)) {
		*ret_after = NULL;
		return 0;
	}
	if (!str_starts(token, CSI_TOKEN_PREFIX) || !volume_id_valid(token + strlen(CSI_TOKEN_PREFIX)))
		return err_set(
			err, ERR_ABORTED, "starting_token \"%s\" was not issued by this driver", token);
	*ret_after = token + strlen(CSI_TOKEN_PREFIX);
	return 0;
}

int csi_read_page(int32_t max_entries, const char *starting_token, const char **ret_after, size_t *ret_max,
	struct error **err)
{
	if (max_entries < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "max_entries is negative");
	if (read_token(starting_token, ret_after, err) < 0)
		return -1;
	*ret_max = max_entries > 0 && max_entries < LIST_PAGE_MAX ? (size_t)max_entries : LIST_PAGE_MAX;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller for the volumes of this node. */
#include <stdlib.h>

#include "csi.pb-c.h"

#include "base/str.h"
#include "csi/capability.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/csi_health.h"
#include "csi/csi_snapshots.h"
#include "csi/handler.h"
#include "csi/reply.h"
#include "pmem/capacity.h"
#include "pmem/usage.h"
#include "volume/params.h"

/* Before the first device view a volume that exists would look as if it did not. */
static int require_ready(const struct csi *csi, struct error **err)
{
	return volumes_require_ready(csi->volumes, err);
}

/* Preferred topologies are a subset of the requisite ones; where both are given the requisite ones decide. */
static int check_accessibility(
	const struct csi *csi, const Csi__V1__TopologyRequirement *t, struct error **err)
{
	if (!t || t->n_requisite + t->n_preferred == 0)
		return 0;
	for (size_t i = 0; i < t->n_requisite; i++) {
		if (csi_topology_is_ours(csi, t->requisite[i]))
			return 0;
	}
	for (size_t i = 0; t->n_requisite == 0 && i < t->n_preferred; i++) {
		if (csi_topology_is_ours(csi, t->preferred[i]))
			return 0;
	}
	return err_set(err, ERR_EXHAUSTED, "no topology in accessibility_requirements is this node");
}

static int create_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply, struct error **err)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct volume_request q = {.name = request->name,
		.made_by_controller = csi->made_by_controller,
		.parameters = &parameters};
	CLEANUP(capability_set_done) struct capability_set set = {0};
	struct csi_source source;

	if (csi_check_create(request, &set, err) < 0)
		return -1;
	q.fs_type = set.fs_type;
	q.any_fs = !set.asked_fs_type;
	q.mount_flags = set.mount_flags;
	q.block = set.block;
	q.spans_nodes = set.spans_nodes;
	if (csi_read_source(request, &source, err) < 0)
		return -1;
	q.source = source.handle;
	q.source_is_snapshot = source.is_snapshot;
	if (csi_read_range(request->capacity_range, &q.required_bytes, &q.limit_bytes, err) < 0)
		return -1;
	if (csi_read_create_parameters(request, &parameters, err) < 0)
		return -1;
	if (csi_accessibility_check(csi->driver_name, request->accessibility_requirements, err) < 0 ||
		check_accessibility(csi, request->accessibility_requirements, err) < 0)
		return -1;
	if (volumes_create(csi->volumes, &q, &info, err) < 0)
		return -1;
	reply->volume = csi_volume(csi, call->arena, info);
	/* as it was asked for: the specification demands the same */
	reply->volume->content_source = request->volume_content_source;
	return 0;
}
CSI_HANDLER(create_volume, Csi__V1__CreateVolumeRequest, Csi__V1__CreateVolumeResponse);

static int delete_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__DeleteVolumeRequest *request, Csi__V1__DeleteVolumeResponse *reply, struct error **err)
{
	(void)call;
	(void)reply;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	return volumes_delete(csi->volumes, request->volume_id, err);
}
CSI_HANDLER(delete_volume, Csi__V1__DeleteVolumeRequest, Csi__V1__DeleteVolumeResponse);

/* Without a capability in the request, the record says whether there is a file system that has to grow, too.
 */
static int expand_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerExpandVolumeRequest *request, Csi__V1__ControllerExpandVolumeResponse *reply,
	struct error **err)
{
	struct expand_request q = {.handle = request->volume_id};
	struct expand_result done;
	bool is_block;

	(void)call;
	if (csi_check_expand(request, &q.required_bytes, &q.limit_bytes, &is_block, err) < 0)
		return -1;
	if (volumes_expand(csi->volumes, &q, &done, err) < 0)
		return -1;
	reply->capacity_bytes = (int64_t)done.size_bytes;
	reply->node_expansion_required = request->volume_capability ? !is_block : !done.is_block;
	return 0;
}
CSI_HANDLER(expand_volume, Csi__V1__ControllerExpandVolumeRequest, Csi__V1__ControllerExpandVolumeResponse);

static int modify_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerModifyVolumeRequest *request, Csi__V1__ControllerModifyVolumeResponse *reply,
	struct error **err)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	const struct modify_request q = {.handle = request->volume_id, .parameters = &parameters};

	(void)call;
	(void)reply;
	if (csi_read_modify(request, &parameters, err) < 0)
		return -1;
	return volumes_modify(csi->volumes, &q, err);
}
CSI_HANDLER(modify_volume, Csi__V1__ControllerModifyVolumeRequest, Csi__V1__ControllerModifyVolumeResponse);

/* Checks that the volume's own properties (access, file system, block mode) permit the capabilities in
 * @set. */
static int check_volume(const struct volume_info *info, const struct capability_set *set, struct error **err)
{
	if (access_check(set->spans_nodes, info->is_cache || info->is_taken_over, err) < 0)
		return -1;
	if (set->asked_fs_type && info->fs_type && !str_eq(set->asked_fs_type, info->fs_type))
		return err_set(err, ERR_INVALID_ARGUMENT, "the volume is %s, not %s", info->fs_type,
			set->asked_fs_type);
	if (set->block && !info->may_be_block)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the volume was not created as a block volume, so it may still contain data of an "
			"earlier volume");
	if (set->fs_type && info->is_block_only)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the volume was created for block access only, so that no file system in it is mounted");
	return capability_set_check_flags(set, info->fs_type ? info->fs_type : set->fs_type, err);
}

static int validate_volume_capabilities(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request,
	Csi__V1__ValidateVolumeCapabilitiesResponse *reply, struct error **err)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	CLEANUP(error_freep) struct error *refusal = NULL;
	CLEANUP(strmap_done) struct strmap parameters = {0};
	CLEANUP(strmap_done) struct strmap mutable = {0};
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(params_done) struct volume_params mutable_params = {0};
	CLEANUP(capability_set_done) struct capability_set set = {0};

	if (csi_check_validate(request, err) < 0)
		return -1;
	if (require_ready(csi, err) < 0)
		return -1;
	if (volumes_get(csi->volumes, request->volume_id, &info, err) < 0)
		return -1;
	CSI_READ_MAP(request, parameters, &parameters);
	CSI_READ_MAP(request, mutable_parameters, &mutable);
	if (capabilities_check(request->volume_capabilities, request->n_volume_capabilities,
		    /* any_mode= */ false, &set, &refusal) < 0 ||
		check_volume(info, &set, &refusal) < 0 ||
		params_parse(PARAMS_CREATE, &parameters, &params, &refusal) < 0 ||
		params_parse(PARAMS_MODIFY, &mutable, &mutable_params, &refusal) < 0) {
		reply->message = arena_strdup(call->arena, refusal->msg);
		return 0;
	}
	reply->confirmed = csi_confirmed(request, call->arena);
	return 0;
}
CSI_HANDLER(validate_volume_capabilities, Csi__V1__ValidateVolumeCapabilitiesRequest,
	Csi__V1__ValidateVolumeCapabilitiesResponse);

static int list_volumes(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ListVolumesRequest *request, Csi__V1__ListVolumesResponse *reply, struct error **err)
{
	struct volume_info **page;
	const char *after = NULL;
	size_t max;
	size_t n;
	bool more;

	if (csi_read_page(request->max_entries, request->starting_token, &after, &max, err) < 0)
		return -1;
	if (require_ready(csi, err) < 0)
		return -1;
	volumes_list(csi->volumes, after, max, &page, &n, &more);
	reply->entries = arena_alloc(call->arena, n * sizeof(*reply->entries));
	for (size_t i = 0; i < n; i++) {
		Csi__V1__ListVolumesResponse__Entry *e = arena_alloc(call->arena, sizeof(*e));

		csi__v1__list_volumes_response__entry__init(e);
		e->volume = csi_volume(csi, call->arena, page[i]);
		csi_add_claim(e->volume, page[i]->claim, CSI_CLAIM_KEYS, call->arena);
		csi_add_claim(e->volume, page[i]->pod, CSI_POD_KEYS, call->arena);
		if (page[i]->missing)
			e->status = csi_missing_status(call->arena);
		reply->entries[reply->n_entries++] = e;
		if (more && i + 1 == n)
			reply->next_token = csi_token(call->arena, page[i]->id);
		volume_info_free(page[i]);
	}
	free(page);
	return 0;
}
CSI_HANDLER(list_volumes, Csi__V1__ListVolumesRequest, Csi__V1__ListVolumesResponse);

/* Whether volumes with these parameters and this topology can ever be created on this node. */
static bool can_serve(
	const struct csi *csi, const Csi__V1__GetCapacityRequest *request, const struct strmap *parameters)
{
	if (request->accessible_topology && !csi_topology_is_ours(csi, request->accessible_topology))
		return false;
	unsigned needs =
		params_needs(strmap_get(parameters, PARAMS_KATA), strmap_get(parameters, PARAMS_DIRECT),
			/* durability= */ NULL);

	if ((needs & PARAMS_NEED_KATA) && !volumes_offers_kata(csi->volumes, NULL))
		return false;
	if ((needs & PARAMS_NEED_DIRECT) && !volumes_offers_direct(csi->volumes, NULL))
		return false;
	return csi_can_serve(request, parameters);
}

/* Only some of the parameters are read: external-provisioner sends all parameters of the StorageClass,
 * including keys that it removes from the request of CreateVolume. */
static int get_capacity(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetCapacityRequest *request, Csi__V1__GetCapacityResponse *reply, struct error **err)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct capacity c = {0};
	const char *usage;

	if (capabilities_require(request->volume_capabilities, request->n_volume_capabilities,
		    /* any_mode= */ true, err) < 0 ||
		csi_topology_check(csi->driver_name, request->accessible_topology, err) < 0)
		return -1;
	if (require_ready(csi, err) < 0)
		return -1;
	CSI_READ_MAP(request, parameters, &parameters);
	usage = strmap_get(&parameters, PARAMS_USAGE);
	if (can_serve(csi, request, &parameters))
		volumes_capacity(csi->volumes,
			durability_needs_sync(usage, strmap_get(&parameters, PARAMS_DURABILITY)), &c);
	csi_fill_capacity(reply, call->arena, c.available_bytes,
		capacity_max_bytes(&c, volume_usage_is_file_io(usage)));
	return 0;
}
CSI_HANDLER(get_capacity, Csi__V1__GetCapacityRequest, Csi__V1__GetCapacityResponse);

static int get_capabilities(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__ControllerGetCapabilitiesRequest *request,
	Csi__V1__ControllerGetCapabilitiesResponse *reply, struct error **err)
{
	(void)request;
	(void)err;
	csi_fill_controller_capabilities(reply, call->arena,
		(struct csi_offers){volumes_can_expand(csi->volumes), csi->offers_health});
	return 0;
}
CSI_HANDLER(get_capabilities, Csi__V1__ControllerGetCapabilitiesRequest,
	Csi__V1__ControllerGetCapabilitiesResponse);

CSI_HANDLER(csi_create_snapshot, Csi__V1__CreateSnapshotRequest, Csi__V1__CreateSnapshotResponse);
CSI_HANDLER(csi_delete_snapshot, Csi__V1__DeleteSnapshotRequest, Csi__V1__DeleteSnapshotResponse);
CSI_HANDLER(csi_list_snapshots, Csi__V1__ListSnapshotsRequest, Csi__V1__ListSnapshotsResponse);
CSI_HANDLER(csi_get_snapshot, Csi__V1__GetSnapshotRequest, Csi__V1__GetSnapshotResponse);
CSI_HANDLER(csi_list_volume_health, Csi__V1__ControllerListVolumeHealthRequest,
	Csi__V1__ControllerListVolumeHealthResponse);
CSI_HANDLER(csi_get_volume_health, Csi__V1__ControllerGetVolumeHealthRequest,
	Csi__V1__ControllerGetVolumeHealthResponse);

static const struct grpc_method methods[] = {
	CSI_METHOD("Controller", "CreateVolume", GRPC_WORKER, csi__v1__create_volume, create_volume),
	CSI_METHOD("Controller", "DeleteVolume", GRPC_WORKER, csi__v1__delete_volume, delete_volume),
	CSI_METHOD("Controller", "ControllerExpandVolume", GRPC_WORKER, csi__v1__controller_expand_volume,
		expand_volume),
	CSI_METHOD("Controller", "ControllerModifyVolume", GRPC_WORKER, csi__v1__controller_modify_volume,
		modify_volume),
	CSI_METHOD("Controller", "ValidateVolumeCapabilities", GRPC_INLINE,
		csi__v1__validate_volume_capabilities, validate_volume_capabilities),
	CSI_METHOD("Controller", "ListVolumes", GRPC_WORKER, csi__v1__list_volumes, list_volumes),
	CSI_METHOD("Controller", "GetCapacity", GRPC_INLINE, csi__v1__get_capacity, get_capacity),
	CSI_METHOD(
		"Controller", "CreateSnapshot", GRPC_WORKER, csi__v1__create_snapshot, csi_create_snapshot),
	CSI_METHOD(
		"Controller", "DeleteSnapshot", GRPC_WORKER, csi__v1__delete_snapshot, csi_delete_snapshot),
	CSI_METHOD("Controller", "ListSnapshots", GRPC_WORKER, csi__v1__list_snapshots, csi_list_snapshots),
	CSI_METHOD("Controller", "GetSnapshot", GRPC_INLINE, csi__v1__get_snapshot, csi_get_snapshot),
	CSI_METHOD("Controller", "ControllerListVolumeHealth", GRPC_INLINE,
		csi__v1__controller_list_volume_health, csi_list_volume_health),
	CSI_METHOD("Controller", "ControllerGetVolumeHealth", GRPC_INLINE,
		csi__v1__controller_get_volume_health, csi_get_volume_health),
	CSI_METHOD("Controller", "ControllerGetCapabilities", GRPC_INLINE,
		csi__v1__controller_get_capabilities, get_capabilities),
	{0},
};

struct grpc_service csi_controller_service(struct csi *csi)
{
	return (struct grpc_service){.methods = methods,
		.self = csi,
		.current_step = csi_current_step,
		.volume_of = csi_volume_of};
}

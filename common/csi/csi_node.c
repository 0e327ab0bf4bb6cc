/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Node */
#include "csi.pb-c.h"

#include "base/str.h"
#include "csi/capability.h"
#include "csi/controller_request.h"
#include "csi/convert.h"
#include "csi/csi_health.h"
#include "csi/handler.h"
#include "csi/reply.h"

#define RPC(name)  CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name
#define UNIT(name) CSI__V1__VOLUME_USAGE__UNIT__##name

static struct use_request use_request(const char *handle, const char *staging_path,
	const struct capability *cap, const struct strmap *context)
{
	return (struct use_request){.handle = handle,
		.staging_path = staging_path,
		.block = cap->block,
		.fs_type = cap->fs_type,
		.mount_flags = cap->mount_flags,
		.access_mode = cap->access_mode,
		.context = context};
}

static int stage_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeStageVolumeRequest *request, Csi__V1__NodeStageVolumeResponse *reply,
	struct error **err)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	CLEANUP(capability_done) struct capability cap = {0};

	(void)call;
	(void)reply;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (csi_require(request->staging_target_path, "staging_target_path", err) < 0)
		return -1;
	if (capability_read(request->volume_capability, &cap, err) < 0)
		return -1;
	CSI_READ_MAP(request, volume_context, &context);
	const struct use_request q =
		use_request(request->volume_id, request->staging_target_path, &cap, &context);
	return volumes_stage(csi->volumes, &q, err);
}
CSI_HANDLER(stage_volume, Csi__V1__NodeStageVolumeRequest, Csi__V1__NodeStageVolumeResponse);

static int unstage_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeUnstageVolumeRequest *request, Csi__V1__NodeUnstageVolumeResponse *reply,
	struct error **err)
{
	(void)call;
	(void)reply;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (csi_require(request->staging_target_path, "staging_target_path", err) < 0)
		return -1;
	return volumes_unstage(csi->volumes, request->volume_id, request->staging_target_path, err);
}
CSI_HANDLER(unstage_volume, Csi__V1__NodeUnstageVolumeRequest, Csi__V1__NodeUnstageVolumeResponse);

static int publish_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodePublishVolumeRequest *request, Csi__V1__NodePublishVolumeResponse *reply,
	struct error **err)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	CLEANUP(capability_done) struct capability cap = {0};

	(void)call;
	(void)reply;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (csi_require(request->target_path, "target_path", err) < 0)
		return -1;
	if (capability_read(request->volume_capability, &cap, err) < 0)
		return -1;
	CSI_READ_MAP(request, volume_context, &context);
	struct use_request q = use_request(request->volume_id, request->staging_target_path, &cap, &context);
	q.target_path = request->target_path;
	q.readonly = request->readonly;
	return volumes_publish(csi->volumes, &q, err);
}
CSI_HANDLER(publish_volume, Csi__V1__NodePublishVolumeRequest, Csi__V1__NodePublishVolumeResponse);

static int unpublish_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeUnpublishVolumeRequest *request, Csi__V1__NodeUnpublishVolumeResponse *reply,
	struct error **err)
{
	(void)call;
	(void)reply;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (csi_require(request->target_path, "target_path", err) < 0)
		return -1;
	return volumes_unpublish(csi->volumes, request->volume_id, request->target_path, err);
}
CSI_HANDLER(unpublish_volume, Csi__V1__NodeUnpublishVolumeRequest, Csi__V1__NodeUnpublishVolumeResponse);

static Csi__V1__VolumeUsage *usage(struct arena *arena, Csi__V1__VolumeUsage__Unit unit, uint64_t total,
	uint64_t used, uint64_t available)
{
	Csi__V1__VolumeUsage *u = arena_alloc(arena, sizeof(*u));

	csi__v1__volume_usage__init(u);
	u->unit = unit;
	u->total = (int64_t)total;
	u->used = (int64_t)used;
	u->available = (int64_t)available;
	return u;
}

static int get_volume_stats(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeGetVolumeStatsRequest *request, Csi__V1__NodeGetVolumeStatsResponse *reply,
	struct error **err)
{
	CLEANUP(health_done) struct volume_health health = {0};
	struct volume_stats stats;

	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (csi_require(request->volume_path, "volume_path", err) < 0)
		return -1;
	if (volumes_stats(csi->volumes, request->volume_id, request->volume_path, &stats, err) < 0)
		return -1;
	if (volumes_health(csi->volumes, request->volume_id, &health, err) < 0)
		return -1;
	reply->volume_condition = csi_condition(&health, call->arena);
	const struct fs_usage *u = &stats.usage;
	reply->usage = arena_alloc(call->arena, 2 * sizeof(*reply->usage));
	reply->usage[reply->n_usage++] =
		usage(call->arena, UNIT(BYTES), u->total_bytes, u->used_bytes, u->available_bytes);
	if (!stats.block)
		reply->usage[reply->n_usage++] = usage(
			call->arena, UNIT(INODES), u->total_inodes, u->used_inodes, u->available_inodes);
	return 0;
}
CSI_HANDLER(get_volume_stats, Csi__V1__NodeGetVolumeStatsRequest, Csi__V1__NodeGetVolumeStatsResponse);

static int expand_volume(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeExpandVolumeRequest *request, Csi__V1__NodeExpandVolumeResponse *reply,
	struct error **err)
{
	CLEANUP(capability_done) struct capability cap = {0};
	struct node_expand_request q = {.handle = request->volume_id, .path = request->volume_path};
	uint64_t size_bytes;

	(void)call;
	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	if (csi_require(request->volume_path, "volume_path", err) < 0)
		return -1;
	if (csi_read_range(request->capacity_range, &q.required_bytes, &q.limit_bytes, err) < 0)
		return -1;
	if (request->volume_capability && capability_read(request->volume_capability, &cap, err) < 0)
		return -1;
	if (volumes_node_expand(csi->volumes, &q, &size_bytes, err) < 0)
		return -1;
	reply->capacity_bytes = (int64_t)size_bytes;
	return 0;
}
CSI_HANDLER(expand_volume, Csi__V1__NodeExpandVolumeRequest, Csi__V1__NodeExpandVolumeResponse);

/* kubelet asks once, when the driver registers, and the scheduler counts a node's volumes against it. */
static int64_t max_volumes(const struct csi *csi)
{
	uint64_t max = volumes_limit(csi->volumes);

	return max > INT32_MAX ? 0 : (int64_t)max;
}

static int get_info(const struct csi *csi, struct grpc_call *call, const Csi__V1__NodeGetInfoRequest *request,
	Csi__V1__NodeGetInfoResponse *reply, struct error **err)
{
	(void)request;
	(void)err;
	reply->node_id = arena_strdup(call->arena, csi->node_id);
	reply->max_volumes_per_node = max_volumes(csi);
	reply->accessible_topology = csi_topology(csi->driver_name, csi->node_id, call->arena);
	return 0;
}
CSI_HANDLER(get_info, Csi__V1__NodeGetInfoRequest, Csi__V1__NodeGetInfoResponse);

static Csi__V1__NodeServiceCapability *capability(
	struct arena *arena, Csi__V1__NodeServiceCapability__RPC__Type type)
{
	Csi__V1__NodeServiceCapability *c = arena_alloc(arena, sizeof(*c));
	Csi__V1__NodeServiceCapability__RPC *rpc = arena_alloc(arena, sizeof(*rpc));

	csi__v1__node_service_capability__init(c);
	csi__v1__node_service_capability__rpc__init(rpc);
	rpc->type = type;
	c->type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
	c->rpc = rpc;
	return c;
}

static int get_capabilities(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__NodeGetCapabilitiesRequest *request, Csi__V1__NodeGetCapabilitiesResponse *reply,
	struct error **err)
{
	const struct {
		Csi__V1__NodeServiceCapability__RPC__Type type;
		bool offered;
	} all[] = {{RPC(STAGE_UNSTAGE_VOLUME), true}, {RPC(GET_VOLUME_STATS), true},
		{RPC(VOLUME_CONDITION), true}, {RPC(SINGLE_NODE_MULTI_WRITER), true},
		{RPC(EXPAND_VOLUME), volumes_can_expand(csi->volumes)},
		{RPC(GET_VOLUME_HEALTH), csi->offers_health}, {RPC(GET_STORAGE_HEALTH), csi->offers_health}};

	(void)request;
	(void)err;
	reply->capabilities = arena_alloc(call->arena, ARRAY_SIZE(all) * sizeof(*reply->capabilities));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].offered)
			reply->capabilities[reply->n_capabilities++] = capability(call->arena, all[i].type);
	}
	return 0;
}
CSI_HANDLER(get_capabilities, Csi__V1__NodeGetCapabilitiesRequest, Csi__V1__NodeGetCapabilitiesResponse);

CSI_HANDLER(
	csi_node_volume_health, Csi__V1__NodeGetVolumeHealthRequest, Csi__V1__NodeGetVolumeHealthResponse);
CSI_HANDLER(csi_storage_health, Csi__V1__NodeGetStorageHealthRequest, Csi__V1__NodeGetStorageHealthResponse);

static const struct grpc_method methods[] = {
	CSI_METHOD("Node", "NodeStageVolume", GRPC_WORKER, csi__v1__node_stage_volume, stage_volume),
	CSI_METHOD("Node", "NodeUnstageVolume", GRPC_WORKER, csi__v1__node_unstage_volume, unstage_volume),
	CSI_METHOD("Node", "NodePublishVolume", GRPC_WORKER, csi__v1__node_publish_volume, publish_volume),
	CSI_METHOD(
		"Node", "NodeUnpublishVolume", GRPC_WORKER, csi__v1__node_unpublish_volume, unpublish_volume),
	CSI_METHOD(
		"Node", "NodeGetVolumeStats", GRPC_WORKER, csi__v1__node_get_volume_stats, get_volume_stats),
	CSI_METHOD("Node", "NodeExpandVolume", GRPC_WORKER, csi__v1__node_expand_volume, expand_volume),
	CSI_METHOD("Node", "NodeGetVolumeHealth", GRPC_INLINE, csi__v1__node_get_volume_health,
		csi_node_volume_health),
	CSI_METHOD("Node", "NodeGetStorageHealth", GRPC_INLINE, csi__v1__node_get_storage_health,
		csi_storage_health),
	CSI_METHOD("Node", "NodeGetInfo", GRPC_INLINE, csi__v1__node_get_info, get_info),
	CSI_METHOD(
		"Node", "NodeGetCapabilities", GRPC_INLINE, csi__v1__node_get_capabilities, get_capabilities),
	{0},
};

struct grpc_service csi_node_service(struct csi *csi)
{
	return (struct grpc_service){.methods = methods,
		.self = csi,
		.current_step = csi_current_step,
		.volume_of = csi_volume_of};
}

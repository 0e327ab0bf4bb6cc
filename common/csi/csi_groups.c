/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.GroupController */
#include "csi/csi_groups.h"

#include "base/mem.h"
#include "base/str.h"
#include "csi/convert.h"
#include "csi/csi_snapshots.h"
#include "csi/handler.h"
#include "volume/id.h"

int csi_check_group(const Csi__V1__CreateVolumeGroupSnapshotRequest *request, struct error **err)
{
	char *const *ids = request->source_volume_ids;
	size_t n = request->n_source_volume_ids;

	if (csi_require(request->name, "name", err) < 0)
		return -1;
	if (n == 0 || n > VOLUME_GROUP_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"source_volume_ids has %zu entries, and must have 1 to %d", n, VOLUME_GROUP_MAX);
	for (size_t i = 0; i < n; i++) {
		if (csi_require(ids[i], "source_volume_ids", err) < 0)
			return -1;
		for (size_t j = 0; j < i; j++) {
			if (str_eq(ids[i], ids[j]))
				return err_set(err, ERR_INVALID_ARGUMENT,
					"volume %s is in source_volume_ids twice", ids[i]);
		}
	}
	return 0;
}

Csi__V1__VolumeGroupSnapshot *csi_group(
	const char *id, Csi__V1__Snapshot **snapshots, size_t n, struct arena *arena)
{
	Csi__V1__VolumeGroupSnapshot *g = arena_alloc(arena, sizeof(*g));

	csi__v1__volume_group_snapshot__init(g);
	g->group_snapshot_id = arena_strdup(arena, id);
	g->snapshots = snapshots;
	g->n_snapshots = n;
	g->ready_to_use = true;
	for (size_t i = 0; i < n; i++) {
		Google__Protobuf__Timestamp *taken = snapshots[i]->creation_time;

		g->ready_to_use = g->ready_to_use && snapshots[i]->ready_to_use;
		if (!g->creation_time || taken->seconds < g->creation_time->seconds)
			g->creation_time = taken;
	}
	return g;
}

void csi_fill_group_capabilities(Csi__V1__GroupControllerGetCapabilitiesResponse *reply, struct arena *arena)
{
	Csi__V1__GroupControllerServiceCapability *c = arena_alloc(arena, sizeof(*c));
	Csi__V1__GroupControllerServiceCapability__RPC *rpc = arena_alloc(arena, sizeof(*rpc));

	csi__v1__group_controller_service_capability__init(c);
	csi__v1__group_controller_service_capability__rpc__init(rpc);
	rpc->type =
		CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT;
	c->type_case = CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
	c->rpc = rpc;
	reply->capabilities = arena_alloc(arena, sizeof(*reply->capabilities));
	reply->capabilities[reply->n_capabilities++] = c;
}

static Csi__V1__VolumeGroupSnapshot *make_group(const struct group_info *g, struct arena *arena)
{
	Csi__V1__Snapshot **snapshots = arena_alloc(arena, g->n * sizeof(*snapshots));

	for (size_t i = 0; i < g->n; i++)
		snapshots[i] = csi_snapshot_of(g->snapshots[i], arena);
	Csi__V1__VolumeGroupSnapshot *out = csi_group(g->id, snapshots, g->n, arena);
	out->ready_to_use = out->ready_to_use && g->complete;
	return out;
}

/* Return: strv_free() */
static char **list_of(char *const *texts, size_t n)
{
	char **list = NULL;

	for (size_t i = 0; i < n; i++)
		strv_add(&list, texts[i]);
	return list;
}

static int create_group(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__CreateVolumeGroupSnapshotRequest *request,
	Csi__V1__CreateVolumeGroupSnapshotResponse *reply, struct error **err)
{
	CLEANUP(group_info_freep) struct group_info *g = NULL;
	CLEANUP(strmap_done) struct strmap parameters = {0};
	CLEANUP(strv_freep)
	char **sources = list_of(request->source_volume_ids, request->n_source_volume_ids);
	const struct group_request q = {.name = request->name,
		.sources = sources,
		.made_by_controller = csi->made_by_controller,
		.parameters = &parameters};

	if (csi_check_group(request, err) < 0)
		return -1;
	CSI_READ_MAP(request, parameters, &parameters);
	if (volumes_create_group(csi->volumes, &q, &g, err) < 0)
		return -1;
	reply->group_snapshot = make_group(g, call->arena);
	return 0;
}
CSI_HANDLER(
	create_group, Csi__V1__CreateVolumeGroupSnapshotRequest, Csi__V1__CreateVolumeGroupSnapshotResponse);

static int delete_group(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__DeleteVolumeGroupSnapshotRequest *request,
	Csi__V1__DeleteVolumeGroupSnapshotResponse *reply, struct error **err)
{
	CLEANUP(strv_freep) char **snapshots = list_of(request->snapshot_ids, request->n_snapshot_ids);

	(void)call;
	(void)reply;
	if (csi_require(request->group_snapshot_id, "group_snapshot_id", err) < 0)
		return -1;
	return volumes_delete_group(csi->volumes, request->group_snapshot_id, snapshots, err);
}
CSI_HANDLER(
	delete_group, Csi__V1__DeleteVolumeGroupSnapshotRequest, Csi__V1__DeleteVolumeGroupSnapshotResponse);

static int get_group(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetVolumeGroupSnapshotRequest *request, Csi__V1__GetVolumeGroupSnapshotResponse *reply,
	struct error **err)
{
	CLEANUP(group_info_freep) struct group_info *g = NULL;
	CLEANUP(strv_freep) char **snapshots = list_of(request->snapshot_ids, request->n_snapshot_ids);

	if (csi_require(request->group_snapshot_id, "group_snapshot_id", err) < 0 ||
		volumes_require_ready(csi->volumes, err) < 0)
		return -1;
	if (volumes_get_group(csi->volumes, request->group_snapshot_id, snapshots, &g, err) < 0)
		return -1;
	reply->group_snapshot = make_group(g, call->arena);
	return 0;
}
CSI_HANDLER(get_group, Csi__V1__GetVolumeGroupSnapshotRequest, Csi__V1__GetVolumeGroupSnapshotResponse);

static int get_capabilities(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GroupControllerGetCapabilitiesRequest *request,
	Csi__V1__GroupControllerGetCapabilitiesResponse *reply, struct error **err)
{
	(void)csi;
	(void)request;
	(void)err;
	csi_fill_group_capabilities(reply, call->arena);
	return 0;
}
CSI_HANDLER(get_capabilities, Csi__V1__GroupControllerGetCapabilitiesRequest,
	Csi__V1__GroupControllerGetCapabilitiesResponse);

static const struct grpc_method methods[] = {
	CSI_METHOD("GroupController", "CreateVolumeGroupSnapshot", GRPC_WORKER,
		csi__v1__create_volume_group_snapshot, create_group),
	CSI_METHOD("GroupController", "DeleteVolumeGroupSnapshot", GRPC_WORKER,
		csi__v1__delete_volume_group_snapshot, delete_group),
	CSI_METHOD("GroupController", "GetVolumeGroupSnapshot", GRPC_INLINE,
		csi__v1__get_volume_group_snapshot, get_group),
	CSI_METHOD("GroupController", "GroupControllerGetCapabilities", GRPC_INLINE,
		csi__v1__group_controller_get_capabilities, get_capabilities),
	{0},
};

struct grpc_service csi_group_service(struct csi *csi)
{
	return (struct grpc_service){.methods = methods,
		.self = csi,
		.current_step = csi_current_step,
		.volume_of = csi_volume_of};
}

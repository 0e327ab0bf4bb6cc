/* SPDX-License-Identifier: Apache-2.0 */
/* The method tables: from gRPC calls to the work behind them and back. */
#include "base/mem.h"
#include "controller/controller_private.h"
#include "csi/csi.h"
#include "csi/csi_groups.h"
#include "csi/field_limits.h"
#include "csi/reply.h"

static void finish_call(void *user, struct error *error)
{
	grpc_call_finish(user, error);
}

static bool call_is_wanted(void *user)
{
	return grpc_call_is_wanted(user);
}

/* Return: false: the call is finished, since @request is invalid. */
static bool begin(struct grpc_call *call, const void *request, struct waiter *ret)
{
	struct error *err = NULL;

	if (csi_check_request(request, &err) < 0) {
		grpc_call_finish(call, err);
		return false;
	}
	*ret = (struct waiter){.arena = call->arena,
		.deadline_ns = call->deadline_ns,
		.finish = finish_call,
		.is_wanted = call_is_wanted,
		.user = call};
	return true;
}

static void create_volume(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	if (begin(call, request, &waiter))
		controller_create_for_claim(self, &waiter, request, reply);
}

static void delete_volume(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	(void)reply;
	if (begin(call, request, &waiter))
		controller_delete(self, &waiter, request);
}

static void expand_volume(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	if (begin(call, request, &waiter))
		controller_expand(self, &waiter, request, reply);
}

static void modify_volume(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	(void)reply;
	if (begin(call, request, &waiter))
		controller_modify(self, &waiter, request);
}

static void create_snapshot(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	if (begin(call, request, &waiter))
		controller_create_snapshot(self, &waiter, request, reply, /* joint= */ NULL, 0);
}

static void delete_snapshot(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	(void)reply;
	if (begin(call, request, &waiter))
		controller_delete_snapshot(self, &waiter, request);
}

static void create_group(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	if (begin(call, request, &waiter))
		controller_create_group(self, &waiter, request, reply);
}

static void delete_group(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	(void)reply;
	if (begin(call, request, &waiter))
		controller_delete_group(self, &waiter, request);
}

static void get_group(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	if (begin(call, request, &waiter))
		controller_get_group(self, &waiter, request, reply);
}

static void validate(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct waiter waiter;

	if (begin(call, request, &waiter))
		controller_validate(self, &waiter, request, reply);
}

static int list_volumes(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	if (csi_check_request(request, err) < 0)
		return -1;
	return controller_list(self, call->arena, request, reply, err);
}

static int list_snapshots(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	if (csi_check_request(request, err) < 0)
		return -1;
	return controller_list_snapshots(self, call->arena, request, reply, err);
}

static int get_snapshot(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	if (csi_check_request(request, err) < 0)
		return -1;
	return controller_get_snapshot(self, call->arena, request, reply, err);
}

static int get_group_capabilities(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	(void)self;
	(void)request;
	(void)err;
	csi_fill_group_capabilities(reply, call->arena);
	return 0;
}

static int list_health(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	if (csi_check_request(request, err) < 0)
		return -1;
	return controller_list_health(self, call->arena, request, reply, err);
}

static int get_health(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	if (csi_check_request(request, err) < 0)
		return -1;
	return controller_get_health(self, call->arena, request, reply, err);
}

static int get_capacity(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	if (csi_check_request(request, err) < 0)
		return -1;
	return controller_capacity(self, call->arena, request, reply, err);
}

static int get_capabilities(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const struct controller *c = self;

	(void)request;
	(void)err;
	csi_fill_controller_capabilities(
		reply, call->arena, (struct csi_offers){.expands = true, .health = c->config.offers_health});
	return 0;
}

static int get_plugin_info(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const struct controller *c = self;

	(void)request;
	(void)err;
	csi_fill_plugin_info(reply, call->arena, c->config.driver_name, c->config.version);
	return 0;
}

static int get_plugin_capabilities(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	(void)self;
	(void)request;
	(void)err;
	csi_fill_plugin_capabilities(reply, call->arena, /* expands= */ true);
	return 0;
}

static int probe(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;

	(void)request;
	(void)err;
	csi_fill_ready(reply, call->arena, controller_require_ready(self, &why) == 0);
	return 0;
}

#define METHOD(service, name, kind_, prefix, how)                                                            \
	{.path = "/csi.v1." service "/" name,                                                                \
		.kind = (kind_),                                                                             \
		.request = &csi__v1__##prefix##_request__descriptor,                                         \
		.reply = &csi__v1__##prefix##_response__descriptor,                                          \
		how}

static const struct grpc_method identity_methods[] = {
	METHOD("Identity", "GetPluginInfo", GRPC_INLINE, get_plugin_info, .handle = get_plugin_info),
	METHOD("Identity", "GetPluginCapabilities", GRPC_INLINE, get_plugin_capabilities,
		.handle = get_plugin_capabilities),
	METHOD("Identity", "Probe", GRPC_INLINE, probe, .handle = probe),
	{0},
};

static const struct grpc_method controller_methods[] = {
	METHOD("Controller", "CreateVolume", GRPC_ASYNC, create_volume, .start = create_volume),
	METHOD("Controller", "DeleteVolume", GRPC_ASYNC, delete_volume, .start = delete_volume),
	METHOD("Controller", "ControllerExpandVolume", GRPC_ASYNC, controller_expand_volume,
		.start = expand_volume),
	METHOD("Controller", "ControllerModifyVolume", GRPC_ASYNC, controller_modify_volume,
		.start = modify_volume),
	METHOD("Controller", "ValidateVolumeCapabilities", GRPC_ASYNC, validate_volume_capabilities,
		.start = validate),
	METHOD("Controller", "ListVolumes", GRPC_INLINE, list_volumes, .handle = list_volumes),
	METHOD("Controller", "GetCapacity", GRPC_INLINE, get_capacity, .handle = get_capacity),
	METHOD("Controller", "CreateSnapshot", GRPC_ASYNC, create_snapshot, .start = create_snapshot),
	METHOD("Controller", "DeleteSnapshot", GRPC_ASYNC, delete_snapshot, .start = delete_snapshot),
	METHOD("Controller", "ListSnapshots", GRPC_INLINE, list_snapshots, .handle = list_snapshots),
	METHOD("Controller", "GetSnapshot", GRPC_INLINE, get_snapshot, .handle = get_snapshot),
	METHOD("Controller", "ControllerListVolumeHealth", GRPC_INLINE, controller_list_volume_health,
		.handle = list_health),
	METHOD("Controller", "ControllerGetVolumeHealth", GRPC_INLINE, controller_get_volume_health,
		.handle = get_health),
	METHOD("Controller", "ControllerGetCapabilities", GRPC_INLINE, controller_get_capabilities,
		.handle = get_capabilities),
	{0},
};

static const struct grpc_method group_methods[] = {
	METHOD("GroupController", "CreateVolumeGroupSnapshot", GRPC_ASYNC, create_volume_group_snapshot,
		.start = create_group),
	METHOD("GroupController", "DeleteVolumeGroupSnapshot", GRPC_ASYNC, delete_volume_group_snapshot,
		.start = delete_group),
	METHOD("GroupController", "GetVolumeGroupSnapshot", GRPC_ASYNC, get_volume_group_snapshot,
		.start = get_group),
	METHOD("GroupController", "GroupControllerGetCapabilities", GRPC_INLINE,
		group_controller_get_capabilities, .handle = get_group_capabilities),
	{0},
};

struct grpc_service controller_identity_service(struct controller *c)
{
	return (struct grpc_service){.methods = identity_methods, .self = c};
}

struct grpc_service controller_service(struct controller *c)
{
	return (struct grpc_service){.methods = controller_methods, .self = c, .volume_of = csi_volume_of};
}

struct grpc_service controller_group_service(struct controller *c)
{
	return (struct grpc_service){.methods = group_methods, .self = c, .volume_of = csi_volume_of};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/setup_service.h"

#include "inspect.pb-c.h"

#include "base/str.h"

static void fill_dirs(Inspect__V0__GetSetupResponse *reply, struct arena *arena, char *const *dirs)
{
	reply->kubelet_dirs = arena_alloc(arena, strv_len(dirs) * sizeof(*reply->kubelet_dirs));
	for (size_t i = 0; dirs && dirs[i]; i++)
		reply->kubelet_dirs[reply->n_kubelet_dirs++] = arena_strdup(arena, dirs[i]);
}

static int get_setup(
	void *self, struct grpc_call *call, const void *request, void *message, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;
	Inspect__V0__GetSetupResponse *reply = message;
	const struct setup_service *s = self;

	(void)request;
	(void)err;
	reply->driver_name = arena_strdup(call->arena, s->csi->driver_name);
	reply->node_id = arena_strdup(call->arena, s->csi->node_id);
	reply->version = arena_strdup(call->arena, s->csi->version);
	reply->device_manager = arena_strdup(call->arena, s->device_manager);
	reply->state_path = arena_strdup(call->arena, s->state_path);
	reply->fake_path = arena_strdup(call->arena, s->fake_path ? s->fake_path : "");
	fill_dirs(reply, call->arena, s->kubelet_dirs);
	if (volumes_require_ready(s->csi->volumes, &why) < 0)
		reply->not_ready = arena_strdup(call->arena, why->msg);
	return 0;
}

static const struct grpc_method methods[] = {
	{
		.path = "/inspect.v0.Inspect/GetSetup",
		.kind = GRPC_INLINE,
		.request = &inspect__v0__get_setup_request__descriptor,
		.reply = &inspect__v0__get_setup_response__descriptor,
		.handle = get_setup,
	},
	{0},
};

struct grpc_service setup_service(struct setup_service *s)
{
	return (struct grpc_service){.methods = methods, .self = s};
}

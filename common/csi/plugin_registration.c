/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/plugin_registration.h"

#include "pluginregistration.pb-c.h"

/* CSI versions that kubelet may speak with it, as node-driver-registrar says them for every driver of
 * CSI 1.x. */
#define SUPPORTED_VERSION "1.0.0"

static int get_info(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const struct plugin_registration *p = self;
	Pluginregistration__PluginInfo *info = reply;

	(void)request;
	(void)err;
	info->type = arena_strdup(call->arena, "CSIPlugin");
	info->name = arena_strdup(call->arena, p->driver_name);
	info->endpoint = arena_strdup(call->arena, p->endpoint);
	info->supported_versions = arena_alloc(call->arena, sizeof(*info->supported_versions));
	info->supported_versions[info->n_supported_versions++] = arena_strdup(call->arena, SUPPORTED_VERSION);
	return 0;
}

static int notify(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const struct plugin_registration *p = self;
	const Pluginregistration__RegistrationStatus *status = request;

	(void)call;
	(void)reply;
	(void)err;
	p->on_registered(p->user, status->plugin_registered, status->error);
	return 0;
}

static const struct grpc_method methods[] = {
	{
		.path = "/pluginregistration.Registration/GetInfo",
		.kind = GRPC_INLINE,
		.request = &pluginregistration__info_request__descriptor,
		.reply = &pluginregistration__plugin_info__descriptor,
		.handle = get_info,
	},
	{
		.path = "/pluginregistration.Registration/NotifyRegistrationStatus",
		.kind = GRPC_INLINE,
		.request = &pluginregistration__registration_status__descriptor,
		.reply = &pluginregistration__registration_status_response__descriptor,
		.handle = notify,
	},
	{0},
};

struct grpc_service plugin_registration_service(struct plugin_registration *p)
{
	return (struct grpc_service){.methods = methods, .self = p};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Identity */
#include "csi.pb-c.h"

#include "csi/handler.h"
#include "csi/reply.h"

static int get_plugin_info(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetPluginInfoRequest *request, Csi__V1__GetPluginInfoResponse *reply,
	struct error **err)
{
	(void)request;
	(void)err;
	csi_fill_plugin_info(reply, call->arena, csi->driver_name, csi->version);
	return 0;
}
CSI_HANDLER(get_plugin_info, Csi__V1__GetPluginInfoRequest, Csi__V1__GetPluginInfoResponse);

static int get_plugin_capabilities(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetPluginCapabilitiesRequest *request, Csi__V1__GetPluginCapabilitiesResponse *reply,
	struct error **err)
{
	(void)request;
	(void)err;
	csi_fill_plugin_capabilities(reply, call->arena, volumes_can_expand(csi->volumes));
	return 0;
}
CSI_HANDLER(get_plugin_capabilities, Csi__V1__GetPluginCapabilitiesRequest,
	Csi__V1__GetPluginCapabilitiesResponse);

static int probe(const struct csi *csi, struct grpc_call *call, const Csi__V1__ProbeRequest *request,
	Csi__V1__ProbeResponse *reply, struct error **err)
{
	(void)request;
	(void)err;
	csi_fill_ready(reply, call->arena, volumes_is_ready(csi->volumes));
	return 0;
}
CSI_HANDLER(probe, Csi__V1__ProbeRequest, Csi__V1__ProbeResponse);

static const struct grpc_method methods[] = {
	CSI_METHOD("Identity", "GetPluginInfo", GRPC_INLINE, csi__v1__get_plugin_info, get_plugin_info),
	CSI_METHOD("Identity", "GetPluginCapabilities", GRPC_INLINE, csi__v1__get_plugin_capabilities,
		get_plugin_capabilities),
	CSI_METHOD("Identity", "Probe", GRPC_INLINE, csi__v1__probe, probe),
	{0},
};

struct grpc_service csi_identity_service(struct csi *csi)
{
	return (struct grpc_service){.methods = methods, .self = csi, .current_step = csi_current_step};
}

/* csi.v1.Identity */
#include "csi.pb-c.h"

#include "csi/handler.h"

#define SERVICE(name) CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name

static int get_plugin_info(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetPluginInfoRequest *request, Csi__V1__GetPluginInfoResponse *reply,
	struct error **err)
{
	(void)request;
	(void)err;
	reply->name = arena_strdup(call->arena, csi->driver_name);
	reply->vendor_version = arena_strdup(call->arena, csi->version);
	return 0;
}
CSI_HANDLER(get_plugin_info, Csi__V1__GetPluginInfoRequest, Csi__V1__GetPluginInfoResponse);

static int get_plugin_capabilities(const struct csi *csi, struct grpc_call *call,
	const Csi__V1__GetPluginCapabilitiesRequest *request, Csi__V1__GetPluginCapabilitiesResponse *reply,
	struct error **err)
{
	static const Csi__V1__PluginCapability__Service__Type types[] = {
		SERVICE(CONTROLLER_SERVICE), SERVICE(VOLUME_ACCESSIBILITY_CONSTRAINTS)};

	(void)csi;
	(void)request;
	(void)err;
	reply->capabilities = arena_alloc(call->arena, ARRAY_SIZE(types) * sizeof(*reply->capabilities));
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		Csi__V1__PluginCapability *c = arena_alloc(call->arena, sizeof(*c));
		Csi__V1__PluginCapability__Service *s = arena_alloc(call->arena, sizeof(*s));

		csi__v1__plugin_capability__init(c);
		csi__v1__plugin_capability__service__init(s);
		s->type = types[i];
		c->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
		c->service = s;
		reply->capabilities[reply->n_capabilities++] = c;
	}
	return 0;
}
CSI_HANDLER(get_plugin_capabilities, Csi__V1__GetPluginCapabilitiesRequest,
	Csi__V1__GetPluginCapabilitiesResponse);

static int probe(const struct csi *csi, struct grpc_call *call, const Csi__V1__ProbeRequest *request,
	Csi__V1__ProbeResponse *reply, struct error **err)
{
	(void)request;
	(void)err;
	reply->ready = arena_alloc(call->arena, sizeof(*reply->ready));
	google__protobuf__bool_value__init(reply->ready);
	reply->ready->value = volumes_is_ready(csi->volumes);
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
	return (struct grpc_service){.methods = methods, .self = csi, .doing = csi_doing};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define RPC(name)     CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
#define SERVICE(name) CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##name

char *csi_token(struct arena *arena, const char *last_id)
{
	size_t n = sizeof(CSI_TOKEN_PREFIX) + strlen(last_id);
	char *token = arena_alloc(arena, n);

	snprintf(token, n, CSI_TOKEN_PREFIX "%s", last_id);
	return token;
}

/* CSI: the message is required. */
Csi__V1__VolumeCondition *csi_condition(const struct volume_health *h, struct arena *arena)
{
	Csi__V1__VolumeCondition *c = arena_alloc(arena, sizeof(*c));
	CLEANUP(free_charp) char *text = health_text(h);

	csi__v1__volume_condition__init(c);
	c->abnormal = h->n > 0;
	c->message = arena_strdup(arena, c->abnormal ? text : "no error is known");
	return c;
}

Csi__V1__VolumeHealth *csi_volume_health(const char *id, const struct volume_health *h, struct arena *arena)
{
	Csi__V1__VolumeHealth *out = arena_alloc(arena, sizeof(*out));

	csi__v1__volume_health__init(out);
	out->volume_id = arena_strdup(arena, id);
	out->health_statuses = arena_alloc(arena, h->n * sizeof(*out->health_statuses));
	for (size_t i = 0; i < h->n; i++) {
		Csi__V1__VolumeHealth__VolumeHealthEntry *e = arena_alloc(arena, sizeof(*e));

		csi__v1__volume_health__volume_health_entry__init(e);
		e->status = (Csi__V1__VolumeHealthErrorType)h->list[i].severity;
		e->reason = arena_strdup(arena, h->list[i].reason);
		e->message = arena_strdup(arena, h->list[i].message);
		out->health_statuses[out->n_health_statuses++] = e;
	}
	return out;
}

/* Up to CSI 1.12 a volume's condition travels in its status; clients that do not ask for it skip the field.
 */
Csi__V1__ListVolumesResponse__VolumeStatus *csi_missing_status(struct arena *arena)
{
	Csi__V1__ListVolumesResponse__VolumeStatus *status = arena_alloc(arena, sizeof(*status));

	csi__v1__list_volumes_response__volume_status__init(status);
	status->volume_condition = arena_alloc(arena, sizeof(*status->volume_condition));
	csi__v1__volume_condition__init(status->volume_condition);
	status->volume_condition->abnormal = true;
	status->volume_condition->message = arena_strdup(
		arena, "missing: its device is not available, or its pool is absent or incomplete");
	return status;
}

Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *csi_confirmed(
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request, struct arena *arena)
{
	Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *c = arena_alloc(arena, sizeof(*c));

	csi__v1__validate_volume_capabilities_response__confirmed__init(c);
	c->n_volume_capabilities = request->n_volume_capabilities;
	c->volume_capabilities = request->volume_capabilities;
	return c;
}

Csi__V1__Snapshot *csi_snapshot(const struct csi_snapshot *s, struct arena *arena)
{
	Csi__V1__Snapshot *out = arena_alloc(arena, sizeof(*out));

	csi__v1__snapshot__init(out);
	out->snapshot_id = arena_strdup(arena, s->id);
	out->source_volume_id = arena_strdup(arena, s->source ? s->source : "");
	out->group_snapshot_id = arena_strdup(arena, s->group ? s->group : "");
	out->size_bytes = (int64_t)s->size_bytes;
	out->creation_time = arena_alloc(arena, sizeof(*out->creation_time));
	google__protobuf__timestamp__init(out->creation_time);
	out->creation_time->seconds = (int64_t)s->taken_s;
	out->ready_to_use = s->ready;
	return out;
}

Csi__V1__ListSnapshotsResponse__Entry *csi_snapshot_entry(Csi__V1__Snapshot *s, struct arena *arena)
{
	Csi__V1__ListSnapshotsResponse__Entry *e = arena_alloc(arena, sizeof(*e));

	csi__v1__list_snapshots_response__entry__init(e);
	e->snapshot = s;
	return e;
}

Csi__V1__VolumeContentSource *csi_content_source(struct arena *arena, const char *handle, bool is_snapshot)
{
	Csi__V1__VolumeContentSource *source = arena_alloc(arena, sizeof(*source));

	csi__v1__volume_content_source__init(source);
	if (is_snapshot) {
		source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
		source->snapshot = arena_alloc(arena, sizeof(*source->snapshot));
		csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
		source->snapshot->snapshot_id = arena_strdup(arena, handle);
		return source;
	}
	source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
	source->volume = arena_alloc(arena, sizeof(*source->volume));
	csi__v1__volume_content_source__volume_source__init(source->volume);
	source->volume->volume_id = arena_strdup(arena, handle);
	return source;
}

void csi_fill_capacity(Csi__V1__GetCapacityResponse *reply, struct arena *arena, uint64_t available_bytes,
	uint64_t max_volume_bytes)
{
	reply->available_capacity = (int64_t)available_bytes;
	reply->maximum_volume_size = arena_alloc(arena, sizeof(*reply->maximum_volume_size));
	google__protobuf__int64_value__init(reply->maximum_volume_size);
	reply->maximum_volume_size->value = (int64_t)max_volume_bytes;
}

static Csi__V1__ControllerServiceCapability *controller_capability(
	struct arena *arena, Csi__V1__ControllerServiceCapability__RPC__Type type)
{
	Csi__V1__ControllerServiceCapability *c = arena_alloc(arena, sizeof(*c));
	Csi__V1__ControllerServiceCapability__RPC *rpc = arena_alloc(arena, sizeof(*rpc));

	csi__v1__controller_service_capability__init(c);
	csi__v1__controller_service_capability__rpc__init(rpc);
	rpc->type = type;
	c->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
	c->rpc = rpc;
	return c;
}

void csi_fill_controller_capabilities(
	Csi__V1__ControllerGetCapabilitiesResponse *reply, struct arena *arena, struct csi_offers offers)
{
	const struct {
		Csi__V1__ControllerServiceCapability__RPC__Type type;
		bool offered;
	} all[] = {{RPC(CREATE_DELETE_VOLUME), true}, {RPC(LIST_VOLUMES), true}, {RPC(GET_CAPACITY), true},
		{RPC(SINGLE_NODE_MULTI_WRITER), true}, {RPC(CLONE_VOLUME), true},
		{RPC(CREATE_DELETE_SNAPSHOT), true}, {RPC(LIST_SNAPSHOTS), true}, {RPC(GET_SNAPSHOT), true},
		{RPC(MODIFY_VOLUME), true}, {RPC(EXPAND_VOLUME), offers.expands},
		{RPC(GET_VOLUME_HEALTH), offers.health}, {RPC(LIST_VOLUME_HEALTH), offers.health}};

	reply->capabilities = arena_alloc(arena, ARRAY_SIZE(all) * sizeof(*reply->capabilities));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].offered)
			reply->capabilities[reply->n_capabilities++] =
				controller_capability(arena, all[i].type);
	}
}

void csi_fill_plugin_info(Csi__V1__GetPluginInfoResponse *reply, struct arena *arena, const char *driver_name,
	const char *version)
{
	reply->name = arena_strdup(arena, driver_name);
	reply->vendor_version = arena_strdup(arena, version);
}

/* csi.proto of CSI: ONLINE says that published volumes may be expanded; OFFLINE would forbid it. */
static Csi__V1__PluginCapability *expansion_capability(struct arena *arena)
{
	Csi__V1__PluginCapability *c = arena_alloc(arena, sizeof(*c));
	Csi__V1__PluginCapability__VolumeExpansion *e = arena_alloc(arena, sizeof(*e));

	csi__v1__plugin_capability__init(c);
	csi__v1__plugin_capability__volume_expansion__init(e);
	e->type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
	c->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
	c->volume_expansion = e;
	return c;
}

void csi_fill_plugin_capabilities(
	Csi__V1__GetPluginCapabilitiesResponse *reply, struct arena *arena, bool expands)
{
	static const Csi__V1__PluginCapability__Service__Type types[] = {SERVICE(CONTROLLER_SERVICE),
		SERVICE(VOLUME_ACCESSIBILITY_CONSTRAINTS), SERVICE(GROUP_CONTROLLER_SERVICE)};

	reply->capabilities = arena_alloc(arena, (ARRAY_SIZE(types) + 1) * sizeof(*reply->capabilities));
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		Csi__V1__PluginCapability *c = arena_alloc(arena, sizeof(*c));
		Csi__V1__PluginCapability__Service *s = arena_alloc(arena, sizeof(*s));

		csi__v1__plugin_capability__init(c);
		csi__v1__plugin_capability__service__init(s);
		s->type = types[i];
		c->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
		c->service = s;
		reply->capabilities[reply->n_capabilities++] = c;
	}
	if (expands)
		reply->capabilities[reply->n_capabilities++] = expansion_capability(arena);
}

void csi_fill_ready(Csi__V1__ProbeResponse *reply, struct arena *arena, bool ready)
{
	reply->ready = arena_alloc(arena, sizeof(*reply->ready));
	google__protobuf__bool_value__init(reply->ready);
	reply->ready->value = ready;
}

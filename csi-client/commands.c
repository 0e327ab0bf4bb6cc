/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "csi.pb-c.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/args.h"
#include "print_message.h"
#include "print_volumes.h"

#define HELP_MAX_BYTES 16384

#define CALL(c, service, method, request, prefix, err)                                                       \
	client_call(                                                                                         \
		(c), "/csi.v1." service "/" method, &(request)->base, &prefix##_response__descriptor, (err))

#define ASK(c, service, method, request, prefix, ret, err)                                                   \
	client_ask((c), "/csi.v1." service "/" method, &(request)->base, &prefix##_response__descriptor,     \
		(ret), (err))

/* A capability and what it points to. */
struct capability {
	Csi__V1__VolumeCapability message;
	Csi__V1__VolumeCapability *list[1];
	Csi__V1__VolumeCapability__MountVolume mount;
	Csi__V1__VolumeCapability__BlockVolume block;
	Csi__V1__VolumeCapability__AccessMode mode;
};

static int fill_capability(struct client *c, struct capability *cap, struct error **err)
{
	csi__v1__volume_capability__init(&cap->message);
	csi__v1__volume_capability__mount_volume__init(&cap->mount);
	csi__v1__volume_capability__block_volume__init(&cap->block);
	csi__v1__volume_capability__access_mode__init(&cap->mode);
	const ProtobufCEnumValue *mode = protobuf_c_enum_descriptor_get_value_by_name(
		&csi__v1__volume_capability__access_mode__mode__descriptor, c->access_mode);
	if (!mode)
		return err_set(err, ERR_INVALID_ARGUMENT, "unknown access mode \"%s\"", c->access_mode);
	cap->mode.mode = (Csi__V1__VolumeCapability__AccessMode__Mode)mode->value;
	cap->mount.fs_type = (char *)(uintptr_t)c->fs_type;
	cap->mount.n_mount_flags = strv_len(c->mount_flags);
	cap->mount.mount_flags = c->mount_flags;
	cap->message.access_mode = &cap->mode;
	if (c->block) {
		cap->message.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		cap->message.block = &cap->block;
	} else {
		cap->message.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
		cap->message.mount = &cap->mount;
	}
	cap->list[0] = &cap->message;
	return 0;
}

/* Makes the entries of a map field (of the type Entry) from -parameter options; the arrays are the caller's
 * to free. */
#define FILL_MAP(Entry, init, map, request, field)                                                           \
	do {                                                                                                 \
		size_t n_ = (map)->n;                                                                        \
		Entry *entries_ = x_calloc(n_, sizeof(*entries_));                                           \
		(request)->field = x_calloc(n_, sizeof(*(request)->field));                                  \
		(request)->n_##field = n_;                                                                   \
		for (size_t i_ = 0; i_ < n_; i_++) {                                                         \
			init(&entries_[i_]);                                                                 \
			entries_[i_].key = (map)->entries[i_].key;                                           \
			entries_[i_].value = (map)->entries[i_].value;                                       \
			(request)->field[i_] = &entries_[i_];                                                \
		}                                                                                            \
		if (n_ == 0)                                                                                 \
			free(entries_);                                                                      \
	} while (0)

#define FREE_MAP(request, field)                                                                             \
	do {                                                                                                 \
		if ((request)->n_##field > 0)                                                                \
			free((request)->field[0]);                                                           \
		free((request)->field);                                                                      \
	} while (0)

static int run_info(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__GetPluginInfoRequest q;
	csi__v1__get_plugin_info_request__init(&q);

	(void)operands;
	return CALL(c, "Identity", "GetPluginInfo", &q, csi__v1__get_plugin_info, err);
}

static int run_probe(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__ProbeRequest q;
	csi__v1__probe_request__init(&q);
	ProtobufCMessage *answer;

	(void)operands;
	if (ASK(c, "Identity", "Probe", &q, csi__v1__probe, &answer, err) < 0)
		return -1;
	/* csi.proto: an answer without the field counts as ready */
	const Google__Protobuf__BoolValue *ready = ((const Csi__V1__ProbeResponse *)answer)->ready;
	bool is_ready = !ready || ready->value;
	int rc = client_show(c, answer, err);
	protobuf_c_message_free_unpacked(answer, NULL);
	if (rc < 0 || is_ready)
		return rc;
	return err_set(err, ERR_UNAVAILABLE, "the driver is not ready; its log says what it is doing");
}

/* A node has no controller service, or the controller no node service: that is no failure of the question. */
static int skip_unserved(int rc, const char *service, struct error **err)
{
	if (rc == 0 || (*err)->code != ERR_UNIMPLEMENTED)
		return rc;
	fprintf(stderr, "the %s service is not served here\n", service);
	error_clear(err);
	return 0;
}

static int ask_capabilities(struct client *c, ProtobufCMessage **plugin, ProtobufCMessage **controller,
	ProtobufCMessage **node, struct error **err)
{
	Csi__V1__GetPluginCapabilitiesRequest of_plugin;
	csi__v1__get_plugin_capabilities_request__init(&of_plugin);
	Csi__V1__ControllerGetCapabilitiesRequest of_controller;
	csi__v1__controller_get_capabilities_request__init(&of_controller);
	Csi__V1__NodeGetCapabilitiesRequest of_node;
	csi__v1__node_get_capabilities_request__init(&of_node);

	if (ASK(c, "Identity", "GetPluginCapabilities", &of_plugin, csi__v1__get_plugin_capabilities, plugin,
		    err) < 0)
		return -1;
	int rc = ASK(c, "Controller", "ControllerGetCapabilities", &of_controller,
		csi__v1__controller_get_capabilities, controller, err);
	if (skip_unserved(rc, "controller", err) < 0)
		return -1;
	rc = ASK(c, "Node", "NodeGetCapabilities", &of_node, csi__v1__node_get_capabilities, node, err);
	return skip_unserved(rc, "node", err);
}

static int run_capabilities(struct client *c, char *const *operands, struct error **err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(CLIENT_OUTPUT_MAX_BYTES);
	ProtobufCMessage *replies[3] = {NULL};
	int rc = ask_capabilities(c, &replies[0], &replies[1], &replies[2], err);

	(void)operands;
	if (rc == 0) {
		const struct print_part parts[] = {
			{"plugin", replies[0]}, {"controller", replies[1]}, {"node", replies[2]}};

		print_parts(parts, ARRAY_SIZE(parts), c->json, &out);
		rc = client_print(&out, err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		if (replies[i])
			protobuf_c_message_free_unpacked(replies[i], NULL);
	}
	return rc;
}

static int run_create(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__VolumeContentSource source;
	csi__v1__volume_content_source__init(&source);
	Csi__V1__VolumeContentSource__VolumeSource volume;
	csi__v1__volume_content_source__volume_source__init(&volume);
	Csi__V1__VolumeContentSource__SnapshotSource snapshot;
	csi__v1__volume_content_source__snapshot_source__init(&snapshot);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);
	struct capability cap;

	if (fill_capability(c, &cap, err) < 0)
		return -1;
	range.required_bytes = (int64_t)c->size_bytes;
	range.limit_bytes = (int64_t)c->limit_bytes;
	q.name = operands[0];
	q.capacity_range = &range;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = cap.list;
	FILL_MAP(Csi__V1__CreateVolumeRequest__ParametersEntry,
		csi__v1__create_volume_request__parameters_entry__init, &c->parameters, &q, parameters);
	if (c->source) {
		source.volume = &volume;
		source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
		volume.volume_id = (char *)(uintptr_t)c->source;
		q.volume_content_source = &source;
	} else if (c->snapshot) {
		source.snapshot = &snapshot;
		source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
		snapshot.snapshot_id = (char *)(uintptr_t)c->snapshot;
		q.volume_content_source = &source;
	}
	int rc = CALL(c, "Controller", "CreateVolume", &q, csi__v1__create_volume, err);
	FREE_MAP(&q, parameters);
	return rc;
}

/* DeleteVolume succeeds for any ID. Return: whether the driver says that there is no volume @id. */
static bool lacks_volume(struct client *c, char *id)
{
	Csi__V1__ControllerGetVolumeHealthRequest q;
	csi__v1__controller_get_volume_health_request__init(&q);
	CLEANUP(error_freep) struct error *why = NULL;
	ProtobufCMessage *answer;

	q.volume_id = id;
	if (ASK(c, "Controller", "ControllerGetVolumeHealth", &q, csi__v1__controller_get_volume_health,
		    &answer, &why) < 0)
		return why->code == ERR_NOT_FOUND;
	protobuf_c_message_free_unpacked(answer, NULL);
	return false;
}

static int run_delete(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__DeleteVolumeRequest q;
	csi__v1__delete_volume_request__init(&q);
	bool is_unknown = lacks_volume(c, operands[0]);

	q.volume_id = operands[0];
	if (CALL(c, "Controller", "DeleteVolume", &q, csi__v1__delete_volume, err) < 0)
		return -1;
	if (is_unknown)
		fprintf(stderr, "there was no volume %s, or it was being deleted already\n", operands[0]);
	return 0;
}

static int run_create_snapshot(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__CreateSnapshotRequest q;
	csi__v1__create_snapshot_request__init(&q);

	q.name = operands[0];
	q.source_volume_id = operands[1];
	FILL_MAP(Csi__V1__CreateSnapshotRequest__ParametersEntry,
		csi__v1__create_snapshot_request__parameters_entry__init, &c->parameters, &q, parameters);
	int rc = CALL(c, "Controller", "CreateSnapshot", &q, csi__v1__create_snapshot, err);
	FREE_MAP(&q, parameters);
	return rc;
}

static int run_delete_snapshot(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__DeleteSnapshotRequest q;
	csi__v1__delete_snapshot_request__init(&q);

	q.snapshot_id = operands[0];
	return CALL(c, "Controller", "DeleteSnapshot", &q, csi__v1__delete_snapshot, err);
}

static int run_list_snapshots(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__ListSnapshotsRequest q;
	csi__v1__list_snapshots_request__init(&q);

	(void)operands;
	q.max_entries = (int32_t)c->max_entries;
	q.starting_token = (char *)(uintptr_t)c->token;
	if (c->source)
		q.source_volume_id = (char *)(uintptr_t)c->source;
	return CALL(c, "Controller", "ListSnapshots", &q, csi__v1__list_snapshots, err);
}

static int run_get_snapshot(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__GetSnapshotRequest q;
	csi__v1__get_snapshot_request__init(&q);

	q.snapshot_id = operands[0];
	return CALL(c, "Controller", "GetSnapshot", &q, csi__v1__get_snapshot, err);
}

static int run_create_group(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__CreateVolumeGroupSnapshotRequest q;
	csi__v1__create_volume_group_snapshot_request__init(&q);

	q.name = operands[0];
	q.source_volume_ids = (char **)(uintptr_t)(operands + 1);
	q.n_source_volume_ids = strv_len(operands + 1);
	FILL_MAP(Csi__V1__CreateVolumeGroupSnapshotRequest__ParametersEntry,
		csi__v1__create_volume_group_snapshot_request__parameters_entry__init, &c->parameters, &q,
		parameters);
	int rc = CALL(c, "GroupController", "CreateVolumeGroupSnapshot", &q,
		csi__v1__create_volume_group_snapshot, err);
	FREE_MAP(&q, parameters);
	return rc;
}

static int run_delete_group(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__DeleteVolumeGroupSnapshotRequest q;
	csi__v1__delete_volume_group_snapshot_request__init(&q);

	q.group_snapshot_id = operands[0];
	q.snapshot_ids = (char **)(uintptr_t)(operands + 1);
	q.n_snapshot_ids = strv_len(operands + 1);
	return CALL(c, "GroupController", "DeleteVolumeGroupSnapshot", &q,
		csi__v1__delete_volume_group_snapshot, err);
}

static int run_get_group(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__GetVolumeGroupSnapshotRequest q;
	csi__v1__get_volume_group_snapshot_request__init(&q);

	q.group_snapshot_id = operands[0];
	return CALL(
		c, "GroupController", "GetVolumeGroupSnapshot", &q, csi__v1__get_volume_group_snapshot, err);
}

static int run_expand(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__ControllerExpandVolumeRequest q;
	csi__v1__controller_expand_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);

	range.required_bytes = (int64_t)c->size_bytes;
	range.limit_bytes = (int64_t)c->limit_bytes;
	q.volume_id = operands[0];
	q.capacity_range = &range;
	return CALL(c, "Controller", "ControllerExpandVolume", &q, csi__v1__controller_expand_volume, err);
}

static int run_modify(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__ControllerModifyVolumeRequest q;
	csi__v1__controller_modify_volume_request__init(&q);

	q.volume_id = operands[0];
	FILL_MAP(Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry,
		csi__v1__controller_modify_volume_request__mutable_parameters_entry__init, &c->parameters, &q,
		mutable_parameters);
	int rc = CALL(c, "Controller", "ControllerModifyVolume", &q, csi__v1__controller_modify_volume, err);
	FREE_MAP(&q, mutable_parameters);
	return rc;
}

static int run_validate(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest q;
	csi__v1__validate_volume_capabilities_request__init(&q);
	struct capability cap;

	if (fill_capability(c, &cap, err) < 0)
		return -1;
	q.volume_id = operands[0];
	q.n_volume_capabilities = 1;
	q.volume_capabilities = cap.list;
	return CALL(c, "Controller", "ValidateVolumeCapabilities", &q, csi__v1__validate_volume_capabilities,
		err);
}

static int run_list(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__ListVolumesRequest q;
	csi__v1__list_volumes_request__init(&q);

	(void)operands;
	q.max_entries = (int32_t)c->max_entries;
	q.starting_token = (char *)(uintptr_t)c->token;
	if (c->json)
		return CALL(c, "Controller", "ListVolumes", &q, csi__v1__list_volumes, err);
	CLEANUP(buf_done) struct buf out = BUF_INIT(CLIENT_OUTPUT_MAX_BYTES);
	ProtobufCMessage *reply;

	if (ASK(c, "Controller", "ListVolumes", &q, csi__v1__list_volumes, &reply, err) < 0)
		return -1;
	list_text((const Csi__V1__ListVolumesResponse *)reply, &out);
	protobuf_c_message_free_unpacked(reply, NULL);
	return client_print(&out, err);
}

static int run_capacity(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__GetCapacityRequest q;
	csi__v1__get_capacity_request__init(&q);

	(void)operands;
	FILL_MAP(Csi__V1__GetCapacityRequest__ParametersEntry,
		csi__v1__get_capacity_request__parameters_entry__init, &c->parameters, &q, parameters);
	int rc = CALL(c, "Controller", "GetCapacity", &q, csi__v1__get_capacity, err);
	FREE_MAP(&q, parameters);
	return rc;
}

static int run_stage(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodeStageVolumeRequest q;
	csi__v1__node_stage_volume_request__init(&q);
	struct capability cap;

	if (fill_capability(c, &cap, err) < 0)
		return -1;
	q.volume_id = operands[0];
	q.staging_target_path = operands[1];
	q.volume_capability = &cap.message;
	FILL_MAP(Csi__V1__NodeStageVolumeRequest__VolumeContextEntry,
		csi__v1__node_stage_volume_request__volume_context_entry__init, &c->parameters, &q,
		volume_context);
	int rc = CALL(c, "Node", "NodeStageVolume", &q, csi__v1__node_stage_volume, err);
	FREE_MAP(&q, volume_context);
	return rc;
}

static int run_unstage(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodeUnstageVolumeRequest q;
	csi__v1__node_unstage_volume_request__init(&q);

	q.volume_id = operands[0];
	q.staging_target_path = operands[1];
	return CALL(c, "Node", "NodeUnstageVolume", &q, csi__v1__node_unstage_volume, err);
}

static int run_publish(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodePublishVolumeRequest q;
	csi__v1__node_publish_volume_request__init(&q);
	struct capability cap;

	if (fill_capability(c, &cap, err) < 0)
		return -1;
	q.volume_id = operands[0];
	q.staging_target_path = operands[1];
	q.target_path = operands[2];
	q.volume_capability = &cap.message;
	q.readonly = c->readonly;
	FILL_MAP(Csi__V1__NodePublishVolumeRequest__VolumeContextEntry,
		csi__v1__node_publish_volume_request__volume_context_entry__init, &c->parameters, &q,
		volume_context);
	int rc = CALL(c, "Node", "NodePublishVolume", &q, csi__v1__node_publish_volume, err);
	FREE_MAP(&q, volume_context);
	return rc;
}

static int run_unpublish(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodeUnpublishVolumeRequest q;
	csi__v1__node_unpublish_volume_request__init(&q);

	q.volume_id = operands[0];
	q.target_path = operands[1];
	return CALL(c, "Node", "NodeUnpublishVolume", &q, csi__v1__node_unpublish_volume, err);
}

static int run_stats(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodeGetVolumeStatsRequest q;
	csi__v1__node_get_volume_stats_request__init(&q);

	q.volume_id = operands[0];
	q.volume_path = operands[1];
	return CALL(c, "Node", "NodeGetVolumeStats", &q, csi__v1__node_get_volume_stats, err);
}

static int run_node_expand(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodeExpandVolumeRequest q;
	csi__v1__node_expand_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);

	range.required_bytes = (int64_t)c->size_bytes;
	range.limit_bytes = (int64_t)c->limit_bytes;
	q.volume_id = operands[0];
	q.volume_path = operands[1];
	q.capacity_range = &range;
	return CALL(c, "Node", "NodeExpandVolume", &q, csi__v1__node_expand_volume, err);
}

static int run_node_info(struct client *c, char *const *operands, struct error **err)
{
	Csi__V1__NodeGetInfoRequest q;
	csi__v1__node_get_info_request__init(&q);

	(void)operands;
	return CALL(c, "Node", "NodeGetInfo", &q, csi__v1__node_get_info, err);
}

static const struct command commands[] = {
	{"info", "", 0, "show name and version of the driver", run_info},
	{"probe", "", 0, "show whether the driver is ready; if it is not, the call has failed", run_probe},
	{"capabilities", "", 0, "show the capabilities of plugin, controller and node service",
		run_capabilities},
	{"create", "NAME", 1, "create a volume (-size -limit -fs -parameter -access-mode -source -snapshot)",
		run_create},
	{"delete", "ID", 1, "delete a volume", run_delete},
	{"create-snapshot", "NAME ID", 2, "take a snapshot of a volume (-parameter)", run_create_snapshot},
	{"delete-snapshot", "ID", 1, "delete a snapshot", run_delete_snapshot},
	{"list-snapshots", "", 0, "list snapshots (-max -token -source)", run_list_snapshots},
	{"get-snapshot", "ID", 1, "show a snapshot", run_get_snapshot},
	{"create-group", "NAME ID...", 2, "take snapshots of several volumes at one moment (-parameter)",
		run_create_group},
	{"delete-group", "ID [SNAPSHOT]...", 1,
		"delete a group of snapshots; what is given must belong to it", run_delete_group},
	{"get-group", "ID", 1, "show a group of snapshots", run_get_group},
	{"expand", "ID", 1, "make a volume larger, then see node-expand (-size -limit)", run_expand},
	{"modify", "ID " COMMAND_PARAMETERS, 1, "change parameters of a volume, such as usage=FileIO",
		run_modify},
	{"validate", "ID", 1,
		"check whether a volume has the capabilities that -fs, -block and -access-mode give",
		run_validate},
	{"list", "", 0, "list volumes (-max -token)", run_list},
	{"capacity", "", 0, "show the free capacity and the size of the largest possible volume (-parameter)",
		run_capacity},
	{"stage", "ID STAGING", 2,
		"format a volume and mount it at the staging path (-fs -mount-flag -parameter)", run_stage},
	{"unstage", "ID STAGING", 2, "unmount a volume from the staging path", run_unstage},
	{"publish", "ID STAGING TARGET", 3, "mount a volume at a target path (-readonly -mount-flag)",
		run_publish},
	{"stats", "ID PATH", 2, "show how full a volume is, by a path at which it is mounted", run_stats},
	{"node-expand", "ID PATH", 2,
		"make the file system of a volume as large as the volume, by a path at which it is mounted",
		run_node_expand},
	{"unpublish", "ID TARGET", 2, "unmount a volume from a target path, and remove that path",
		run_unpublish},
	{"node-info", "", 0, "show ID and topology of the node", run_node_info},
};

int command_find(const char *name, const struct command **ret, struct error **err)
{
	const char *names[ARRAY_SIZE(commands) + 1] = {NULL};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		names[i] = commands[i].name;
		if (str_eq(names[i], name)) {
			*ret = &commands[i];
			return 0;
		}
	}
	return args_refuse_command(name, names, err);
}

char *command_help(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(HELP_MAX_BYTES);

	buf_adds(&b, "\nCommands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		buf_addf(&b, "  %-15s %-18s %s\n", commands[i].name, commands[i].operands, commands[i].help);
	return x_strdup(buf_str(&b));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of CSI and of the kubelet's plug-in registration: bytes to objects in an arena, the limits of the
 * CSI specification, and back.
 *
 * The first byte chooses the message's type. A message that was packed must be unpacked and packed again as
 * the same bytes.
 */
#include <string.h>

#include "csi.pb-c.h"
#include "pluginregistration.pb-c.h"

#include "csi/field_limits.h"
#include "fuzz/fuzz.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/limits.h"

#define ARENA_MAX_BYTES (1u << 20)

static const ProtobufCMessageDescriptor *const types[] = {
	&csi__v1__create_volume_request__descriptor,
	&csi__v1__create_volume_response__descriptor,
	&csi__v1__delete_volume_request__descriptor,
	&csi__v1__validate_volume_capabilities_request__descriptor,
	&csi__v1__list_volumes_request__descriptor,
	&csi__v1__list_volumes_response__descriptor,
	&csi__v1__get_capacity_request__descriptor,
	&csi__v1__node_stage_volume_request__descriptor,
	&csi__v1__node_unstage_volume_request__descriptor,
	&csi__v1__node_publish_volume_request__descriptor,
	&csi__v1__node_unpublish_volume_request__descriptor,
	&csi__v1__node_get_volume_stats_response__descriptor,
	&csi__v1__controller_expand_volume_request__descriptor,
	&csi__v1__controller_modify_volume_request__descriptor,
	&csi__v1__node_expand_volume_request__descriptor,
	&csi__v1__get_plugin_info_response__descriptor,
	&pluginregistration__registration_status__descriptor,
};

static void check_repacked(const ProtobufCMessageDescriptor *type, const ProtobufCMessage *m, struct arena *a)
{
	CLEANUP(arena_freep) struct arena *room = arena_new(LIMIT_ARENA_BYTES);
	struct error *err = NULL;
	ProtobufCMessage *again;
	struct span first;
	struct span second;

	int rv = grpc_protobuf_pack(m, a, &first, &err);
	assert(rv == 0);
	rv = grpc_protobuf_unpack(type, (struct span){first.p + 5, first.n - 5}, room, &again, &err);
	assert(rv == 0);
	rv = grpc_protobuf_pack(again, room, &second, &err);
	assert(rv == 0);
	assert(first.n == second.n && memcmp(first.p, second.p, first.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_freep) struct arena *a = arena_new(ARENA_MAX_BYTES);
	struct span in = {data, size};
	const ProtobufCMessageDescriptor *type = types[fuzz_byte(&in) % ARRAY_SIZE(types)];
	ProtobufCMessage *m;
	struct error *err = NULL;

	if (grpc_protobuf_unpack(type, in, a, &m, &err) < 0) {
		fuzz_error(err);
		return 0;
	}
	if (csi_check_request(m, &err) < 0)
		fuzz_error(err);
	check_repacked(type, m, a);
	return 0;
}

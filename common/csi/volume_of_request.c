/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the volume that a request is about, for messages about calls that take long. */
#include "base/str.h"
#include "csi/csi.h"

/* A string of @m, or NULL when messages of that type have none called @name, or it is empty. */
static const char *text_of(const ProtobufCMessage *m, const char *name)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);

	if (!f || f->type != PROTOBUF_C_TYPE_STRING || f->label == PROTOBUF_C_LABEL_REPEATED)
		return NULL;
	const char *const *text = (const char *const *)(const void *)((const uint8_t *)m + f->offset);
	return str_empty(*text) ? NULL : *text;
}

const char *csi_volume_of(const ProtobufCMessage *request)
{
	static const char *const fields[] = {"volume_id", "snapshot_id", "group_snapshot_id", "name"};
	const char *id = NULL;

	for (size_t i = 0; !id && i < ARRAY_SIZE(fields); i++)
		id = text_of(request, fields[i]);
	return id;
}

char *csi_current_step(void *self, const ProtobufCMessage *request)
{
	const struct csi *csi = self;

	if (!request)
		return volumes_current_step(csi->volumes, NULL);
	const char *handle = csi_volume_of(request);
	return handle ? volumes_current_step(csi->volumes, handle) : NULL;
}

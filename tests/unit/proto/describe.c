/* SPDX-License-Identifier: Apache-2.0 */
#include "describe.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

/* Descriptors that were met, in that order; also the list of work to come. */
struct reached {
	const void *items[512];
	size_t count;
};

static const char *const type_names[] = {
	[PROTOBUF_C_TYPE_INT32] = "int32",
	[PROTOBUF_C_TYPE_SINT32] = "sint32",
	[PROTOBUF_C_TYPE_SFIXED32] = "sfixed32",
	[PROTOBUF_C_TYPE_INT64] = "int64",
	[PROTOBUF_C_TYPE_SINT64] = "sint64",
	[PROTOBUF_C_TYPE_SFIXED64] = "sfixed64",
	[PROTOBUF_C_TYPE_UINT32] = "uint32",
	[PROTOBUF_C_TYPE_FIXED32] = "fixed32",
	[PROTOBUF_C_TYPE_UINT64] = "uint64",
	[PROTOBUF_C_TYPE_FIXED64] = "fixed64",
	[PROTOBUF_C_TYPE_FLOAT] = "float",
	[PROTOBUF_C_TYPE_DOUBLE] = "double",
	[PROTOBUF_C_TYPE_BOOL] = "bool",
	[PROTOBUF_C_TYPE_ENUM] = "enum ",
	[PROTOBUF_C_TYPE_STRING] = "string",
	[PROTOBUF_C_TYPE_BYTES] = "bytes",
	[PROTOBUF_C_TYPE_MESSAGE] = "message ",
};

static const char *const label_names[] = {
	[PROTOBUF_C_LABEL_REQUIRED] = "required ",
	[PROTOBUF_C_LABEL_OPTIONAL] = "optional ",
	[PROTOBUF_C_LABEL_REPEATED] = "repeated ",
	[PROTOBUF_C_LABEL_NONE] = "",
};

static void reach(struct reached *reached, const void *descriptor)
{
	for (size_t i = 0; i < reached->count; i++) {
		if (reached->items[i] == descriptor)
			return;
	}
	ck_assert_uint_lt(reached->count, sizeof(reached->items) / sizeof(reached->items[0]));
	reached->items[reached->count++] = descriptor;
}

/* @name as it is written in a table of @package. */
static const char *relative(const char *name, const char *package)
{
	size_t len = strlen(package);

	return strncmp(name, package, len) == 0 && name[len] == '.' ? name + len + 1 : name;
}

static bool is_plain_string(const ProtobufCFieldDescriptor *field, uint32_t id, const char *name)
{
	return field->id == id && strcmp(field->name, name) == 0 && field->type == PROTOBUF_C_TYPE_STRING &&
	       field->label == PROTOBUF_C_LABEL_NONE && field->flags == 0;
}

/* On the wire a map is a repeated message of a key and a value, and protobuf-c shows it as just that. */
static bool is_string_map(const ProtobufCFieldDescriptor *field)
{
	const ProtobufCMessageDescriptor *entry = field->descriptor;

	return field->type == PROTOBUF_C_TYPE_MESSAGE && field->label == PROTOBUF_C_LABEL_REPEATED &&
	       entry->n_fields == 2 && is_plain_string(&entry->fields[0], 1, "key") &&
	       is_plain_string(&entry->fields[1], 2, "value");
}

static void describe_message(struct lines *lines, const ProtobufCMessageDescriptor *message,
	struct reached *messages, struct reached *enums)
{
	const char *package = message->package_name, *name = relative(message->name, package);

	lines_add(lines, "%s message %s", package, name);
	for (unsigned int i = 0; i < message->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->fields[i];
		const char *referred = "", *kind = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF ? "oneof " : "";

		ck_assert_uint_eq(field->flags & ~(uint32_t)(PROTOBUF_C_FIELD_FLAG_ONEOF |
							     PROTOBUF_C_FIELD_FLAG_PACKED),
			0);
		if (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED)
			kind = "packed ";
		if (is_string_map(field)) {
			lines_add(lines, "%s message %s: %u %s map<string,string>", package, name, field->id,
				field->name);
			continue;
		}
		if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
			referred = ((const ProtobufCMessageDescriptor *)field->descriptor)->name;
			reach(messages, field->descriptor);
		} else if (field->type == PROTOBUF_C_TYPE_ENUM) {
			referred = ((const ProtobufCEnumDescriptor *)field->descriptor)->name;
			reach(enums, field->descriptor);
		}
		lines_add(lines, "%s message %s: %u %s %s%s%s%s", package, name, field->id, field->name, kind,
			label_names[field->label], type_names[field->type], relative(referred, package));
	}
}

static void describe_enum(struct lines *lines, const ProtobufCEnumDescriptor *descriptor)
{
	const char *package = descriptor->package_name, *name = relative(descriptor->name, package);

	ck_assert_uint_eq(descriptor->n_value_names, descriptor->n_values);
	lines_add(lines, "%s enum %s", package, name);
	for (unsigned int i = 0; i < descriptor->n_values; i++)
		lines_add(lines, "%s enum %s: %d %s", package, name, descriptor->values[i].value,
			descriptor->values[i].name);
}

static void describe_service(
	struct lines *lines, const ProtobufCServiceDescriptor *service, struct reached *messages)
{
	const char *package = service->package, *name = relative(service->name, package);

	lines_add(lines, "%s service %s", package, name);
	for (unsigned int i = 0; i < service->n_methods; i++) {
		const ProtobufCMethodDescriptor *method = &service->methods[i];

		lines_add(lines, "%s service %s: /%s/%s %s %s", package, name, service->name, method->name,
			relative(method->input->name, package), relative(method->output->name, package));
		reach(messages, method->input);
		reach(messages, method->output);
	}
}

void describe_services(struct lines *lines, const ProtobufCServiceDescriptor *const *services, size_t count)
{
	struct reached messages = {.count = 0}, enums = {.count = 0};

	for (size_t i = 0; i < count; i++)
		describe_service(lines, services[i], &messages);
	for (size_t i = 0; i < messages.count; i++)
		describe_message(lines, messages.items[i], &messages, &enums);
	for (size_t i = 0; i < enums.count; i++)
		describe_enum(lines, enums.items[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/field_limits.h"

#include <string.h>

#include "base/str.h"

#define STRING_MAX_BYTES 128
#define PATH_MAX_BYTES   4096
#define MAP_MAX_BYTES    4096
/* No message of CSI nests deeper than six; the walk keeps its own stack, so that none can make it recurse. */
#define DEPTH_MAX 8

/* One level of the walk: which field and element of @message comes next. */
struct level {
	const ProtobufCMessage *message;
	unsigned field;
	size_t element;
};

int csi_require(const char *value, const char *field, struct error **err)
{
	if (str_empty(value))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is missing", field);
	return 0;
}

static const void *member(const ProtobufCMessage *m, unsigned offset)
{
	return (const uint8_t *)m + offset;
}

/* Elements of a field: repeated ones have a count, of a oneof only the chosen member exists. */
static size_t field_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)member(m, f->quantifier_offset);
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)member(m, f->quantifier_offset) == f->id ? 1 : 0;
	return 1;
}

static const void *field_pointer(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t element)
{
	const void *const *slot = member(m, f->offset);

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		const void *const *array = *(const void *const *const *)slot;
		return array[element];
	}
	return *slot;
}

static bool is_map_entry(const ProtobufCMessageDescriptor *d)
{
	return str_ends(d->name, "Entry") && d->n_fields == 2 && str_eq(d->fields[0].name, "key") &&
	       str_eq(d->fields[1].name, "value");
}

static int check_text(const char *text, const char *field, size_t max, struct error **err)
{
	size_t n = strlen(text);

	if (n > max)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is longer than %zu bytes", field, max);
	return 0;
}

/* Every key and value of a map, or every string of a list, together. */
static int check_collection(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, struct error **err)
{
	size_t total = 0;

	for (size_t i = 0; i < field_count(m, f); i++) {
		const void *element = field_pointer(m, f, i);
		const char *texts[2] = {element, ""};

		if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
			const ProtobufCMessageDescriptor *entry = f->descriptor;

			for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
				texts[k] = field_pointer(element, &entry->fields[k], 0);
		}
		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			if (check_text(texts[k], f->name, MAP_MAX_BYTES, err) < 0)
				return -1;
			total += strlen(texts[k]);
		}
		if (total > MAP_MAX_BYTES)
			return err_set(err, ERR_INVALID_ARGUMENT, "%s has more than %d bytes in all", f->name,
				MAP_MAX_BYTES);
	}
	return 0;
}

/* A string field; @ret_child is set to the message to descend into for a message field. */
static int check_field(struct level *l, const ProtobufCFieldDescriptor *f, const ProtobufCMessage **ret_child,
	struct error **err)
{
	*ret_child = NULL;
	if (f->type == PROTOBUF_C_TYPE_MESSAGE && !is_map_entry(f->descriptor)) {
		if (l->element < field_count(l->message, f)) {
			*ret_child = field_pointer(l->message, f, l->element++);
			return 0;
		}
	} else if (f->type == PROTOBUF_C_TYPE_MESSAGE || f->label == PROTOBUF_C_LABEL_REPEATED) {
		if ((f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING) &&
			check_collection(l->message, f, err) < 0)
			return -1;
	} else if (f->type == PROTOBUF_C_TYPE_STRING && field_count(l->message, f) > 0) {
		size_t max = str_ends(f->name, "_path") ? PATH_MAX_BYTES : STRING_MAX_BYTES;

		if (check_text(field_pointer(l->message, f, 0), f->name, max, err) < 0)
			return -1;
	}
	l->field++;
	l->element = 0;
	return 0;
}

int csi_check_request(const ProtobufCMessage *request, struct error **err)
{
	struct level stack[DEPTH_MAX] = {{.message = request}};
	size_t depth = 1;

	while (depth > 0) {
		struct level *l = &stack[depth - 1];
		const ProtobufCMessage *child;

		if (l->field == l->message->descriptor->n_fields) {
			depth--;
			continue;
		}
		if (check_field(l, &l->message->descriptor->fields[l->field], &child, err) < 0)
			return -1;
		if (!child)
			continue;
		if (depth == DEPTH_MAX)
			return err_set(err, ERR_INVALID_ARGUMENT, "the request is nested too deeply");
		stack[depth++] = (struct level){.message = child};
	}
	return 0;
}

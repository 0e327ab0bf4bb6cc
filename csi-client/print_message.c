/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that descend do so along the message types of CSI, which do not nest in themselves. */
#include "print_message.h"

#include <string.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

static const void *member(const ProtobufCMessage *m, unsigned offset)
{
	return (const uint8_t *)m + offset;
}

static size_t count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)member(m, f->quantifier_offset);
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)member(m, f->quantifier_offset) == f->id ? 1 : 0;
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return *(const ProtobufCMessage *const *)member(m, f->offset) ? 1 : 0;
	return 1;
}

/* Returns the address of element @i of a field. For messages and strings, that is the address of a
 * pointer. */
static const void *element(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i)
{
	static const size_t pointer_bytes = sizeof(void *);
	const void *place = member(m, f->offset);

	if (f->label != PROTOBUF_C_LABEL_REPEATED)
		return place;
	const uint8_t *array = *(const uint8_t *const *)place;
	bool is_pointer = f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING;
	return array + i * (is_pointer ? pointer_bytes : sizeof(int32_t));
}

static const char *enum_name(const ProtobufCFieldDescriptor *f, int value)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(f->descriptor, value);

	return v ? v->name : "UNKNOWN";
}

static void scalar_text(const ProtobufCFieldDescriptor *f, const void *at, struct buf *out)
{
	if (f->type == PROTOBUF_C_TYPE_BOOL)
		buf_adds(out, *(const protobuf_c_boolean *)at ? "true" : "false");
	else if (f->type == PROTOBUF_C_TYPE_INT64 || f->type == PROTOBUF_C_TYPE_UINT64)
		buf_addf(out, "%lld", (long long)*(const int64_t *)at);
	else if (f->type == PROTOBUF_C_TYPE_ENUM)
		buf_adds(out, enum_name(f, *(const int *)at));
	else
		buf_addf(out, "%d", (int)*(const int32_t *)at);
}

static bool is_map(const ProtobufCFieldDescriptor *f)
{
	const ProtobufCMessageDescriptor *d = f->descriptor;

	return f->type == PROTOBUF_C_TYPE_MESSAGE && f->label == PROTOBUF_C_LABEL_REPEATED &&
	       d->n_fields == 2 && str_ends(d->name, "Entry") && str_eq(d->fields[0].name, "key");
}

static void entry_of(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i,
	const char **ret_key, const char **ret_value)
{
	const ProtobufCMessage *e = *(const ProtobufCMessage *const *)element(m, f, i);

	*ret_key = *(const char *const *)element(e, &e->descriptor->fields[0], 0);
	*ret_value = *(const char *const *)element(e, &e->descriptor->fields[1], 0);
}

static void json_message(struct json_writer *w, const ProtobufCMessage *m);

/* volume_id becomes volumeId. */
static void json_name(struct json_writer *w, const char *name)
{
	CLEANUP(free_charp) char *camel = x_strdup(name);
	char *to = camel;

	for (const char *from = name; *from; from++) {
		bool capital = from[0] == '_' && from[1] >= 'a' && from[1] <= 'z';

		from += capital;
		*to++ = capital ? (char)(*from - 'a' + 'A') : *from;
	}
	*to = '\0';
	json_key(w, camel);
}

static void json_element(
	struct json_writer *w, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	const void *at = element(m, f, i);

	if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		json_message(w, *(const ProtobufCMessage *const *)at);
	} else if (f->type == PROTOBUF_C_TYPE_STRING) {
		json_str(w, *(const char *const *)at);
	} else if (f->type == PROTOBUF_C_TYPE_ENUM) {
		json_str(w, enum_name(f, *(const int *)at));
	} else {
		scalar_text(f, at, &text);
		json_raw(w, buf_str(&text));
	}
}

static void json_field(struct json_writer *w, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	size_t n = count(m, f);

	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		if (n == 0)
			return;
		json_name(w, f->name);
		json_element(w, m, f, 0);
		return;
	}
	json_name(w, f->name);
	if (is_map(f)) {
		json_object(w);
		for (size_t i = 0; i < n; i++) {
			const char *key;
			const char *value;

			entry_of(m, f, i, &key, &value);
			json_key_str(w, key, value);
		}
		json_object_end(w);
		return;
	}
	json_array(w);
	for (size_t i = 0; i < n; i++)
		json_element(w, m, f, i);
	json_array_end(w);
}

static void json_fields(struct json_writer *w, const ProtobufCMessage *m)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++)
		json_field(w, m, &m->descriptor->fields[i]);
}

static void json_message(struct json_writer *w, const ProtobufCMessage *m)
{
	json_object(w);
	json_fields(w, m);
	json_object_end(w);
}

void print_json(const ProtobufCMessage *m, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_fields(&w, m);
	json_object_end(&w);
	buf_addc(out, '\n');
}

static void text_message(const ProtobufCMessage *m, unsigned indent, struct buf *out);

static void text_element(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i,
	unsigned indent, struct buf *out)
{
	const void *at = element(m, f, i);

	if (f->type == PROTOBUF_C_TYPE_STRING && !**(const char *const *)at)
		return;
	buf_addf(out, "%*s%s:", (int)indent, "", f->name);
	if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		buf_addc(out, '\n');
		text_message(*(const ProtobufCMessage *const *)at, indent + 2, out);
		return;
	}
	buf_addc(out, ' ');
	if (f->type == PROTOBUF_C_TYPE_STRING)
		buf_adds(out, *(const char *const *)at);
	else
		scalar_text(f, at, out);
	buf_addc(out, '\n');
}

static void text_message(const ProtobufCMessage *m, unsigned indent, struct buf *out)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];

		for (size_t k = 0; k < count(m, f); k++) {
			const char *key;
			const char *value;

			if (!is_map(f)) {
				text_element(m, f, k, indent, out);
				continue;
			}
			entry_of(m, f, k, &key, &value);
			buf_addf(out, "%*s%s.%s: %s\n", (int)indent, "", f->name, key, value);
		}
	}
}

void print_text(const ProtobufCMessage *m, struct buf *out)
{
	text_message(m, 0, out);
}

static void json_parts(const struct print_part *parts, size_t n, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	for (size_t i = 0; i < n; i++) {
		if (!parts[i].message)
			continue;
		json_key(&w, parts[i].name);
		json_message(&w, parts[i].message);
	}
	json_object_end(&w);
	buf_addc(out, '\n');
}

void print_parts(const struct print_part *parts, size_t n, bool json, struct buf *out)
{
	if (json) {
		json_parts(parts, n, out);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!parts[i].message)
			continue;
		buf_addf(out, "%s:\n", parts[i].name);
		text_message(parts[i].message, 2, out);
	}
}

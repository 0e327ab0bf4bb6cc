/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/csi/mutate_private.h"

#include <check.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"

#define VARIANT_MAX    (16u << 20)
#define UNKNOWN_NUMBER 1000
#define LAST_NUMBER    ((1u << 29) - 1)
#define MANY           10000
#define LIST_MAX       4096
#define UNKNOWN_MAX    (3u << 20)

static struct mutate_level *level(struct mutator *m)
{
	return &m->levels[m->depth];
}

struct buf *mutate_rest(struct mutator *m)
{
	buf_reset(&m->body);
	wire_copy_without(&m->body, level(m)->body, m->field->id, SIZE_MAX);
	return &m->body;
}

struct buf *mutate_whole(struct mutator *m)
{
	buf_reset(&m->body);
	buf_add(&m->body, level(m)->body.p, level(m)->body.n);
	return &m->body;
}

static bool is_entry(const ProtobufCMessageDescriptor *d)
{
	return str_ends(d->name, "Entry") && d->n_fields == 2;
}

static void write_path(struct mutator *m)
{
	size_t n = 0;

	m->path[0] = '\0';
	for (size_t i = 1; i <= m->depth; i++)
		n += (size_t)snprintf(m->path + n, sizeof(m->path) - n, "%s.", m->levels[i].field->name);
	if (m->field)
		snprintf(m->path + n, sizeof(m->path) - n, "%s", m->field->name);
	else if (n > 0)
		m->path[n - 1] = '\0';
}

static const char *name_of(const struct mutator *m)
{
	if (!m->field || is_entry(m->levels[m->depth].type))
		return m->depth > 0 ? m->levels[m->depth].field->name : "";
	return m->field->name;
}

/* The body in the place of the message that it comes from, in all parents. */
static struct span wrapped(struct mutator *m)
{
	struct span inner = buf_span(&m->body);

	for (size_t i = m->depth; i > 0; i--) {
		struct buf *outer = &m->wrap[i % 2];
		uint32_t number = m->levels[i].field->id;

		buf_reset(outer);
		wire_copy_without(outer, m->levels[i - 1].body, number, 1);
		wire_bytes(outer, number, inner);
		inner = buf_span(outer);
	}
	return inner;
}

void mutate_emit(struct mutator *m, enum mutation kind, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* in a message that was not there, whatever is said is new */
	if (!level(m)->present && (kind == MUTATION_SAME || kind == MUTATION_MISSING))
		kind = MUTATION_VALUE;
	if (m->body.overflowed || m->wrap[0].overflowed || m->wrap[1].overflowed)
		ck_abort_msg("%s: larger than planned", what);
	write_path(m);
	const struct variant v = {
		.kind = kind, .path = m->path, .field = name_of(m), .what = what, .bytes = wrapped(m)};
	m->fn(m->user, &v);
}

static unsigned wire_type_of(const ProtobufCFieldDescriptor *f)
{
	return f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE ? WIRE_BYTES
										       : WIRE_VARINT;
}

static void add_payload(struct buf *out, unsigned type)
{
	switch (type) {
	case WIRE_VARINT:
		buf_addc(out, 1);
		break;
	case WIRE_BYTES:
		buf_add(out, "\0", 1);
		break;
	case WIRE_FIXED64:
		buf_add(out, "12345678", 8);
		break;
	case WIRE_FIXED32:
		buf_add(out, "1234", 4);
		break;
	default:
		break;
	}
}

/* Mutations of the encoding that are made of fields of all types: other wire types, and lengths and tags
 * without data. */
static void mutate_encoding(struct mutator *m)
{
	static const uint64_t lengths[] = {1, 0x7f, 1u << 20, UINT32_MAX, 1ULL << 32, INT64_MAX, UINT64_MAX};
	uint32_t number = m->field->id;

	for (unsigned type = 0; type < 8; type++) {
		if (type == wire_type_of(m->field))
			continue;
		struct buf *out = mutate_rest(m);
		wire_tag(out, number, type);
		add_payload(out, type);
		/* protobuf-c takes any bytes for a bool */
		bool is_value = m->field->type == PROTOBUF_C_TYPE_BOOL &&
				(type == WIRE_BYTES || type == WIRE_FIXED32 || type == WIRE_FIXED64);
		mutate_emit(m, is_value ? MUTATION_VALUE : MUTATION_MALFORMED, "wire type %u", type);
	}
	wire_tag(mutate_rest(m), number, wire_type_of(m->field));
	mutate_emit(m, MUTATION_MALFORMED, "nothing behind the tag");
	for (size_t i = 0; wire_type_of(m->field) == WIRE_BYTES && i < ARRAY_SIZE(lengths); i++) {
		struct buf *out = mutate_rest(m);

		wire_tag(out, number, WIRE_BYTES);
		wire_varint(out, lengths[i]);
		mutate_emit(
			m, MUTATION_MALFORMED, "%llu bytes said, none there", (unsigned long long)lengths[i]);
	}
}

static void mutate_presence(struct mutator *m)
{
	struct wire_field f;

	if (!wire_find(level(m)->body, m->field->id, &f))
		return;
	mutate_rest(m);
	mutate_emit(m, MUTATION_MISSING, "missing");
	struct buf *out = mutate_whole(m);
	buf_add(out, f.raw.p, f.raw.n);
	mutate_emit(m, MUTATION_SAME, "twice");
	/* moved to the end */
	out = mutate_rest(m);
	for (struct span rest = level(m)->body; wire_next(&rest, &f);) {
		if (f.number == m->field->id)
			buf_add(out, f.raw.p, f.raw.n);
	}
	mutate_emit(m, MUTATION_SAME, "last");
}

static void mutate_count(struct mutator *m)
{
	static const size_t counts[] = {10, 1000, MANY};
	const ProtobufCFieldDescriptor *f = m->field;
	bool is_map = f->type == PROTOBUF_C_TYPE_MESSAGE && is_entry(f->descriptor);
	struct wire_field first = {0};

	if (f->label != PROTOBUF_C_LABEL_REPEATED || !wire_find(level(m)->body, f->id, &first))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct buf *out = mutate_rest(m);
		/* maps and lists of strings, not lists of messages; of an entry half may be tags and lengths
		 */
		size_t limited =
			is_map || f->type == PROTOBUF_C_TYPE_STRING ? counts[i] * first.payload.n : 0;

		for (size_t k = 0; k < counts[i]; k++)
			buf_add(out, first.raw.p, first.raw.n);
		mutate_emit(m,
			limited > 2 * LIST_MAX ? MUTATION_LONG
			: limited > LIST_MAX   ? MUTATION_VALUE
					       : MUTATION_SAME,
			"%zu times", counts[i]);
	}
}

static void mutate_message(struct mutator *m)
{
	wire_bytes(mutate_rest(m), m->field->id, (struct span){0});
	mutate_emit(m, MUTATION_VALUE, "empty message");
	wire_bytes(mutate_whole(m), m->field->id, (struct span){0});
	mutate_emit(m, MUTATION_VALUE, "and an empty message");
}

/* Combines the field with every other member of its oneof, in both orders. */
static void mutate_oneof(struct mutator *m)
{
	const ProtobufCMessageDescriptor *type = level(m)->type;
	const ProtobufCFieldDescriptor *f = m->field;

	for (unsigned i = 0; (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *other = &type->fields[i];
		struct wire_field had;

		if (other == f || other->quantifier_offset != f->quantifier_offset)
			continue;
		wire_bytes(mutate_whole(m), other->id, (struct span){0});
		mutate_emit(m, MUTATION_VALUE, "then %s of the same oneof", other->name);
		if (!wire_find(level(m)->body, f->id, &had))
			continue;
		struct buf *out = mutate_rest(m);
		wire_bytes(out, other->id, (struct span){0});
		buf_add(out, had.raw.p, had.raw.n);
		mutate_emit(m, MUTATION_SAME, "after %s of the same oneof", other->name);
	}
}

static void mutate_field(struct mutator *m)
{
	mutate_presence(m);
	mutate_encoding(m);
	mutate_count(m);
	mutate_oneof(m);
	if (m->field->type == PROTOBUF_C_TYPE_STRING)
		mutate_string(m);
	else if (m->field->type == PROTOBUF_C_TYPE_MESSAGE)
		mutate_message(m);
	else
		mutate_number(m);
}

/* Adds fields with numbers that the message does not define, which a server has to ignore. */
static void mutate_unknown(struct mutator *m)
{
	static const unsigned types[] = {WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32};
	static const uint32_t numbers[] = {UNKNOWN_NUMBER, LAST_NUMBER};
	struct buf *out;

	m->field = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(types) * ARRAY_SIZE(numbers); i++) {
		out = mutate_whole(m);
		wire_tag(out, numbers[i % 2], types[i / 2]);
		add_payload(out, types[i / 2]);
		mutate_emit(
			m, MUTATION_SAME, "unknown field %u of wire type %u", numbers[i % 2], types[i / 2]);
	}
	out = mutate_whole(m);
	wire_tag(out, UNKNOWN_NUMBER, WIRE_GROUP);
	wire_tag(out, UNKNOWN_NUMBER, WIRE_GROUP_END);
	mutate_emit(m, MUTATION_MALFORMED, "group");
	buf_add(mutate_whole(m), "\x00\x00", 2);
	mutate_emit(m, MUTATION_MALFORMED, "field 0");
	buf_add(mutate_whole(m), "\xff", 1);
	mutate_emit(m, MUTATION_MALFORMED, "half a tag");
	buf_add(mutate_whole(m), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	mutate_emit(m, MUTATION_MALFORMED, "endless tag");
}

static void mutate_many_unknown(struct mutator *m)
{
	CLEANUP(free_charp) char *large = x_calloc(1, UNKNOWN_MAX);

	m->field = NULL;
	wire_bytes(mutate_whole(m), UNKNOWN_NUMBER, (struct span){(const uint8_t *)large, UNKNOWN_MAX});
	mutate_emit(m, MUTATION_SAME, "unknown field of %u bytes", UNKNOWN_MAX);
	struct buf *out = mutate_whole(m);
	for (size_t i = 0; i < MANY; i++)
		wire_int(out, UNKNOWN_NUMBER, i);
	mutate_emit(m, MUTATION_SAME, "%d unknown fields", MANY);
}

/* Message types do not nest for ever: the depth is that of the proto file. */
static void mutate_level(struct mutator *m)
{
	const ProtobufCMessageDescriptor *type = level(m)->type;

	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		struct wire_field found;

		m->field = f;
		mutate_field(m);
		if (f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		bool present = level(m)->present && wire_find(level(m)->body, f->id, &found);
		ck_assert_uint_lt(m->depth + 1, MUTATE_DEPTH_MAX);
		m->levels[++m->depth] = (struct mutate_level){.type = f->descriptor,
			.field = f,
			.body = present ? found.payload : (struct span){0},
			.present = present};
		mutate_level(m);
		m->depth--;
	}
	mutate_unknown(m);
}

void mutate_fields(const ProtobufCMessageDescriptor *type, struct span valid, char *const *texts,
	variant_fn fn, void *user)
{
	struct mutator m = {.levels = {{.type = type, .body = valid, .present = true}},
		.texts = texts,
		.fn = fn,
		.user = user,
		.body = BUF_INIT(VARIANT_MAX),
		.wrap = {BUF_INIT(VARIANT_MAX), BUF_INIT(VARIANT_MAX)}};

	mutate_level(&m);
	mutate_many_unknown(&m);
	buf_done(&m.body);
	buf_done(&m.wrap[0]);
	buf_done(&m.wrap[1]);
}

/* Fills in all fields of a message. The recursion is as deep as the messages in the proto file. */
void mutate_sample(const ProtobufCMessageDescriptor *type, struct buf *out)
{
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		CLEANUP(buf_done) struct buf inner = BUF_INIT(VARIANT_MAX);

		if (f->type == PROTOBUF_C_TYPE_MESSAGE)
			mutate_sample(f->descriptor, &inner);
		else if (f->type == PROTOBUF_C_TYPE_STRING)
			buf_adds(&inner, "sample");
		if (wire_type_of(f) == WIRE_BYTES)
			wire_bytes(out, f->id, buf_span(&inner));
		else
			wire_int(out, f->id, 1);
	}
}

void mutate_bytes(struct span valid, variant_fn fn, void *user)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(VARIANT_MAX);
	char what[64];
	struct variant v = {.kind = MUTATION_BYTES, .path = "", .field = "", .what = what};

	for (size_t n = 0; n < valid.n; n++) {
		snprintf(what, sizeof(what), "cut off after %zu bytes", n);
		v.bytes = (struct span){valid.p, n};
		fn(user, &v);
	}
	for (size_t bit = 0; bit < 8 * valid.n; bit++) {
		buf_reset(&bytes);
		buf_add(&bytes, valid.p, valid.n);
		bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		snprintf(what, sizeof(what), "bit %zu of byte %zu turned", bit % 8, bit / 8);
		v.bytes = buf_span(&bytes);
		fn(user, &v);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_protobuf.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/grpc/grpc_message.h"

#define PREFIX_BYTES 5

/* Deeper than any message of ours; the walk keeps its own stack, so that none can make it recurse. */
#define DEPTH_MAX 16

/* Names are constants of our own: this many bytes hold any path of them. */
#define PATH_MAX_BYTES 1024

/* Protocol Buffers, "Encoding": groups (3 and 4) are in none of our messages */
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
#define VARINT_MAX_BYTES 10

/* One level of the walk: what is left of a message. */
struct level {
	const ProtobufCMessageDescriptor *type;
	const char *name; /* of the field that holds it */
	struct span rest;
};

struct bounded {
	struct arena *arena;
	bool exceeded;
};

static void *bounded_alloc(void *user, size_t n)
{
	struct bounded *b = user;
	void *p = arena_try_alloc(b->arena, n);

	if (!p)
		b->exceeded = true;
	return p;
}

static void bounded_free(void *user, void *p)
{
	(void)user;
	(void)p;
}

static bool skip(struct span *s, uint64_t n)
{
	if (n > s->n)
		return false;
	s->p += n;
	s->n -= (size_t)n;
	return true;
}

static bool read_varint(struct span *s, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < VARINT_MAX_BYTES && i < s->n; i++) {
		value |= (uint64_t)(s->p[i] & 0x7f) << (7 * i);
		if (s->p[i] & 0x80)
			continue;
		*ret = value;
		return skip(s, i + 1);
	}
	return false;
}

/* Next field of @s; @ret_payload has content for WIRE_BYTES only. */
static bool read_field(struct span *s, uint32_t *ret_number, bool *ret_has_payload, struct span *ret_payload)
{
	uint64_t tag, n;

	*ret_has_payload = false;
	if (!read_varint(s, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return false;
	*ret_number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case WIRE_VARINT:
		return read_varint(s, &n);
	case WIRE_FIXED64:
		return skip(s, 8);
	case WIRE_FIXED32:
		return skip(s, 4);
	case WIRE_BYTES:
		if (!read_varint(s, &n))
			return false;
		*ret_payload = (struct span){s->p, (size_t)n};
		*ret_has_payload = true;
		return skip(s, n);
	default:
		return false;
	}
}

static int refuse(
	const struct level *stack, size_t depth, const char *field, const char *why, struct error **err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);

	for (size_t i = 1; i < depth; i++)
		buf_addf(&path, "%s.", stack[i].name);
	buf_adds(&path, field);
	return err_set(err, ERR_INVALID_ARGUMENT, "%s %s", buf_str(&path), why);
}

int grpc_protobuf_check_text(const ProtobufCMessageDescriptor *type, struct span bytes, struct error **err)
{
	struct level stack[DEPTH_MAX] = {{.type = type, .rest = bytes}};
	size_t depth = 1;

	while (depth > 0) {
		struct level *l = &stack[depth - 1];
		struct span payload;
		uint32_t number;
		bool has_payload;

		if (l->rest.n == 0) {
			depth--;
			continue;
		}
		if (!read_field(&l->rest, &number, &has_payload, &payload))
			return err_set(err, ERR_INTERNAL, "malformed %s", type->name);
		const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(l->type, number);
		if (!f || !has_payload)
			continue;
		if (f->type == PROTOBUF_C_TYPE_MESSAGE && depth == DEPTH_MAX)
			return refuse(stack, depth, f->name, "is nested too deeply", err);
		if (f->type == PROTOBUF_C_TYPE_MESSAGE)
			stack[depth++] =
				(struct level){.type = f->descriptor, .name = f->name, .rest = payload};
		else if (f->type == PROTOBUF_C_TYPE_STRING && memchr(payload.p, 0, payload.n))
			return refuse(stack, depth, f->name, "contains U+0000", err);
		else if (f->type == PROTOBUF_C_TYPE_STRING && !str_is_utf8(payload.p, payload.n))
			return refuse(stack, depth, f->name, "is not UTF-8", err);
	}
	return 0;
}

int grpc_protobuf_unpack(const ProtobufCMessageDescriptor *type, struct span bytes, struct arena *a,
	ProtobufCMessage **ret, struct error **err)
{
	struct bounded b = {.arena = a};
	ProtobufCAllocator allocator = {bounded_alloc, bounded_free, &b};
	ProtobufCMessage *m;

	if (grpc_protobuf_check_text(type, bytes, err) < 0)
		return -1;
	m = protobuf_c_message_unpack(type, &allocator, bytes.n, bytes.p);
	if (!m && b.exceeded)
		return err_set(err, ERR_EXHAUSTED, "%s of %zu bytes has too many parts", type->name, bytes.n);
	if (!m)
		return err_set(err, ERR_INTERNAL, "malformed %s", type->name);
	*ret = m;
	return 0;
}

int grpc_protobuf_pack(const ProtobufCMessage *m, struct arena *a, struct span *ret, struct error **err)
{
	size_t size = protobuf_c_message_get_packed_size(m);
	uint8_t *p;

	if (size > LIMIT_MESSAGE_BYTES)
		return err_set(err, ERR_EXHAUSTED, "%s of %zu bytes is larger than %u", m->descriptor->name,
			size, LIMIT_MESSAGE_BYTES);
	p = arena_alloc(a, PREFIX_BYTES + size);
	grpc_prefix((uint32_t)size, p);
	protobuf_c_message_pack(m, p + PREFIX_BYTES);
	*ret = (struct span){p, PREFIX_BYTES + size};
	return 0;
}

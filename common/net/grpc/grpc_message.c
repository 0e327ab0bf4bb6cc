/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_message.h"

#include <stdbool.h>

#include "net/grpc/grpc_text.h"
#include "net/grpc/grpc_wire.h"

#define PREFIX_BYTES 5

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

int grpc_message_unpack(const ProtobufCMessageDescriptor *type, struct span bytes, struct arena *a,
	ProtobufCMessage **ret, struct error **err)
{
	struct bounded b = {.arena = a};
	ProtobufCAllocator allocator = {bounded_alloc, bounded_free, &b};
	ProtobufCMessage *m;

	if (grpc_text_check(type, bytes, err) < 0)
		return -1;
	m = protobuf_c_message_unpack(type, &allocator, bytes.n, bytes.p);
	if (!m && b.exceeded)
		return err_set(err, ERR_EXHAUSTED, "%s of %zu bytes has too many parts", type->name, bytes.n);
	if (!m)
		return err_set(err, ERR_INTERNAL, "malformed %s", type->name);
	*ret = m;
	return 0;
}

int grpc_message_pack(const ProtobufCMessage *m, struct arena *a, struct span *ret, struct error **err)
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

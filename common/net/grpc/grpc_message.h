/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_message.h - protobuf messages of gRPC calls to and from bytes, within limits. Private to net/.
 *
 * 4 MiB on the wire can become 149 MiB of objects: unpacking is bounded by the arena. Threads: one per arena.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"
#include "net/limits.h"

/** grpc_message_unpack() - @bytes as a message in @a, bounded by the limit of @a.
 * Strings are UTF-8 without U+0000: see grpc_text.h.
 * Return: 0, or -1 with ERR_EXHAUSTED (beyond the limit), ERR_INVALID_ARGUMENT (a string; names the field) or
 * ERR_INTERNAL (malformed; the code that grpc-go uses). */
int grpc_message_unpack(const ProtobufCMessageDescriptor *type, struct span bytes, struct arena *a,
	ProtobufCMessage **ret, struct error **err) MUST_CHECK;

/** grpc_message_pack() - @m in @a with the five bytes of gRPC before it. Return: 0, or -1 with ERR_EXHAUSTED
 * (larger than LIMIT_MESSAGE_BYTES). */
int grpc_message_pack(
	const ProtobufCMessage *m, struct arena *a, struct span *ret, struct error **err) MUST_CHECK;

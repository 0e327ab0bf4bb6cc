/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_protobuf.h - protobuf messages of gRPC calls to and from bytes, within limits. Private to net/.
 *
 * 4 MiB on the wire can become 149 MiB of objects, so the arena limits what unpacking can allocate. Threads:
 * one per arena.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"
#include "net/limits.h"

/**
 * grpc_protobuf_check_text() - every string field in @bytes, at any depth, is UTF-8 without U+0000.
 * @type: what @bytes hold; unknown fields are skipped
 *
 * protobuf-c ends a string at its first NUL, so that a handler would see another value than the peer sent,
 * and it accepts bytes that are not UTF-8. A value that a later one of the same field replaces is checked
 * too. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the field and its parents (grpc-go answers
 * INTERNAL to bad UTF-8; here that would say that the fault is ours), or ERR_INTERNAL (no protobuf message).
 */
int grpc_protobuf_check_text(
	const ProtobufCMessageDescriptor *type, struct span bytes, struct error **err) MUST_CHECK;

/** grpc_protobuf_unpack() - @bytes as a message in @a, bounded by the limit of @a.
 * Strings have to pass grpc_protobuf_check_text().
 * Return: 0, or -1 with ERR_EXHAUSTED (beyond the limit), ERR_INVALID_ARGUMENT (a string; names the field) or
 * ERR_INTERNAL (malformed; the code that grpc-go uses). */
int grpc_protobuf_unpack(const ProtobufCMessageDescriptor *type, struct span bytes, struct arena *a,
	ProtobufCMessage **ret, struct error **err) MUST_CHECK;

/** grpc_protobuf_pack() - @m in @a with the five bytes of gRPC before it. Return: 0, or -1 with ERR_EXHAUSTED
 * (larger than LIMIT_MESSAGE_BYTES). */
int grpc_protobuf_pack(
	const ProtobufCMessage *m, struct arena *a, struct span *ret, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_text.h - strings of a packed protobuf message: whether C strings can hold them. Private to net/.
 *
 * protobuf-c ends a string at its first NUL, so that a handler would see another value than the peer sent,
 * and it takes bytes of any kind. Both are refused while the lengths are still known. Threads: safe. Nothing
 * here blocks or recurses.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/span.h"

/**
 * grpc_text_check() - every string field in @bytes, at any depth, is UTF-8 without U+0000.
 * @type: what @bytes hold; unknown fields are skipped
 *
 * A value that a later one of the same field replaces is checked too.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the field and its parents (grpc-go answers INTERNAL
 * to bad UTF-8; here that would say that the fault is ours), or ERR_INTERNAL (no protobuf message).
 */
int grpc_text_check(const ProtobufCMessageDescriptor *type, struct span bytes, struct error **err) MUST_CHECK;

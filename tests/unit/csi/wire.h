/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - protobuf's wire format by hand, for messages that no library would write.
 */
#pragma once

#include "base/buf.h"

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_GROUP = 3,
	WIRE_GROUP_END = 4,
	WIRE_FIXED32 = 5,
};

/** wire_varint() - append @value. */
void wire_varint(struct buf *out, uint64_t value);

/** wire_tag() - append the head of field @number. */
void wire_tag(struct buf *out, uint32_t number, unsigned type);

/** wire_int() and wire_bytes() - append a whole field. */
void wire_int(struct buf *out, uint32_t number, uint64_t value);
void wire_bytes(struct buf *out, uint32_t number, struct span payload);

struct wire_field {
	uint32_t number;
	struct span raw;     /* with its head */
	struct span payload; /* of WIRE_BYTES */
};

/** wire_next() - take a field off @rest, which is well-formed and without groups. Return: false at its end.
 */
bool wire_next(struct span *rest, struct wire_field *ret);

/** wire_find() - first field @number of @message. Return: whether there is one. */
bool wire_find(struct span message, uint32_t number, struct wire_field *ret);

/** wire_copy_without() - append @message without its first @max fields @number. */
void wire_copy_without(struct buf *out, struct span message, uint32_t number, size_t max);

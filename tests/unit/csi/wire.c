/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/csi/wire.h"

#include <check.h>

void wire_varint(struct buf *out, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		buf_addc(out, (char)(value | 0x80));
	buf_addc(out, (char)value);
}

void wire_tag(struct buf *out, uint32_t number, unsigned type)
{
	wire_varint(out, (uint64_t)number << 3 | type);
}

void wire_int(struct buf *out, uint32_t number, uint64_t value)
{
	wire_tag(out, number, WIRE_VARINT);
	wire_varint(out, value);
}

void wire_bytes(struct buf *out, uint32_t number, struct span payload)
{
	wire_tag(out, number, WIRE_BYTES);
	wire_varint(out, payload.n);
	buf_add(out, payload.p, payload.n);
}

static void skip(struct span *s, size_t n)
{
	/* not ck_assert(), which writes to a file each time that it holds */
	if (n > s->n)
		ck_abort_msg("valid messages end with their last field");
	s->p += n;
	s->n -= n;
}

static uint64_t take_varint(struct span *s)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = *s->p;

		skip(s, 1);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

bool wire_next(struct span *rest, struct wire_field *ret)
{
	const uint8_t *begin = rest->p;

	if (rest->n == 0)
		return false;
	*ret = (struct wire_field){0};
	uint64_t tag = take_varint(rest);
	ret->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case WIRE_VARINT:
		take_varint(rest);
		break;
	case WIRE_BYTES:
		ret->payload.n = (size_t)take_varint(rest);
		ret->payload.p = rest->p;
		skip(rest, ret->payload.n);
		break;
	default:
		ck_abort_msg("no such field in valid messages");
	}
	ret->raw = (struct span){begin, (size_t)(rest->p - begin)};
	return true;
}

bool wire_find(struct span message, uint32_t number, struct wire_field *ret)
{
	while (wire_next(&message, ret)) {
		if (ret->number == number)
			return true;
	}
	return false;
}

void wire_copy_without(struct buf *out, struct span message, uint32_t number, size_t max)
{
	struct wire_field f;

	while (wire_next(&message, &f)) {
		if (f.number == number && max > 0)
			max--;
		else
			buf_add(out, f.raw.p, f.raw.n);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_frames.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "unit/unit.h"

#define BLOCK_MAX_BYTES (64u << 10)

void frames_preface(struct buf *out)
{
	buf_adds(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	frames_add(out, FRAME_SETTINGS, 0, 0, span_of(""));
}

/* RFC 9113 section 4.1 */
void frames_add(struct buf *out, enum frame_type type, uint8_t flags, int32_t stream, struct span payload)
{
	const uint8_t header[9] = {0, (uint8_t)(payload.n >> 8), (uint8_t)payload.n, (uint8_t)type, flags,
		(uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

	buf_add(out, header, sizeof(header));
	buf_add(out, payload.p, payload.n);
}

/* RFC 7541 sections 5.1 and 5.2: length with a prefix of 7 bits, no Huffman code */
static void add_string(struct buf *block, struct span s)
{
	if (s.n < 127) {
		buf_addc(block, (char)s.n);
	} else {
		size_t rest = s.n - 127;

		buf_addc(block, 127);
		for (; rest >= 128; rest /= 128)
			buf_addc(block, (char)(128 | rest % 128));
		buf_addc(block, (char)rest);
	}
	buf_add(block, s.p, s.n);
}

void frames_field(struct buf *block, const char *name, struct span value)
{
	buf_addc(block, 0); /* RFC 7541 section 6.2.2 */
	add_string(block, span_of(name));
	add_string(block, value);
}

void frames_fields(struct buf *block, const char *lines)
{
	while (*lines) {
		const char *end = strchr(lines, '\n');
		const char *colon = strstr(lines, ": ");
		CLEANUP(free_charp) char *name = NULL;

		ck_assert(end && colon && colon < end);
		name = strndup(lines, (size_t)(colon - lines));
		frames_field(
			block, name, (struct span){(const uint8_t *)colon + 2, (size_t)(end - colon - 2)});
		lines = end + 1;
	}
}

void frames_post(struct buf *out, int32_t stream, const char *lines)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(BLOCK_MAX_BYTES);

	frames_fields(&block, lines);
	frames_add(out, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, stream, buf_span(&block));
}

static uint32_t u32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void describe(enum frame_type type, uint32_t stream, struct span payload, struct buf *out)
{
	switch (type) {
	case FRAME_DATA:
		buf_addf(out, "DATA %u %zu", stream, payload.n);
		break;
	case FRAME_HEADERS:
		buf_addf(out, "HEADERS %u", stream);
		break;
	case FRAME_RST_STREAM:
		buf_addf(out, "RST_STREAM %u %u", stream, u32_at(payload.p));
		break;
	case FRAME_SETTINGS:
		buf_adds(out, "SETTINGS");
		break;
	case FRAME_PING:
		buf_addf(out, "PING %08x%08x", u32_at(payload.p), u32_at(payload.p + 4));
		break;
	case FRAME_GOAWAY:
		buf_addf(out, "GOAWAY %u %u", u32_at(payload.p), u32_at(payload.p + 4));
		break;
	case FRAME_WINDOW_UPDATE:
		buf_addf(out, "WINDOW_UPDATE %u", stream);
		break;
	case FRAME_CONTINUATION:
		buf_addf(out, "CONTINUATION %u", stream);
		break;
	}
}

void frames_text(struct span bytes, struct buf *out)
{
	while (bytes.n > 0) {
		size_t length = (size_t)bytes.p[0] << 16 | (size_t)bytes.p[1] << 8 | bytes.p[2];
		enum frame_type type = (enum frame_type)bytes.p[3];
		uint8_t flags = bytes.p[4];

		ck_assert_uint_ge(bytes.n, 9 + length);
		describe(type, u32_at(bytes.p + 5), (struct span){bytes.p + 9, length}, out);
		if ((type == FRAME_SETTINGS || type == FRAME_PING) && (flags & FLAG_ACK))
			buf_adds(out, " ACK");
		if ((type == FRAME_HEADERS || type == FRAME_DATA) && (flags & FLAG_END_STREAM))
			buf_adds(out, " END");
		buf_addc(out, '\n');
		bytes.p += 9 + length;
		bytes.n -= 9 + length;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"

#define BLOCK_MAX_BYTES (64u << 10)
#define TYPE_SETTINGS   4

/* RFC 9113 section 4.1 */
static void add_frame(struct buf *out, uint8_t type, uint8_t flags, uint8_t stream, struct span payload)
{
	const uint8_t header[9] = {
		0, (uint8_t)(payload.n >> 8), (uint8_t)payload.n, type, flags, 0, 0, 0, stream};

	buf_add(out, header, sizeof(header));
	if (payload.n > 0)
		buf_add(out, payload.p, payload.n);
}

/* RFC 7541 sections 5.1 and 5.2: length with a prefix of 7 bits, no Huffman code */
static void add_string(struct buf *block, struct span s)
{
	size_t rest = s.n - 127;

	if (s.n < 127) {
		buf_addc(block, (char)s.n);
	} else {
		buf_addc(block, 127);
		for (; rest >= 128; rest /= 128)
			buf_addc(block, (char)(128 | rest % 128));
		buf_addc(block, (char)rest);
	}
	if (s.n > 0)
		buf_add(block, s.p, s.n);
}

static struct span take_until(struct span *in, const char *separator)
{
	size_t n = strlen(separator);
	const uint8_t *at = in->n > 0 ? memmem(in->p, in->n, separator, n) : NULL;
	struct span taken = fuzz_bytes(in, at ? (size_t)(at - in->p) : in->n);

	fuzz_bytes(in, n);
	return taken;
}

static void add_lines(struct buf *block, struct span lines)
{
	while (lines.n > 0) {
		struct span value = take_until(&lines, "\n");
		struct span name = take_until(&value, ": ");

		/* literal without indexing: RFC 7541 section 6.2.2 */
		buf_addc(block, 0);
		add_string(block, name);
		add_string(block, value);
	}
}

void frames_preface(struct buf *out)
{
	buf_adds(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	frames_settings(out);
}

void frames_settings(struct buf *out)
{
	add_frame(out, TYPE_SETTINGS, 0, 0, (struct span){NULL, 0});
}

bool frames_next(struct span *in, struct buf *out)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(BLOCK_MAX_BYTES);

	if (in->n == 0)
		return false;
	uint8_t type = fuzz_byte(in);
	uint8_t flags = fuzz_byte(in);
	uint8_t stream = fuzz_byte(in);
	size_t length = (size_t)fuzz_byte(in) << 8;
	length |= fuzz_byte(in);
	struct span payload = fuzz_bytes(in, length);
	if (type & FRAME_LINES) {
		add_lines(&block, payload);
		payload = buf_span(&block);
	}
	add_frame(out, type & (uint8_t)~FRAME_LINES, flags, stream, payload);
	return true;
}

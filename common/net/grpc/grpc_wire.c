/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_wire.h"

#include <inttypes.h>
#include <string.h>

#include "net/http2/h2.h"

void grpc_assembler_init(struct grpc_assembler *a)
{
	*a = (struct grpc_assembler){.message = BUF_INIT(LIMIT_MESSAGE_BYTES)};
}

void grpc_assembler_done(struct grpc_assembler *a)
{
	buf_done(&a->message);
}

static int read_prefix(struct grpc_assembler *a, struct error **err)
{
	uint32_t length = (uint32_t)a->prefix[1] << 24 | (uint32_t)a->prefix[2] << 16 |
			  (uint32_t)a->prefix[3] << 8 | a->prefix[4];

	if (a->prefix[0] == 1)
		return err_set(err, ERR_UNIMPLEMENTED, "compressed gRPC messages are not supported");
	if (a->prefix[0] != 0)
		return err_set(err, ERR_INTERNAL, "invalid gRPC message flags 0x%02x", a->prefix[0]);
	if (length > LIMIT_MESSAGE_BYTES)
		return err_set(err, ERR_EXHAUSTED, "gRPC message of %" PRIu32 " bytes is larger than %u",
			length, LIMIT_MESSAGE_BYTES);
	a->have_prefix = true;
	a->expected = length;
	return 0;
}

/* Moves up to @want bytes from the front of @bytes. */
static struct span take(struct span *bytes, size_t want)
{
	struct span taken = {bytes->p, bytes->n < want ? bytes->n : want};

	bytes->p += taken.n;
	bytes->n -= taken.n;
	return taken;
}

int grpc_assembler_feed(struct grpc_assembler *a, struct span bytes, struct error **err)
{
	if (bytes.n == 0)
		return 0;
	if (!a->have_prefix) {
		struct span part = take(&bytes, sizeof(a->prefix) - a->prefix_len);

		memcpy(a->prefix + a->prefix_len, part.p, part.n);
		a->prefix_len += part.n;
		if (a->prefix_len < sizeof(a->prefix))
			return 0;
		if (read_prefix(a, err) < 0)
			return -1;
	}
	if (!a->complete) {
		struct span part = take(&bytes, a->expected - a->message.len);

		buf_add(&a->message, part.p, part.n);
		a->complete = a->message.len == a->expected;
	}
	if (bytes.n > 0)
		return err_set(err, ERR_INTERNAL, "more than one message in a unary gRPC call");
	return 0;
}

void grpc_prefix(uint32_t length, uint8_t out[static 5])
{
	out[0] = 0;
	out[1] = (uint8_t)(length >> 24);
	out[2] = (uint8_t)(length >> 16);
	out[3] = (uint8_t)(length >> 8);
	out[4] = (uint8_t)length;
}

void grpc_percent_encode(const char *text, struct buf *out)
{
	for (const char *c = text; *c; c++) {
		/* RFC 9113, 8.2.1: a value with a blank at either end makes the message malformed */
		bool end_blank = *c == ' ' && (c == text || !c[1]);

		if (*c < 0x20 || *c > 0x7e || *c == '%' || end_blank)
			buf_addf(out, "%%%02X", (unsigned char)*c);
		else
			buf_addc(out, *c);
	}
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

void grpc_percent_decode(struct span text, struct buf *out)
{
	size_t i = 0;

	while (i < text.n) {
		if (text.p[i] == '%' && text.n - i > 2) {
			int high = hex_digit(text.p[i + 1]);
			int low = hex_digit(text.p[i + 2]);

			if (high >= 0 && low >= 0) {
				buf_addc(out, (char)(high << 4 | low));
				i += 3;
				continue;
			}
		}
		buf_addc(out, (char)text.p[i]);
		i++;
	}
}

enum err_code grpc_code_of_http(unsigned status)
{
	switch (status) {
	case 400:
		return ERR_INTERNAL;
	case 401:
		return ERR_UNAUTHENTICATED;
	case 403:
		return ERR_PERMISSION;
	case 404:
		return ERR_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return ERR_UNAVAILABLE;
	default:
		return ERR_UNKNOWN;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "net/http2/h2.h"

#define TIMEOUT_MAX_DIGITS 8
#define TIMEOUT_MAX_VALUE  99999999u

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

static const struct timeout_unit {
	uint8_t letter;
	uint64_t ns;
} timeout_units[] = {
	{'n', 1},
	{'u', 1000},
	{'m', 1000000},
	{'S', 1000000000},
	{'M', 60 * 1000000000ull},
	{'H', 3600 * 1000000000ull},
};

static const struct timeout_unit *timeout_unit_of(uint8_t letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(timeout_units); i++) {
		if (timeout_units[i].letter == letter)
			return &timeout_units[i];
	}
	return NULL;
}

int grpc_timeout_parse(struct span value, uint64_t *ret_ns, struct error **err)
{
	const struct timeout_unit *unit;
	char digits[TIMEOUT_MAX_DIGITS + 1] = {0};
	uint32_t n;

	if (value.n < 2 || value.n > TIMEOUT_MAX_DIGITS + 1)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "grpc-timeout has %zu characters, not 2 to 9", value.n);
	unit = timeout_unit_of(value.p[value.n - 1]);
	if (!unit)
		return err_set(err, ERR_INVALID_ARGUMENT, "grpc-timeout does not end in one of HMSmun");
	memcpy(digits, value.p, value.n - 1);
	if (strlen(digits) != value.n - 1)
		return err_set(err, ERR_INVALID_ARGUMENT, "grpc-timeout contains a NUL");
	if (parse_u32(digits, &n, err) < 0)
		return err_wrap(err, "grpc-timeout");
	*ret_ns = n > UINT64_MAX / 2 / unit->ns ? UINT64_MAX / 2 : n * unit->ns;
	return 0;
}

void grpc_timeout_format(uint64_t ns, char out[static 12])
{
	const struct timeout_unit *unit = timeout_units;
	uint64_t n = ns;

	/* an hour is long enough for the largest value */
	while (n > TIMEOUT_MAX_VALUE) {
		unit++;
		n = ns / unit->ns + (ns % unit->ns != 0);
	}
	snprintf(out, 12, "%u%c", (unsigned)n, unit->letter);
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

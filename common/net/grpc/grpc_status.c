/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_status.h"

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

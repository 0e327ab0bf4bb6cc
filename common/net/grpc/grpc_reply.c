/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "net/grpc/grpc_conn.h"
#include "net/grpc/grpc_status.h"

/* Encoded at most three times as long: grpc-core refuses header blocks beyond 8 KiB. */
#define MAX_STATUS_TEXT 2048

/* @msg, or what fits of it without half a character at its end. */
static void add_status_text(const char *msg, struct buf *out)
{
	char text[MAX_STATUS_TEXT + 1];
	size_t n = strnlen(msg, MAX_STATUS_TEXT);

	/* UTF-8 continuation bytes are 10xxxxxx */
	if (n == MAX_STATUS_TEXT) {
		while (n > 0 && ((unsigned char)msg[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(text, msg, n);
	text[n] = 0;
	grpc_percent_encode(text, out);
}

static void send_status(
	struct h2 *h, int32_t id, unsigned http, const char *content_type, const struct error *e, bool end)
{
	struct buf text = BUF_INIT(3 * MAX_STATUS_TEXT);
	char code[4], status[4];

	snprintf(code, sizeof(code), "%u", (unsigned)e->code % 100);
	snprintf(status, sizeof(status), "%u", http % 1000);
	add_status_text(e->msg, &text);

	const struct h2_header headers[] = {
		H2_HEADER(":status", status),
		H2_HEADER("content-type", content_type),
		H2_HEADER("grpc-status", code),
		{span_of("grpc-message"), buf_span(&text)},
	};
	h2_respond(h, id, headers, ARRAY_SIZE(headers), end);
	buf_done(&text);
}

void grpc_reply_error(struct h2 *h, int32_t id, unsigned http, const struct error *e)
{
	send_status(h, id, http, "application/grpc", e, true);
}

void grpc_reply_plain(struct h2 *h, int32_t id, unsigned http, const struct error *e)
{
	send_status(h, id, http, "text/plain; charset=utf-8", e, false);
	h2_write(h, id, (struct span){(const uint8_t *)e->msg, strnlen(e->msg, MAX_STATUS_TEXT)});
	h2_write(h, id, span_of("\n"));
	h2_finish(h, id, NULL, 0);
}

void grpc_reply_message(struct h2 *h, int32_t id, struct span packed)
{
	const struct h2_header headers[] = {
		H2_HEADER(":status", "200"),
		H2_HEADER("content-type", "application/grpc"),
		H2_HEADER("grpc-accept-encoding", "identity"),
	};
	const struct h2_header trailers[] = {H2_HEADER("grpc-status", "0")};

	h2_respond(h, id, headers, ARRAY_SIZE(headers), false);
	h2_write(h, id, packed);
	h2_finish(h, id, trailers, ARRAY_SIZE(trailers));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_out.h"

#include "net/limits.h"

/* Heads are short and of our making: one of a reply, one of a refusal when the connection is closed, and
 * 100s.
 */
#define HEADS_BYTES 4096

/* Forgets what was given out: the limit of the buffer is for the rest. */
static void compact(struct http1_out *o)
{
	size_t of_bytes = o->given < o->bytes.len ? o->given : o->bytes.len;
	size_t of_body = o->given - of_bytes;

	buf_consume(&o->bytes, of_bytes);
	if (o->body.len > 0)
		buf_add(&o->bytes, o->body.data + of_body, o->body.len - of_body);
	buf_done(&o->body);
	o->given = 0;
}

void http1_out_init(struct http1_out *o)
{
	*o = (struct http1_out){.bytes = BUF_INIT(LIMIT_OUT_BYTES + LIMIT_HTTP1_BODY_BYTES + HEADS_BYTES)};
}

void http1_out_done(struct http1_out *o)
{
	buf_done(&o->bytes);
	buf_done(&o->body);
	o->given = 0;
}

size_t http1_out_left(const struct http1_out *o)
{
	return o->bytes.len + o->body.len - o->given;
}

static void add_field(struct buf *out, const char *name, const char *value)
{
	if (value)
		buf_addf(out, "%s: %s\r\n", name, value);
}

void http1_out_add(struct http1_out *o, const struct http1_reply *reply)
{
	struct buf *out = &o->bytes;

	compact(o);
	buf_addf(out, "HTTP/1.1 %u %s\r\n", reply->status, reply->reason);
	add_field(out, "Content-Type", reply->content_type);
	add_field(out, "Allow", reply->allow);
	/* RFC 9110 section 8.6 */
	if (reply->status != 204)
		buf_addf(out, "Content-Length: %zu\r\n", reply->body.n);
	add_field(out, "Connection", reply->connection);
	buf_adds(out, "\r\n");
	if (reply->head_only)
		return;
	if (!reply->taken) {
		buf_add(out, reply->body.p, reply->body.n);
		return;
	}
	o->body = buf_take(reply->taken);
}

void http1_out_add_continue(struct http1_out *o)
{
	compact(o);
	buf_adds(&o->bytes, "HTTP/1.1 100 Continue\r\n\r\n");
}

void http1_out_give(struct http1_out *o, struct buf *to)
{
	size_t room = to->len < LIMIT_OUT_BYTES ? LIMIT_OUT_BYTES - to->len : 0;
	size_t n = http1_out_left(o) < room ? http1_out_left(o) : room;

	size_t of_bytes = o->given < o->bytes.len ? o->bytes.len - o->given : 0;

	if (n == 0)
		return;
	if (of_bytes > n)
		of_bytes = n;
	if (of_bytes > 0)
		buf_add(to, o->bytes.data + o->given, of_bytes);
	o->given += of_bytes;
	if (n > of_bytes)
		buf_add(to, o->body.data + (o->given - o->bytes.len), n - of_bytes);
	o->given += n - of_bytes;
	if (http1_out_left(o) == 0)
		http1_out_done(o);
}

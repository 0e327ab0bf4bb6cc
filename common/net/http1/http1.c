/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http1/http1_reader.h"
#include "net/limits.h"

/* Heads are short and generated here: one of a reply, one of a refusal when the connection is closed, and
 * 100s.
 */
#define HEADS_BYTES 4096

/* Bytes that a connection has to send: heads and bodies of replies, given out in pieces. */
struct out {
	struct buf bytes;
	struct buf body; /* behind them: of the last reply, when it was handed over */
	size_t given;    /* of both */
};

struct reply {
	unsigned status;
	const char *reason;
	const char *content_type; /* NULL: no such field */
	const char *allow;        /* as content_type */
	const char *connection;   /* as content_type */
	struct span body;
	struct buf *taken; /* NULL, or what holds the body: it is moved, not copied */
	bool head_only;    /* to HEAD: the length is sent, the body is not */
};

struct http1 {
	struct http1_config config;
	struct http1_reader reader;
	const char *method; /* NULL: the request line has not come */
	struct buf path;
	struct buf query;
	struct buf body;
	struct buf pending; /* came behind the current request */
	struct out out;
	size_t counted_bytes;       /* of out, in config.buffered_bytes */
	struct http1_held *current; /* NULL outside of on_request() */
	bool answering;
	bool keep_alive;
	bool closing; /* no further input is taken */
	bool in_haste;
	uint64_t requests;
	uint64_t since_ns;  /* when the first byte of the request came; 0: none has */
	uint64_t idle_ns;   /* since when none is to be answered */
	uint64_t done_ns;   /* since when all is given out; 0: it is not */
	uint64_t queued_ns; /* since when pending has not been empty; 0: it is empty */
};

/* RFC 9110 section 15. */
static const char *reason_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{204, "No Content"},
		{400, "Bad Request"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{417, "Expectation Failed"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "";
}

/* Forgets what was given out: the limit of the buffer is for the rest. */
static void compact(struct out *o)
{
	size_t of_bytes = o->given < o->bytes.len ? o->given : o->bytes.len;
	size_t of_body = o->given - of_bytes;

	buf_consume(&o->bytes, of_bytes);
	if (o->body.len > 0)
		buf_add(&o->bytes, o->body.data + of_body, o->body.len - of_body);
	buf_done(&o->body);
	o->given = 0;
}

/* Room for LIMIT_OUT_BYTES and, on top, one reply of LIMIT_HTTP1_BODY_BYTES. */
static void out_init(struct out *o)
{
	*o = (struct out){.bytes = BUF_INIT(LIMIT_OUT_BYTES + LIMIT_HTTP1_BODY_BYTES + HEADS_BYTES)};
}

/* @o is empty and reusable afterwards. */
static void out_done(struct out *o)
{
	buf_done(&o->bytes);
	buf_done(&o->body);
	o->given = 0;
}

/* bytes that are not given out yet */
static size_t out_left(const struct out *o)
{
	return o->bytes.len + o->body.len - o->given;
}

static void add_field(struct buf *out, const char *name, const char *value)
{
	if (value)
		buf_addf(out, "%s: %s\r\n", name, value);
}

/* The body is at most LIMIT_HTTP1_BODY_BYTES, and less than LIMIT_OUT_BYTES are left. */
static void out_add(struct out *o, const struct reply *reply)
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

static void out_add_continue(struct out *o)
{
	compact(o);
	buf_adds(&o->bytes, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* Appends to @to, until it holds LIMIT_OUT_BYTES. */
static void out_give(struct out *o, struct buf *to)
{
	size_t room = to->len < LIMIT_OUT_BYTES ? LIMIT_OUT_BYTES - to->len : 0;
	size_t n = out_left(o) < room ? out_left(o) : room;

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
	if (out_left(o) == 0)
		out_done(o);
}

static const char *connection_field(const struct http1 *h)
{
	if (!h->keep_alive)
		return "close";
	return h->reader.head.is_1_0 ? "keep-alive" : NULL;
}

static void count_out(struct http1 *h)
{
	*h->config.buffered_bytes += h->out.body.len - h->counted_bytes;
	h->counted_bytes = h->out.body.len;
}

/* Queues @reply, after filling in the reason phrase and the fields that depend on the request. */
static void add_reply(struct http1 *h, struct reply reply)
{
	reply.reason = reason_of(reply.status);
	reply.connection = connection_field(h);
	reply.head_only = h->method && strcmp(h->method, "HEAD") == 0;
	out_add(&h->out, &reply);
	count_out(h);
}

static void drop_body(struct http1 *h)
{
	*h->config.buffered_bytes -= h->body.len;
	buf_done(&h->body);
}

/* The next byte begins a request. */
static void start_over(struct http1 *h)
{
	http1_reader_reset(&h->reader);
	h->method = NULL;
	h->keep_alive = false;
	h->since_ns = 0;
	h->idle_ns = clock_ns();
	buf_done(&h->path);
	buf_done(&h->query);
	drop_body(h);
}

static void refuse(struct http1 *h, struct http1_refusal refusal)
{
	const char *reason = reason_of(refusal.status);
	struct buf text = BUF_INIT(256);

	log_debug("HTTP request refused", F_U64("status", refusal.status), F_STR("why", refusal.why));
	buf_addf(&text, "%s: %s\n", reason, refusal.why);
	h->keep_alive = false;
	add_reply(h, (struct reply){.status = refusal.status,
			     .content_type = "text/plain; charset=utf-8",
			     .body = buf_span(&text)});
	buf_done(&text);
	start_over(h);
	h->closing = true;
}

void http1_hold(struct http1 *h, struct http1_held *ret)
{
	assert(h->current);
	*ret = *h->current;
	*h->current = (struct http1_held){0};
	h->current = NULL;
}

static void dispatch(struct http1 *h)
{
	/* The reply may come in the callback, which may look at the request until its end. */
	CLEANUP(http1_held_done)
	struct http1_held held = {
		buf_take(&h->path), buf_take(&h->query), buf_take(&h->body), h->config.buffered_bytes};
	const struct http1_request request = {
		.method = span_of(h->method),
		.path = buf_span(&held.path),
		.query = buf_span(&held.query),
		.body = buf_span(&held.body),
	};

	h->since_ns = 0;
	h->requests++;
	h->answering = true;
	h->current = &held;
	h->config.on_request(h->config.user, &request);
	h->current = NULL;
}

static struct http1_refusal take_request_line(struct http1 *h, struct span line)
{
	struct http1_request_line request = {0};
	struct http1_refusal refusal = http1_check_request_line(line, &h->reader.head, &request);

	if (refusal.status)
		return refusal;
	h->method = request.method;
	buf_add(&h->path, request.path.p, request.path.n);
	buf_add(&h->query, request.query.p, request.query.n);
	return HTTP1_FINE;
}

static struct http1_refusal take_head(struct http1 *h)
{
	const struct http1_head *head = &h->reader.head;
	struct http1_refusal refusal = http1_check_host(head);

	if (refusal.status)
		return refusal;
	h->keep_alive = !h->config.is_single && !head->says_close && (!head->is_1_0 || head->says_keep_alive);
	if (head->expects_continue && h->reader.place != HTTP1_AT_END)
		out_add_continue(&h->out);
	return HTTP1_FINE;
}

static struct http1_refusal take_body(struct http1 *h, struct span bytes)
{
	size_t max = h->config.max_buffered_bytes;
	size_t used = *h->config.buffered_bytes;

	if (used > max || bytes.n > max - used)
		return (struct http1_refusal){503, "the server holds too many bytes of requests"};
	buf_add(&h->body, bytes.p, bytes.n);
	*h->config.buffered_bytes += bytes.n;
	return HTTP1_FINE;
}

static struct http1_refusal take_part(struct http1 *h, struct span *in)
{
	struct http1_part part;
	struct http1_refusal refusal;

	if (!h->since_ns)
		h->since_ns = clock_ns();
	refusal = http1_read(&h->reader, in, &part);
	if (http1_reader_is_fresh(&h->reader))
		h->since_ns = 0;
	if (refusal.status)
		return refusal;
	switch (part.event) {
	case HTTP1_START_LINE:
		return take_request_line(h, part.bytes);
	case HTTP1_HEAD:
		return take_head(h);
	case HTTP1_DATA:
		return take_body(h, part.bytes);
	case HTTP1_NOTHING:
		break;
	}
	return HTTP1_FINE;
}

/* The next request is not begun before the reply to the last one is given out. */
static bool takes_input(const struct http1 *h)
{
	return !h->closing && !h->answering && (h->since_ns || out_left(&h->out) == 0);
}

/* Return: how many of @bytes were taken: all of them when a request was refused. */
static size_t take(struct http1 *h, struct span bytes)
{
	struct span rest = bytes;

	while (rest.n > 0 && takes_input(h)) {
		struct http1_refusal refusal = take_part(h, &rest);

		if (refusal.status) {
			refuse(h, refusal);
			return bytes.n;
		}
		if (h->reader.place == HTTP1_AT_END)
			dispatch(h);
	}
	return bytes.n - rest.n;
}

/* Return: whether some of what waited was taken. */
static bool take_pending(struct http1 *h)
{
	size_t taken = take(h, buf_span(&h->pending));

	buf_consume(&h->pending, taken);
	if (h->pending.len == 0 || h->closing) {
		buf_done(&h->pending);
		h->queued_ns = 0;
	}
	return taken > 0;
}

struct http1 *http1_new(const struct http1_config *config)
{
	struct http1 *h = x_calloc(1, sizeof(*h));

	h->config = *config;
	if (h->config.max_buffered_bytes == 0)
		h->config.max_buffered_bytes = LIMIT_BUFFERED_BYTES;
	http1_reader_init(&h->reader, HTTP1_REQUEST, config->max_body_bytes);
	h->path = BUF_INIT(LIMIT_HEADER_BYTES);
	h->query = BUF_INIT(LIMIT_HEADER_BYTES);
	h->body = BUF_INIT(config->max_body_bytes);
	h->pending = BUF_INIT(LIMIT_HTTP1_PIPELINED_BYTES);
	out_init(&h->out);
	start_over(h);
	return h;
}

void http1_free(struct http1 *h)
{
	if (!h)
		return;
	drop_body(h);
	http1_reader_reset(&h->reader);
	buf_done(&h->path);
	buf_done(&h->query);
	buf_done(&h->pending);
	out_done(&h->out);
	count_out(h);
	free(h);
}

int http1_receive(struct http1 *h, struct span bytes, struct error **err)
{
	size_t taken;

	take_pending(h);
	taken = h->pending.len > 0 ? 0 : take(h, bytes);
	if (h->closing)
		return 0;
	buf_add(&h->pending, bytes.p + taken, bytes.n - taken);
	if (h->pending.len > 0 && !h->queued_ns)
		h->queued_ns = clock_ns();
	if (h->pending.overflowed)
		return err_set(err, ERR_UNAVAILABLE, "more than %u bytes of requests wait",
			LIMIT_HTTP1_PIPELINED_BYTES);
	return 0;
}

static void reply(struct http1 *h, const struct reply *what)
{
	assert(h->answering);
	if (what->body.n > LIMIT_HTTP1_BODY_BYTES)
		add_reply(h, (struct reply){.status = 500, .content_type = what->content_type});
	else
		add_reply(h, *what);
	h->answering = false;
	if (!h->keep_alive)
		h->closing = true;
	start_over(h);
}

void http1_reply(
	struct http1 *h, unsigned status, const char *content_type, const char *allow, struct span body)
{
	reply(h, &(struct reply){
			 .status = status, .content_type = content_type, .allow = allow, .body = body});
}

void http1_reply_take(struct http1 *h, unsigned status, const char *content_type, struct buf *body)
{
	reply(h, &(struct reply){.status = status,
			 .content_type = content_type,
			 .body = buf_span(body),
			 .taken = body});
	buf_done(body);
}

int http1_send(struct http1 *h, struct buf *out, struct error **err)
{
	(void)err;
	do {
		out_give(&h->out, out);
		count_out(h);
	} while (out->len == 0 && take_pending(h));
	if (http1_is_done(h) && !h->done_ns)
		h->done_ns = clock_ns();
	return 0;
}

bool http1_is_done(const struct http1 *h)
{
	return h->closing && !h->answering && out_left(&h->out) == 0;
}

bool http1_lingers(const struct http1 *h)
{
	return !h->in_haste && !h->config.is_single;
}

void http1_close(struct http1 *h)
{
	if (h->since_ns && !h->closing)
		refuse(h, (struct http1_refusal){503, "the server ends"});
	h->keep_alive = false;
	h->closing = true;
	h->in_haste = true;
}

uint64_t http1_requests(const struct http1 *h)
{
	return h->requests;
}

uint64_t http1_queued_since_ns(const struct http1 *h)
{
	return h->queued_ns;
}

static bool passed(uint64_t since_ns, uint64_t now_ns, uint64_t limit_ms)
{
	return since_ns && now_ns > since_ns && now_ns - since_ns > limit_ms * NS_PER_MS;
}

bool http1_has_expired(const struct http1 *h, uint64_t now_ns)
{
	if (h->answering || out_left(&h->out) > 0)
		return false;
	if (h->closing)
		return passed(h->done_ns, now_ns, LIMIT_LINGER_MS);
	if (h->since_ns)
		return passed(h->since_ns, now_ns, LIMIT_HTTP1_REQUEST_MS);
	return passed(h->idle_ns, now_ns, LIMIT_HTTP1_IDLE_MS);
}

void http1_held_done(struct http1_held *held)
{
	if (held->buffered_bytes)
		*held->buffered_bytes -= held->body.len;
	buf_done(&held->path);
	buf_done(&held->query);
	buf_done(&held->body);
}

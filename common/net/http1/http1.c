/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1.h"

#include <assert.h>
#include <http_parser.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http1/http1_rules.h"
#include "net/limits.h"

/* Chunk sizes of that many digits, with CRLF, do not count as header bytes: they come with data. */
#define FREE_CHUNK_LINE_BYTES 18

/* Heads are short and generated here: one of a reply, one of a refusal when the connection is closed, and
 * 100s.
 */
#define HEADS_BYTES 4096

/* What the next byte belongs to. */
enum place {
	PLACE_REQUEST_LINE,
	PLACE_HEADERS,
	PLACE_BODY,
	PLACE_CHUNK_SIZE,
	PLACE_CHUNK_DATA,
	PLACE_CHUNK_END,
	PLACE_TRAILERS,
};

/* What a connection has to send: heads and bodies of replies, given out in pieces. */
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
	http_parser parser;
	enum place place;
	struct http1_head head;
	struct buf line;   /* of which the end has not come yet */
	size_t head_bytes; /* of the header section; then of trailers and chunk extensions */
	struct buf path;
	struct buf query;
	uint64_t data_left; /* bytes of the body or chunk that have not come yet */
	struct buf body;
	struct buf pending; /* came behind the current request */
	struct out out;
	size_t counted_bytes;         /* of out, in config.buffered_bytes */
	struct http1_held *current;   /* NULL outside of on_request() */
	struct http1_refusal refusal; /* why the parser was stopped */
	bool complete;                /* the parser has seen the end of the request */
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

static bool is_head_method(const struct http1 *h)
{
	return h->place != PLACE_REQUEST_LINE && h->parser.method == HTTP_HEAD;
}

static const char *connection_field(const struct http1 *h)
{
	if (!h->keep_alive)
		return "close";
	return h->head.is_1_0 ? "keep-alive" : NULL;
}

static void count_out(struct http1 *h)
{
	*h->config.buffered_bytes += h->out.body.len - h->counted_bytes;
	h->counted_bytes = h->out.body.len;
}

/* What depends on the request is filled in. */
static void add_reply(struct http1 *h, struct reply reply)
{
	reply.reason = http_status_str((enum http_status)reply.status);
	reply.connection = connection_field(h);
	reply.head_only = is_head_method(h);
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
	http_parser_init(&h->parser, HTTP_REQUEST);
	h->place = PLACE_REQUEST_LINE;
	h->head = (struct http1_head){0};
	h->head_bytes = 0;
	h->complete = false;
	h->keep_alive = false;
	h->since_ns = 0;
	h->idle_ns = clock_ns();
	buf_done(&h->line);
	buf_done(&h->path);
	buf_done(&h->query);
	drop_body(h);
}

static void refuse(struct http1 *h, struct http1_refusal refusal)
{
	const char *reason = http_status_str((enum http_status)refusal.status);
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

static int stop(struct http1 *h, struct http1_refusal refusal)
{
	h->refusal = refusal;
	return 1;
}

static int on_headers_complete(http_parser *p)
{
	struct http1 *h = p->data;
	bool has_length = p->content_length != UINT64_MAX;
	bool is_chunked = (p->flags & F_CHUNKED) != 0;

	/* What follows would be taken for another protocol. */
	p->upgrade = 0;
	h->keep_alive = !h->config.is_single && http_should_keep_alive(p) && !(p->flags & F_CONNECTION_CLOSE);
	if (has_length != (h->head.n_content_length > 0) || is_chunked != (h->head.n_transfer_encoding > 0))
		return stop(h, HTTP1_BAD("unclear where the body ends"));
	if (has_length && p->content_length > h->config.max_body_bytes)
		return stop(h, (struct http1_refusal){413, "the body is too large"});
	h->data_left = has_length ? p->content_length : 0;
	if (h->head.expects_continue && (is_chunked || h->data_left > 0))
		out_add_continue(&h->out);
	h->head_bytes = 0;
	h->place = is_chunked ? PLACE_CHUNK_SIZE : PLACE_BODY;
	return 0;
}

static int on_chunk_header(http_parser *p)
{
	struct http1 *h = p->data;

	if (p->content_length > h->config.max_body_bytes - h->body.len)
		return stop(h, (struct http1_refusal){413, "the body is too large"});
	h->data_left = p->content_length;
	h->place = h->data_left > 0 ? PLACE_CHUNK_DATA : PLACE_TRAILERS;
	return 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
	struct http1 *h = p->data;

	size_t max = h->config.max_buffered_bytes;
	size_t used = *h->config.buffered_bytes;

	if (used > max || n > max - used)
		return stop(h, (struct http1_refusal){503, "the server holds too many bytes of requests"});
	buf_add(&h->body, at, n);
	*h->config.buffered_bytes += n;
	return 0;
}

static int on_message_complete(http_parser *p)
{
	struct http1 *h = p->data;

	h->complete = true;
	return 0;
}

static const http_parser_settings settings = {
	.on_headers_complete = on_headers_complete,
	.on_chunk_header = on_chunk_header,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

static struct http1_refusal execute(struct http1 *h, struct span bytes)
{
	size_t n = http_parser_execute(&h->parser, &settings, (const char *)bytes.p, bytes.n);
	enum http_errno failure = HTTP_PARSER_ERRNO(&h->parser);

	if (h->refusal.status)
		return h->refusal;
	if (failure == HPE_INVALID_METHOD)
		return (struct http1_refusal){501, "unknown method"};
	if (failure != HPE_OK || n != bytes.n)
		return HTTP1_BAD("malformed request");
	return HTTP1_FINE;
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
		.method = span_of(http_method_str((enum http_method)h->parser.method)),
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

static struct http1_refusal check_line(struct http1 *h, struct span line)
{
	struct http1_target target;
	struct http1_refusal refusal;

	switch (h->place) {
	case PLACE_REQUEST_LINE:
		refusal = http1_check_request_line(line, &h->head, &target);
		if (refusal.status == 0) {
			buf_add(&h->path, target.path.p, target.path.n);
			buf_add(&h->query, target.query.p, target.query.n);
		}
		return refusal;
	case PLACE_HEADERS:
		return line.n > 0 ? http1_check_field(line, &h->head) : http1_check_head(&h->head);
	case PLACE_CHUNK_SIZE:
		return http1_check_chunk_size(line);
	case PLACE_CHUNK_END:
		return line.n > 0 ? HTTP1_BAD("chunk longer than announced") : HTTP1_FINE;
	case PLACE_TRAILERS:
		return line.n > 0 ? http1_check_trailer(line) : HTTP1_FINE;
	case PLACE_BODY:
	case PLACE_CHUNK_DATA:
		break;
	}
	return HTTP1_BAD("no line is due");
}

/* The callbacks of the parser have moved on where the end of a section was. */
static void move_on(struct http1 *h, enum place from)
{
	if (from == PLACE_REQUEST_LINE)
		h->place = PLACE_HEADERS;
	else if (from == PLACE_CHUNK_END)
		h->place = PLACE_CHUNK_SIZE;
	if (from == PLACE_CHUNK_END || (from == PLACE_CHUNK_SIZE && h->line.len <= FREE_CHUNK_LINE_BYTES))
		h->head_bytes -= h->line.len;
	buf_reset(&h->line);
}

static struct http1_refusal end_line(struct http1 *h)
{
	struct span line = {h->line.data, h->line.len - strlen("\r\n")};
	enum place from = h->place;
	struct http1_refusal refusal;

	/* RFC 9112 section 2.2: empty lines before a request are ignored */
	if (from == PLACE_REQUEST_LINE && line.n == 0) {
		h->since_ns = 0;
		buf_reset(&h->line);
		return HTTP1_FINE;
	}
	refusal = check_line(h, line);
	if (refusal.status == 0)
		refusal = execute(h, buf_span(&h->line));
	if (refusal.status == 0)
		move_on(h, from);
	return refusal;
}

/* Takes what belongs to the line that has begun. */
static struct http1_refusal take_line(struct http1 *h, struct span bytes, size_t *ret_taken)
{
	const uint8_t *lf = memchr(bytes.p, '\n', bytes.n);
	size_t room = LIMIT_HEADER_BYTES - h->head_bytes;
	struct http1_refusal refusal;

	if (lf)
		bytes.n = (size_t)(lf - bytes.p) + 1;
	*ret_taken = bytes.n;
	if (!h->since_ns)
		h->since_ns = clock_ns();
	refusal = http1_check_bytes(h->line.len > 0 ? h->line.data[h->line.len - 1] : 0,
		(struct span){bytes.p, bytes.n < room ? bytes.n : room});
	if (refusal.status)
		return refusal;
	if (bytes.n > room)
		return h->place == PLACE_REQUEST_LINE
			       ? (struct http1_refusal){414, "the request line is too long"}
			       : (struct http1_refusal){431, "the header section is too large"};
	h->head_bytes += bytes.n;
	buf_add(&h->line, bytes.p, bytes.n);
	return lf ? end_line(h) : HTTP1_FINE;
}

static struct http1_refusal take_data(struct http1 *h, struct span bytes, size_t *ret_taken)
{
	struct http1_refusal refusal;

	if (bytes.n > h->data_left)
		bytes.n = (size_t)h->data_left;
	*ret_taken = bytes.n;
	if (bytes.n == 0)
		return HTTP1_BAD("unclear where the body ends");
	refusal = execute(h, bytes);
	h->data_left -= bytes.n;
	if (h->data_left == 0 && h->place == PLACE_CHUNK_DATA)
		h->place = PLACE_CHUNK_END;
	return refusal;
}

/* The next request is not begun before the reply to the last one is given out. */
static bool takes_input(const struct http1 *h)
{
	return !h->closing && !h->answering && (h->since_ns || out_left(&h->out) == 0);
}

/* Return: how many of @bytes were taken. */
static size_t take(struct http1 *h, struct span bytes)
{
	size_t taken = 0;

	while (taken < bytes.n && takes_input(h)) {
		struct span rest = {bytes.p + taken, bytes.n - taken};
		bool is_data = h->place == PLACE_BODY || h->place == PLACE_CHUNK_DATA;
		struct http1_refusal refusal;
		size_t n;

		refusal = is_data ? take_data(h, rest, &n) : take_line(h, rest, &n);
		taken += n;
		if (refusal.status)
			refuse(h, refusal);
		else if (h->complete)
			dispatch(h);
	}
	return taken;
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
	h->line = BUF_INIT(LIMIT_HEADER_BYTES);
	h->path = BUF_INIT(LIMIT_HEADER_BYTES);
	h->query = BUF_INIT(LIMIT_HEADER_BYTES);
	h->body = BUF_INIT(config->max_body_bytes);
	h->pending = BUF_INIT(LIMIT_HTTP1_PIPELINED_BYTES);
	out_init(&h->out);
	h->parser.data = h;
	start_over(h);
	return h;
}

void http1_free(struct http1 *h)
{
	if (!h)
		return;
	drop_body(h);
	buf_done(&h->line);
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

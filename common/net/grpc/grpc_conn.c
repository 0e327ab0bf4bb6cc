/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_conn.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/core/lag.h"

/* of a method that does not exist, in the log */
#define MAX_LOGGED_PATH 256

static struct grpc_stream *stream_find(const struct grpc_conn *c, int32_t id)
{
	for (struct grpc_stream *st = c->streams; st; st = st->next) {
		if (st->id == id)
			return st;
	}
	return NULL;
}

static void reject(
	struct grpc_conn *c, int32_t id, const struct grpc_head *head, unsigned http, const struct error *e)
{
	size_t n = head->path.n < MAX_LOGGED_PATH ? head->path.n : MAX_LOGGED_PATH;
	CLEANUP(free_charp) char *path = x_strndup((const char *)head->path.p, n);

	grpc_reply_error(c->h2, id, http, e);
	grpc_log_end(c->server->refused_log, "gRPC call refused", path, c->server->calls++,
		/* volume= */ NULL, clock_ns(), e);
}

static bool has_place(const struct grpc_conn *c)
{
	return c->calls < LIMIT_RESERVED_CALLS || c->server->live_calls < LIMIT_CALLS;
}

static int check_place(const struct grpc_conn *c, struct error **err)
{
	if (has_place(c))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "too many calls at a time");
}

/* Every client of gRPC sends te. Others want a body, and are answered when they have sent theirs; but a reply
 * to HEAD has none. */
static bool is_foreign(const struct grpc_head *head, unsigned http)
{
	return http == 415 && head->te.n == 0 && !span_eq(head->method, "HEAD");
}

static void refuse(
	struct grpc_conn *c, int32_t id, const struct grpc_head *head, unsigned http, struct error **why)
{
	if (is_foreign(head, http) && has_place(c))
		grpc_stream_new(c, id, head)->error = TAKE_PTR(*why);
	else
		reject(c, id, head, http, *why);
}

static void on_headers(void *user, int32_t id, const struct h2_header *headers, size_t n, bool is_trailer)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_conn *c = user;
	struct grpc_head head;
	unsigned http;

	(void)is_trailer;
	c->requests++;
	if (grpc_head_read(c->server->config.services, headers, n, &head, &http, &err) < 0) {
		grpc_server_sign(c->server, &err);
		refuse(c, id, &head, http, &err);
	} else if (check_place(c, &err) < 0) {
		grpc_server_sign(c->server, &err);
		reject(c, id, &head, 200, err);
	} else {
		grpc_stream_new(c, id, &head);
	}
}

/* A call that was answered already has no stream here, while the rest of its request may still arrive. */
static void on_data(void *user, int32_t id, struct span data)
{
	struct grpc_stream *st = stream_find(user, id);

	if (st)
		grpc_stream_feed(st, data);
}

static void on_end(void *user, int32_t id)
{
	struct grpc_stream *st = stream_find(user, id);

	if (st)
		grpc_stream_run(st);
}

static void on_close(void *user, int32_t id, uint32_t code)
{
	struct grpc_conn *c = user;
	struct grpc_stream *st = stream_find(c, id);

	(void)code;
	if (st)
		grpc_stream_abandon(st);
	if (h2_streams(c->h2) == 0)
		c->idle_since_ns = clock_ns();
}

static const struct h2_events events = {
	.on_headers = on_headers,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
};

/* Keeps the server's sum in step with what the connection has to send. */
static void set_sending(struct grpc_conn *c, size_t now)
{
	uint64_t now_ns = clock_ns();

	if (now == 0)
		c->stuck_since_ns = 0;
	else if (now < c->sending_bytes)
		lag_progress(&c->stuck_since_ns, c->sending_bytes - now, LIMIT_STALLED_BYTES_PER_S, now_ns);
	else
		lag_begin(&c->stuck_since_ns, now_ns);
	c->server->buffered_bytes += now - c->sending_bytes;
	c->sending_bytes = now;
}

void grpc_conn_count(struct grpc_conn *c)
{
	set_sending(c, c->out_bytes + h2_buffered(c->h2));
}

bool grpc_conn_has_room(const struct grpc_conn *c, size_t n)
{
	size_t own = c->request_bytes + c->sending_bytes + n;

	if (own <= LIMIT_RESERVED_BYTES)
		return true;
	return own <= LIMIT_CONN_BUFFERED_BYTES && c->server->buffered_bytes + n <= LIMIT_BUFFERED_BYTES;
}

/* What is held without a call that could be refused: answers to control frames, and what they wait behind. */
static int check_held(const struct grpc_conn *c, struct error **err)
{
	if (c->sending_bytes <= LIMIT_RESERVED_BYTES || c->server->buffered_bytes <= LIMIT_HELD_BYTES)
		return 0;
	return err_set(err, ERR_EXHAUSTED, "the server holds too many bytes for its peers");
}

void grpc_conn_flush(struct grpc_conn *c)
{
	accepted_flush(&c->head);
}

static int conn_receive(void *self, struct span bytes, struct error **err)
{
	struct grpc_conn *c = self;

	if (h2_recv(c->h2, bytes, err) < 0)
		return -1;
	grpc_conn_count(c);
	return check_held(c, err);
}

static int conn_send(void *self, struct buf *out, struct error **err)
{
	struct grpc_conn *c = self;

	if (h2_send(c->h2, out, err) < 0)
		return -1;
	c->out_bytes = out->len;
	if (c->done_ns == 0 && h2_is_done(c->h2))
		c->done_ns = clock_ns();
	grpc_conn_count(c);
	return check_held(c, err);
}

static bool conn_is_done(const void *self)
{
	const struct grpc_conn *c = self;

	return h2_is_done(c->h2);
}

/* A peer that has said GOAWAY may still send. One on this machine hangs up at once. */
static bool conn_lingers(const void *self)
{
	const struct grpc_conn *c = self;

	return !c->head.is_unix && !c->draining;
}

static const struct conn_protocol protocol = {
	.receive = conn_receive,
	.send = conn_send,
	.is_done = conn_is_done,
	.lingers = conn_lingers,
};

static struct accepted *server_open(void *server, bool is_unix)
{
	struct grpc_conn *c = x_calloc(1, sizeof(*c));

	c->server = server;
	c->h2 = h2_server_new(!is_unix, &events, c);
	return &c->head;
}

static struct grpc_conn *conn_of(struct accepted *a)
{
	return (struct grpc_conn *)a;
}

static void *server_protocol_self(struct accepted *a)
{
	return conn_of(a);
}

static void server_close(struct accepted *a)
{
	struct grpc_conn *c = conn_of(a);

	while (c->streams)
		grpc_stream_abandon(c->streams);
	set_sending(c, 0);
	h2_free(c->h2);
	free(c);
}

static void server_drain(struct accepted *a)
{
	struct grpc_conn *c = conn_of(a);
	struct grpc_stream *next;

	for (struct grpc_stream *st = c->streams; st; st = next) {
		next = st->next;
		if (st->running)
			continue;
		h2_reset(c->h2, st->id, H2_REFUSED_STREAM);
		grpc_stream_abandon(st);
	}
	c->draining = true;
	h2_shutdown(c->h2);
}

static uint64_t server_requests(const struct accepted *a)
{
	return ((const struct grpc_conn *)a)->requests;
}

/* Requests and replies that the peer does not continue hold memory that others could use. */
static bool is_stuck(const struct grpc_conn *c, uint64_t now_ns)
{
	if (c->stuck_since_ns && now_ns > c->stuck_since_ns + LIMIT_STALLED_MS * NS_PER_MS)
		return true;
	for (const struct grpc_stream *st = c->streams; st; st = st->next) {
		if (!st->running && now_ns > st->begin_ns + LIMIT_REQUEST_MS * NS_PER_MS)
			return true;
	}
	return false;
}

static bool server_has_expired(const struct accepted *a, uint64_t now_ns)
{
	const struct grpc_conn *c = (const struct grpc_conn *)a;

	if (is_stuck(c, now_ns))
		return true;
	if (c->done_ns)
		return now_ns > c->done_ns + LIMIT_LINGER_MS * NS_PER_MS;
	return c->requests > 0 && !a->is_unix && h2_streams(c->h2) == 0 &&
	       now_ns > c->idle_since_ns + LIMIT_GRPC_IDLE_MS * NS_PER_MS;
}

static bool server_is_running(const struct accepted *a)
{
	const struct grpc_conn *c = (const struct grpc_conn *)a;

	for (const struct grpc_stream *st = c->streams; st; st = st->next) {
		if (st->running)
			return true;
	}
	return false;
}

const struct acceptor_server grpc_conn_server = {
	.protocol = &protocol,
	.open = server_open,
	.protocol_self = server_protocol_self,
	.close = server_close,
	.drain = server_drain,
	.requests = server_requests,
	.has_expired = server_has_expired,
	.is_running = server_is_running,
};

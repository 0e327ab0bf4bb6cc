/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_conn.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/core/slow_reader.h"

/* of a method that does not exist, in the log */
#define MAX_LOGGED_PATH 256

/* Timers count in ms of another width; a longer wait is made of several. */
#define MAX_TIMER_MS 3600000

/* Keeps the server's sum in step with what the connection has to send. */
static void set_sending(struct grpc_conn *c, size_t now)
{
	uint64_t now_ns = clock_ns();

	if (now == 0)
		c->stuck_since_ns = 0;
	else if (now < c->sending_bytes)
		slow_reader_progress(
			&c->stuck_since_ns, c->sending_bytes - now, LIMIT_STALLED_BYTES_PER_S, now_ns);
	else
		slow_reader_begin(&c->stuck_since_ns, now_ns);
	c->server->buffered_bytes += now - c->sending_bytes;
	c->sending_bytes = now;
}

static void count_sending(struct grpc_conn *c)
{
	set_sending(c, c->out_bytes + h2_buffered(c->h2));
}

static bool has_room(const struct grpc_conn *c, size_t n)
{
	size_t own = c->request_bytes + c->sending_bytes + n;

	if (own <= LIMIT_RESERVED_BYTES)
		return true;
	return own <= LIMIT_CONN_BUFFERED_BYTES && c->server->buffered_bytes + n <= LIMIT_BUFFERED_BYTES;
}

/* The call may outlive its connection. */
static const char *const *copy_names(const struct grpc_conn *c, struct arena *arena)
{
	const struct tls *tls = conn_tls(c->head.conn);
	const char *const *names = tls ? tls_peer_names(tls) : NULL;
	const char **copy;
	size_t n = 0;

	if (!names)
		return NULL;
	while (names[n])
		n++;
	copy = arena_alloc(arena, (n + 1) * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = arena_strdup(arena, names[i]);
	return copy;
}

static const char *copy_text(struct span text, struct arena *arena)
{
	char *copy;

	if (!text.p)
		return NULL;
	copy = arena_alloc(arena, text.n + 1);
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	return copy;
}

static struct grpc_stream *stream_new(struct grpc_conn *c, int32_t id, const struct grpc_head *head)
{
	struct grpc_stream *st = x_calloc(1, sizeof(*st));

	st->server = c->server;
	st->server->live_calls++;
	st->conn = c;
	st->id = id;
	st->method = head->target;
	st->service = head->service;
	st->has_encoding = head->encoding.n > 0 && !span_eq(head->encoding, "identity");
	st->begin_ns = clock_ns();
	grpc_assembler_init(&st->body);
	st->call.arena = arena_new(LIMIT_ARENA_BYTES);
	st->call.deadline_ns =
		head->timeout_ns == UINT64_MAX ? DEADLINE_NONE : st->begin_ns + head->timeout_ns;
	st->call.id = c->server->calls++;
	st->call.peer_names = copy_names(c, st->call.arena);
	st->call.authorization = copy_text(head->authorization, st->call.arena);
	st->next = c->streams;
	c->streams = st;
	c->calls++;
	return st;
}

static void release_request(struct grpc_stream *st)
{
	st->server->buffered_bytes -= st->body.message.cap;
	if (st->conn)
		st->conn->request_bytes -= st->body.message.cap;
	grpc_assembler_done(&st->body);
}

static void stream_free(struct grpc_stream *st)
{
	release_request(st);
	st->server->live_calls--;
	arena_free(st->call.arena);
	error_free(st->error);
	free(st);
}

/* Removes the call from its connection: from now on no event of the connection reaches the call. */
static void detach(struct grpc_stream *st)
{
	struct grpc_stream **link = &st->conn->streams;

	while (*link != st)
		link = &(*link)->next;
	*link = st->next;
	st->conn->request_bytes -= st->body.message.cap;
	st->conn->calls--;
	st->conn = NULL;
	loop_timer_close(TAKE_PTR(st->timer));
}

static void stream_abandon(struct grpc_stream *st)
{
	detach(st);
	if (!st->running)
		stream_free(st);
}

static void log_end(struct log_quota *quota, const char *msg, const char *method, uint64_t id,
	const char *volume, uint64_t begin_ns, const struct error *e)
{
	uint64_t duration_ms = (clock_ns() - begin_ns) / NS_PER_MS;
	/* a field without a key ends the line */
	const struct log_field about = volume ? F_STR("volume", volume) : (struct log_field){0};
	bool is_ours;

	if (!e) {
		log_debug(msg, F_STR("method", method), F_U64("call", id), F_U64("duration_ms", duration_ms),
			about);
		return;
	}
	if (!log_quota_take(quota, clock_ns()))
		return;
	is_ours = e->code == ERR_INTERNAL || e->code == ERR_UNAVAILABLE || e->code == ERR_UNKNOWN;
	LOG_AT(is_ours ? LOG_WARN : LOG_INFO, msg, F_STR("method", method), F_U64("call", id), F_ERR(e),
		F_U64("duration_ms", duration_ms), about);
}

static const char *volume_of(const struct grpc_stream *st)
{
	const ProtobufCMessage *request = atomic_load(&st->request);

	return request && st->service->volume_of ? st->service->volume_of(request) : NULL;
}

static void end_call(const char *msg, const struct grpc_stream *st, const struct error *e)
{
	const struct grpc_observer *observer = &st->server->config.observer;

	log_end(st->server->failed_log, msg, st->method->path, st->call.id, volume_of(st), st->begin_ns, e);
	/* A call that was answered at its deadline while it runs is observed when it has run. */
	if (observer->ended && !st->running)
		observer->ended(observer->user, st->method->path, e ? (unsigned)e->code : 0,
			clock_ns() - st->begin_ns);
}

/* The client gets @e; @st is gone, or will be when its handler returns. */
static void answer_error(struct grpc_stream *st, const struct error *e)
{
	grpc_reply_error(st->conn->h2, st->id, 200, e);
	count_sending(st->conn);
	end_call("gRPC call failed", st, e);
	stream_abandon(st);
}

/* The error is not ERR_EXHAUSTED, which external-provisioner takes as "no space for the volume": the call may
 * have made one, and is to be repeated on this server. */
static int too_many_bytes(const struct grpc_server *s, struct error **err)
{
	err_set(err, ERR_UNAVAILABLE, "the server holds too many bytes of requests and replies");
	grpc_server_sign(s, err);
	return -1;
}

static void answer(struct grpc_stream *st)
{
	release_request(st);
	if (st->error && !st->by_handler)
		grpc_server_sign(st->server, &st->error);
	if (!st->error && !has_room(st->conn, st->packed.n))
		too_many_bytes(st->server, &st->error);
	if (st->error) {
		answer_error(st, st->error);
		return;
	}
	grpc_reply_message(st->conn->h2, st->id, st->packed);
	count_sending(st->conn);
	end_call("gRPC call", st, NULL);
	stream_abandon(st);
}

static void stream_feed(struct grpc_stream *st, struct span data)
{
	struct grpc_server *s = st->server;
	size_t before = st->body.message.cap;
	int rv;

	if (!st->method)
		return;
	rv = grpc_assembler_feed(&st->body, data, &st->error);
	s->buffered_bytes += st->body.message.cap - before;
	st->conn->request_bytes += st->body.message.cap - before;
	/* A compressed message is INTERNAL instead of UNIMPLEMENTED if the request has no grpc-encoding, as
	 * in grpc-go. */
	if (rv < 0 && st->error->code == ERR_UNIMPLEMENTED && !st->has_encoding)
		err_recode(&st->error, ERR_INTERNAL);
	if (rv < 0)
		grpc_server_sign(s, &st->error);
	else if (!has_room(st->conn, 0))
		rv = too_many_bytes(s, &st->error);
	if (rv < 0)
		answer_error(st, st->error);
}

/* Any thread, as the next: see grpc_conn.h for what it may touch. */
static int unpack(struct grpc_stream *st, ProtobufCMessage **ret_request)
{
	struct arena *arena = st->call.arena;

	if (grpc_protobuf_unpack(
		    st->method->request, buf_span(&st->body.message), arena, ret_request, &st->error) < 0)
		return -1;
	atomic_store(&st->request, *ret_request);
	st->reply = arena_alloc(arena, st->method->reply->sizeof_message);
	protobuf_c_message_init(st->method->reply, st->reply);
	return 0;
}

static int handle(struct grpc_stream *st)
{
	struct grpc_call *call = &st->call;
	ProtobufCMessage *request;

	if (unpack(st, &request) < 0)
		return -1;
	st->by_handler = st->method->handle(st->service->self, call, request, st->reply, &st->error) < 0;
	if (st->by_handler)
		return -1;
	return grpc_protobuf_pack(st->reply, call->arena, &st->packed, &st->error);
}

static void work(void *user)
{
	struct grpc_stream *st = user;

	/* The error of a failure is kept in the call. */
	if (handle(st) < 0)
		return;
}

static bool is_big(const struct grpc_stream *st)
{
	return st->body.message.len > LIMIT_BIG_MESSAGE_BYTES;
}

/* The objects of such a request are scattered over the heap, which would otherwise keep the memory. */
static void trim_after(bool big)
{
	if (big)
		mem_trim();
}

/* Its handler gives the call back. */
static void come_back(struct grpc_stream *st)
{
	bool big = st->big;
	struct grpc_server *s = st->server;
	struct grpc_conn *c = st->conn;

	st->running = false;
	s->running--;
	loop_release(s->config.loop);
	if (c) {
		answer(st);
		accepted_flush(&c->head);
	} else {
		end_call("gRPC call ended after its client had gone", st, st->error);
		stream_free(st);
		/* a crowd's memory was given back when its last connection ended, before this was free */
		big = big || s->running == 0;
		grpc_server_check(s);
	}
	trim_after(big);
}

static void on_worked(void *user)
{
	struct grpc_stream *st = user;

	st->server->big_running -= st->big;
	come_back(st);
}

static void post_worked(void *user)
{
	struct grpc_stream *st = user;

	loop_post(st->server->config.loop, on_worked, st);
}

static char *ask_service(const struct grpc_stream *st, const ProtobufCMessage *request)
{
	return st->service->current_step ? st->service->current_step(st->service->self, request) : NULL;
}

/* Nearly at the deadline. The handler cannot be interrupted: it continues, and its result is dropped. */
static void on_deadline(void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_stream *st = user;
	struct grpc_conn *c = st->conn;

	if (clock_ns() < st->answer_by_ns) {
		loop_timer_set(st->timer, (uint64_t)clock_left_ms(st->answer_by_ns, MAX_TIMER_MS), 0);
		return;
	}

	const ProtobufCMessage *request = atomic_load(&st->request);
	CLEANUP(free_charp) char *step = request ? ask_service(st, request) : NULL;
	err_set(&err, ERR_DEADLINE, "no answer before the deadline; the operation continues%s%s",
		step ? ": " : "", step ? step : "");
	grpc_server_sign(st->server, &err);
	answer_error(st, err);
	accepted_flush(&c->head);
}

static uint64_t early_ns(const struct grpc_stream *st)
{
	uint64_t tenth_ns = (st->call.deadline_ns - st->begin_ns) / 10;

	return tenth_ns < LIMIT_ANSWER_EARLY_MS * NS_PER_MS ? tenth_ns : LIMIT_ANSWER_EARLY_MS * NS_PER_MS;
}

static void answer_busy(struct grpc_stream *st)
{
	CLEANUP(free_charp) char *step = ask_service(st, NULL);

	err_set(&st->error, ERR_UNAVAILABLE, "all worker threads are busy%s%s", step ? ": " : "",
		step ? step : "");
	answer(st);
}

/* The handler has the call from now on. */
static void lend(struct grpc_stream *st)
{
	struct grpc_server *s = st->server;

	s->running++;
	loop_hold(s->config.loop);
	if (st->call.deadline_ns == DEADLINE_NONE)
		return;
	st->answer_by_ns = st->call.deadline_ns - early_ns(st);
	st->timer = loop_timer_new(s->config.loop, on_deadline, st);
	loop_timer_set(st->timer, (uint64_t)clock_left_ms(st->answer_by_ns, MAX_TIMER_MS), 0);
}

static void start_work(struct grpc_stream *st)
{
	struct grpc_server *s = st->server;

	st->big = is_big(st);
	if (st->big && s->big_running >= LIMIT_BIG_CALLS) {
		err_set(&st->error, ERR_UNAVAILABLE, "too many big requests at a time");
		answer(st);
		return;
	}
	st->running = true;
	if (!workers_run(
		    st->service->workers ? st->service->workers : s->config.workers, work, post_worked, st)) {
		st->running = false;
		answer_busy(st);
		return;
	}
	s->big_running += st->big;
	lend(st);
}

static struct grpc_stream *stream_of(const struct grpc_call *call)
{
	return (struct grpc_stream *)((uintptr_t)call - offsetof(struct grpc_stream, call));
}

static void on_finished(void *user)
{
	struct grpc_stream *st = user;

	if (!st->by_handler && grpc_protobuf_pack(st->reply, st->call.arena, &st->packed, &st->error) < 0)
		log_debug("reply cannot be packed", F_ERR(st->error));
	st->server->async--;
	come_back(st);
}

/* Posted, since the caller may be inside of this or another connection's callbacks. */
void grpc_call_finish(struct grpc_call *call, struct error *error)
{
	struct grpc_stream *st = stream_of(call);

	st->error = error;
	st->by_handler = error != NULL;
	loop_post(st->server->config.loop, on_finished, st);
}

void grpc_call_peer(const struct grpc_call *call, struct buf *out)
{
	const struct grpc_conn *c = stream_of(call)->conn;

	if (c)
		conn_peer(c->head.conn, out);
}

bool grpc_call_is_wanted(const struct grpc_call *call)
{
	return stream_of(call)->conn != NULL;
}

static void start_async(struct grpc_stream *st)
{
	struct grpc_server *s = st->server;
	ProtobufCMessage *request;

	if (s->async >= LIMIT_ASYNC_CALLS) {
		err_set(&st->error, ERR_UNAVAILABLE, "too many long-running calls at a time");
		answer(st);
		return;
	}
	if (unpack(st, &request) < 0) {
		answer(st);
		return;
	}
	st->running = true;
	s->async++;
	lend(st);
	st->method->start(st->service->self, &st->call, request, st->reply);
}

static void answer_foreign(struct grpc_stream *st)
{
	grpc_reply_plain(st->conn->h2, st->id, 415, st->error);
	log_end(st->server->refused_log, "call refused: not gRPC", "", st->call.id, /* volume= */ NULL,
		st->begin_ns, st->error);
	stream_abandon(st);
}

static void stream_run(struct grpc_stream *st)
{
	bool big = is_big(st);

	if (!st->method) {
		answer_foreign(st);
	} else if (!st->body.complete) {
		err_set(&st->error, ERR_INTERNAL, "the request ended before its message was complete");
		answer(st);
	} else if (clock_ns() >= st->call.deadline_ns) {
		err_set(&st->error, ERR_DEADLINE, "the deadline had passed before the call could start");
		answer(st);
	} else if (st->method->kind == GRPC_WORKER) {
		start_work(st);
	} else if (st->method->kind == GRPC_ASYNC) {
		start_async(st);
	} else {
		work(st);
		answer(st);
		trim_after(big);
	}
}

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
	log_end(c->server->refused_log, "gRPC call refused", path, c->server->calls++,
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

static int check_recipient(const struct grpc_conn *c, const struct grpc_head *head, struct error **err)
{
	const char *recipient = c->server->config.recipient;
	struct span wanted = head->recipient;

	if (!wanted.p || !recipient || span_eq(wanted, recipient))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "this is node %s, and the call is for node %.*s", recipient,
		(int)(wanted.n < MAX_LOGGED_PATH ? wanted.n : MAX_LOGGED_PATH), (const char *)wanted.p);
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
		stream_new(c, id, head)->error = TAKE_PTR(*why);
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
	} else if (check_recipient(c, &head, &err) < 0 || check_place(c, &err) < 0) {
		grpc_server_sign(c->server, &err);
		reject(c, id, &head, 200, err);
	} else {
		stream_new(c, id, &head);
	}
}

/* A call that was answered already has no stream here, while the rest of its request may still arrive. */
static void on_data(void *user, int32_t id, struct span data)
{
	struct grpc_stream *st = stream_find(user, id);

	if (st)
		stream_feed(st, data);
}

static void on_end(void *user, int32_t id)
{
	struct grpc_stream *st = stream_find(user, id);

	if (st)
		stream_run(st);
}

static void on_close(void *user, int32_t id, uint32_t code)
{
	struct grpc_conn *c = user;
	struct grpc_stream *st = stream_find(c, id);

	(void)code;
	if (st)
		stream_abandon(st);
	if (h2_streams(c->h2) == 0)
		c->idle_since_ns = clock_ns();
}

static const struct h2_events events = {
	.on_headers = on_headers,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
};

/* Bytes that do not belong to a call that could be refused: answers to control frames, and what has to be
 * sent before them. */
static int check_held(const struct grpc_conn *c, struct error **err)
{
	if (c->sending_bytes <= LIMIT_RESERVED_BYTES || c->server->buffered_bytes <= LIMIT_HELD_BYTES)
		return 0;
	return err_set(err, ERR_EXHAUSTED, "the server holds too many bytes for its peers");
}

static int conn_receive(void *self, struct span bytes, struct error **err)
{
	struct grpc_conn *c = self;

	if (h2_recv(c->h2, bytes, err) < 0)
		return -1;
	count_sending(c);
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
	count_sending(c);
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

	for (struct grpc_stream *st = c->streams, *next; st; st = next) {
		next = st->next;
		stream_abandon(st);
	}
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
		stream_abandon(st);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/grpc/grpc_conn.h"

/* Timers count in ms of another width; a longer wait is made of several. */
#define MAX_TIMER_MS 3600000

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

struct grpc_stream *grpc_stream_new(struct grpc_conn *c, int32_t id, const struct grpc_head *head)
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

/* From now on no event of the connection reaches the call. */
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

void grpc_stream_abandon(struct grpc_stream *st)
{
	detach(st);
	if (!st->running)
		stream_free(st);
}

void grpc_log_end(struct log_quota *quota, const char *msg, const char *method, uint64_t id,
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

	grpc_log_end(
		st->server->failed_log, msg, st->method->path, st->call.id, volume_of(st), st->begin_ns, e);
	/* A call that was answered at its deadline while it runs is observed when it has run. */
	if (observer->ended && !st->running)
		observer->ended(observer->user, st->method->path, e ? (unsigned)e->code : 0,
			clock_ns() - st->begin_ns);
}

/* The client gets @e; @st is gone, or will be when its handler returns. */
static void answer_error(struct grpc_stream *st, const struct error *e)
{
	grpc_reply_error(st->conn->h2, st->id, 200, e);
	grpc_conn_count(st->conn);
	end_call("gRPC call failed", st, e);
	grpc_stream_abandon(st);
}

/* Not ERR_EXHAUSTED, which is for volumes: the call may have made one, and is to be repeated here. */
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
	if (!st->error && !grpc_conn_has_room(st->conn, st->packed.n))
		too_many_bytes(st->server, &st->error);
	if (st->error) {
		answer_error(st, st->error);
		return;
	}
	grpc_reply_message(st->conn->h2, st->id, st->packed);
	grpc_conn_count(st->conn);
	end_call("gRPC call", st, NULL);
	grpc_stream_abandon(st);
}

void grpc_stream_feed(struct grpc_stream *st, struct span data)
{
	struct grpc_server *s = st->server;
	size_t before = st->body.message.cap;
	int rv;

	if (!st->method)
		return;
	rv = grpc_assembler_feed(&st->body, data, &st->error);
	s->buffered_bytes += st->body.message.cap - before;
	st->conn->request_bytes += st->body.message.cap - before;
	/* As grpc-go: a compressed message in an encoding that was not named is an error of another kind. */
	if (rv < 0 && st->error->code == ERR_UNIMPLEMENTED && !st->has_encoding)
		err_recode(&st->error, ERR_INTERNAL);
	if (rv < 0)
		grpc_server_sign(s, &st->error);
	else if (!grpc_conn_has_room(st->conn, 0))
		rv = too_many_bytes(s, &st->error);
	if (rv < 0)
		answer_error(st, st->error);
}

/* Any thread, as the next: see grpc_conn.h for what it may touch. */
static int unpack(struct grpc_stream *st, ProtobufCMessage **ret_request)
{
	struct arena *arena = st->call.arena;

	if (grpc_message_unpack(
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
	return grpc_message_pack(st->reply, call->arena, &st->packed, &st->error);
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

/* What such a request unpacks to is scattered over the heap, which keeps it otherwise. */
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
		grpc_conn_flush(c);
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

/* Nearly at the deadline. The handler cannot be interrupted: it goes on, and what it returns is dropped. */
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
	grpc_conn_flush(c);
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
	if (!workers_run(s->config.workers, work, post_worked, st)) {
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

	if (!st->by_handler && grpc_message_pack(st->reply, st->call.arena, &st->packed, &st->error) < 0)
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

bool grpc_call_is_wanted(const struct grpc_call *call)
{
	return stream_of(call)->conn != NULL;
}

static void start_async(struct grpc_stream *st)
{
	struct grpc_server *s = st->server;
	ProtobufCMessage *request;

	if (s->async >= LIMIT_ASYNC_CALLS) {
		err_set(&st->error, ERR_UNAVAILABLE, "too many calls at a time that take long");
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
	grpc_log_end(st->server->refused_log, "call refused: not gRPC", "", st->call.id, /* volume= */ NULL,
		st->begin_ns, st->error);
	grpc_stream_abandon(st);
}

void grpc_stream_run(struct grpc_stream *st)
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

#include "net/grpc_client.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/addr.h"
#include "net/grpc_client_call.h"
#include "net/h2_io.h"

struct grpc_client_conn {
	struct grpc_client_conn *next;
	struct grpc_client *client;
	struct h2_io io;
	bool leaving; /* takes no new calls */
};

struct grpc_client {
	struct loop *loop;
	struct addr addr;
	char *endpoint;
	char *authority;
	struct loop_timer *kick;        /* starts the calls that were made since the last round */
	struct grpc_client_conn *conns; /* one that takes new calls at most */
	struct grpc_client_call *calls; /* in the order they were made */
	bool delivering;
	bool closing;
};

static void deliver(struct grpc_client *c);

static void calls_append(struct grpc_client *c, struct grpc_client_call *call)
{
	struct grpc_client_call **link = &c->calls;

	while (*link)
		link = &(*link)->next;
	*link = call;
}

static struct grpc_client_call *call_find(struct grpc_client_conn *conn, int32_t stream)
{
	for (struct grpc_client_call *call = conn->client->calls; call; call = call->next) {
		if (call->conn == conn && call->stream == stream && !call->ended)
			return call;
	}
	return NULL;
}

static void on_headers(void *user, int32_t stream, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct grpc_client_call *call = call_find(user, stream);

	(void)is_trailer;
	if (call)
		grpc_client_call_headers(call, headers, n);
}

static void on_data(void *user, int32_t stream, struct span data)
{
	struct grpc_client_call *call = call_find(user, stream);
	struct grpc_client_conn *conn = user;

	if (call && grpc_client_call_feed(call, data) < 0)
		h2_reset(conn->io.h2, stream, H2_CANCEL);
}

/* What a stream ends with is known when it is closed. */
static void on_end(void *user, int32_t stream)
{
	(void)user;
	(void)stream;
}

static void on_close(void *user, int32_t stream, uint32_t code)
{
	struct grpc_client_call *call = call_find(user, stream);

	if (call)
		grpc_client_call_close(call, code);
}

static const struct h2_events events = {
	.on_headers = on_headers,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
};

static void conn_close(struct grpc_client_conn *conn)
{
	struct grpc_client *c = conn->client;
	struct grpc_client_conn **link = &c->conns;

	while (*link != conn)
		link = &(*link)->next;
	*link = conn->next;
	for (struct grpc_client_call *call = c->calls; call; call = call->next) {
		if (call->conn == conn)
			grpc_client_call_fail(call, ERR_UNAVAILABLE, "%s: %s", c->endpoint,
				conn->io.why ? conn->io.why->msg : "connection closed");
	}
	h2_io_stop(&conn->io);
	free(conn);
}

static void on_round(void *user, bool over)
{
	struct grpc_client_conn *conn = user;
	struct grpc_client *c = conn->client;

	if (over)
		conn_close(conn);
	deliver(c);
}

static int conn_get(struct grpc_client *c, struct grpc_client_conn **ret, struct error **err)
{
	struct grpc_client_conn *conn = c->conns;
	int fd;

	while (conn && conn->leaving)
		conn = conn->next;
	if (conn) {
		*ret = conn;
		return 0;
	}
	if (addr_connect(&c->addr, &fd, err) < 0)
		return -1;
	conn = x_calloc(1, sizeof(*conn));
	conn->client = c;
	if (h2_io_start(&conn->io, c->loop, fd, h2_client_new(&events, conn), true, on_round, conn, err) <
		0) {
		free(conn);
		return -1;
	}
	conn->next = c->conns;
	c->conns = conn;
	*ret = conn;
	return 0;
}

static int start_on(struct grpc_client_conn *conn, struct grpc_client_call *call, struct error **err)
{
	if (grpc_client_call_request(call, conn->io.h2, conn->client->authority, err) < 0) {
		conn->leaving = true;
		return -1;
	}
	call->conn = conn;
	return 0;
}

/* That a connection takes no more streams (GOAWAY) shows when one is tried; a new one takes the call then. */
static void start(struct grpc_client *c, struct grpc_client_call *call)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_client_conn *conn;

	for (int i = 0; i < 2; i++) {
		error_clear(&err);
		if (conn_get(c, &conn, &err) < 0)
			break;
		if (start_on(conn, call, &err) == 0)
			return;
	}
	grpc_client_call_fail(call, err->code, "%s: %s", c->endpoint, err->msg);
}

static void flush_all(struct grpc_client *c)
{
	struct grpc_client_conn *next;

	for (struct grpc_client_conn *conn = c->conns; conn; conn = next) {
		next = conn->next;
		if (!h2_io_flush(&conn->io))
			conn_close(conn);
	}
}

static void on_kick(void *user)
{
	struct grpc_client *c = user;

	for (struct grpc_client_call *call = c->calls; call; call = call->next) {
		if (!call->conn && !call->ended)
			start(c, call);
	}
	flush_all(c);
	deliver(c);
}

static void on_timeout(void *user)
{
	struct grpc_client_call *call = user;
	struct grpc_client *c = call->client;

	if (call->conn && !call->ended)
		h2_reset(call->conn->io.h2, call->stream, H2_CANCEL);
	grpc_client_call_fail(call, ERR_DEADLINE, "%s: no answer within the time limit", c->endpoint);
	flush_all(c);
	deliver(c);
}

static struct grpc_client_call *take_ended(struct grpc_client *c)
{
	for (struct grpc_client_call **link = &c->calls; *link; link = &(*link)->next) {
		struct grpc_client_call *call = *link;

		if (!call->ended)
			continue;
		*link = call->next;
		return call;
	}
	return NULL;
}

static void destroy(struct grpc_client *c)
{
	loop_timer_close(c->kick);
	addr_done(&c->addr);
	free(c->endpoint);
	free(c->authority);
	free(c);
}

/* Never from callbacks of h2: whoever is called may make new calls, or free the client. */
static void deliver(struct grpc_client *c)
{
	struct grpc_client_call *call;

	if (c->delivering)
		return;
	c->delivering = true;
	while ((call = take_ended(c))) {
		call->fn(call->user, call->reply, call->error);
		grpc_client_call_free(call);
	}
	c->delivering = false;
	if (c->closing)
		destroy(c);
}

static char *authority_of(const struct addr *a)
{
	if (a->is_unix)
		return x_strdup("localhost");
	return x_asprintf(strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
}

int grpc_client_new(struct loop *loop, const char *endpoint, struct grpc_client **ret, struct error **err)
{
	struct addr addr;
	struct grpc_client *c;

	if (addr_parse(endpoint, &addr, err) < 0)
		return -1;
	c = x_calloc(1, sizeof(*c));
	c->loop = loop;
	c->addr = addr;
	c->endpoint = x_strdup(endpoint);
	c->authority = authority_of(&addr);
	c->kick = loop_timer_new(loop, on_kick, c);
	*ret = c;
	return 0;
}

void grpc_client_free(struct grpc_client *c)
{
	if (!c)
		return;
	c->closing = true;
	for (struct grpc_client_call *call = c->calls; call; call = call->next)
		grpc_client_call_fail(call, ERR_CANCELLED, "%s: the client was closed", c->endpoint);
	while (c->conns)
		conn_close(c->conns);
	deliver(c);
}

static struct grpc_client_call *call_add(struct grpc_client *c, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user)
{
	struct grpc_client_call *call = grpc_client_call_new(path, request, reply_type, timeout_ms, fn, user);

	call->client = c;
	calls_append(c, call);
	if (c->closing)
		grpc_client_call_fail(call, ERR_CANCELLED, "%s: the client was closed", c->endpoint);
	if (timeout_ms > 0) {
		call->timer = loop_timer_new(c->loop, on_timeout, call);
		loop_timer_set(call->timer, timeout_ms, 0);
	}
	loop_timer_set(c->kick, 0, 0);
	return call;
}

void grpc_client_call(struct grpc_client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	call_add(c, path, request, reply_type, timeout_ms, fn, user);
}

struct sync {
	struct loop *loop;
	bool done;
	struct error *error;
};

static void on_sync_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct sync *sync = user;

	(void)reply;
	sync->done = true;
	if (error)
		err_set(&sync->error, error->code, "%s", error->msg);
	loop_stop(sync->loop);
}

int grpc_client_call_sync(struct grpc_client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, ProtobufCMessage **ret_reply,
	struct error **err)
{
	struct sync sync = {.loop = c->loop};
	ProtobufCMessage *copy = NULL;
	struct grpc_client_call *call =
		call_add(c, path, request, reply_type, timeout_ms, on_sync_reply, &sync);

	call->ret_copy = &copy;
	while (!sync.done)
		loop_run(c->loop);
	if (sync.error) {
		*err = sync.error;
		return -1;
	}
	*ret_reply = copy;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/core/acceptor.h"
#include "net/limits.h"

#define TEXT "text/plain; charset=utf-8"

struct http_server {
	struct http_server_config config;
	struct acceptor *acceptor;
	size_t buffered_bytes;
	struct http_call *calls;
	bool emptied; /* drained, but for calls */
	loop_fn on_drained;
	void *on_drained_user;
};

struct http_conn {
	struct accepted head;
	struct http_server *server;
	struct http1 *http1;
	struct http_call *call; /* that is not answered */
	bool in_handler;
};

struct http_call {
	struct http_call *prev;
	struct http_call *next;
	struct http_server *server; /* NULL: has gone */
	struct http_conn *conn;     /* as server */
	struct http1_request request;
	struct http1_held held;
};

static void reply_text(struct http_conn *c, unsigned status, const char *allow, const char *text)
{
	http1_reply(c->http1, status, TEXT, allow, span_of(text));
}

/* @methods: "GET, HEAD" */
static bool is_listed(const char *methods, struct span method)
{
	while (*methods) {
		size_t n = strcspn(methods, ", ");

		if (n == method.n && memcmp(methods, method.p, n) == 0)
			return true;
		methods += n;
		methods += strspn(methods, ", ");
	}
	return false;
}

static const struct http_route *find_route(const struct http_route *routes, struct span path)
{
	for (const struct http_route *r = routes; r->path; r++) {
		if (span_eq(path, r->path))
			return r;
	}
	return NULL;
}

static void send_reply(struct http_conn *c, struct http_reply *reply)
{
	if (reply->body.overflowed)
		reply_text(c, 500, NULL, "the reply is too large\n");
	else
		http1_reply_take(c->http1, reply->status, reply->content_type, &reply->body);
}

static void link_call(struct http_call *call)
{
	struct http_server *s = call->server;

	call->next = s->calls;
	if (s->calls)
		s->calls->prev = call;
	s->calls = call;
}

static void unlink_call(struct http_call *call)
{
	*(call->prev ? &call->prev->next : &call->server->calls) = call->next;
	if (call->next)
		call->next->prev = call->prev;
}

static void begin_call(
	struct http_conn *c, const struct http_route *route, const struct http1_request *request)
{
	struct http_call *call = x_calloc(1, sizeof(*call));

	call->server = c->server;
	call->conn = c;
	call->request = *request;
	http1_hold(c->http1, &call->held);
	link_call(call);
	c->call = call;
	c->in_handler = true;
	route->handle_later(route->self, call);
	c->in_handler = false;
}

static void handle(struct http_conn *c, const struct http_route *route, const struct http1_request *request)
{
	struct http_reply reply = HTTP_REPLY;

	if (route->handle_later) {
		begin_call(c, route, request);
		return;
	}
	route->handle(route->self, request, &reply);
	send_reply(c, &reply);
	buf_done(&reply.body);
}

const struct http1_request *http_call_request(const struct http_call *call)
{
	return &call->request;
}

const char *http_call_peer(const struct http_call *call)
{
	return call->conn ? call->conn->head.host : "";
}

bool http_call_gone(const struct http_call *call)
{
	return !call->conn;
}

static void call_free(struct http_call *call)
{
	http1_held_done(&call->held);
	free(call);
}

void http_call_reply(struct http_call *call, struct http_reply *reply)
{
	struct http_server *s = call->server;
	struct http_conn *c = call->conn;

	if (s)
		unlink_call(call);
	call_free(call);
	if (c) {
		c->call = NULL;
		send_reply(c, reply);
	}
	buf_done(&reply->body);
	/* In a handler the connection sends when that has returned. */
	if (c && !c->in_handler)
		accepted_flush(&c->head);
	/* Posted: the callback may free the server, which callers of this still use. */
	if (s && s->emptied && !s->calls)
		loop_post(s->config.loop, s->on_drained, s->on_drained_user);
}

static void on_request(void *user, const struct http1_request *request)
{
	struct http_conn *c = user;
	const struct http_route *route = find_route(c->server->config.routes, request->path);

	/* OPTIONS of the server as a whole (RFC 9110 section 9.3.7): a ping */
	if (span_eq(request->path, "*"))
		http1_reply(c->http1, 204, NULL, NULL, span_of(""));
	else if (!route)
		reply_text(c, 404, NULL, "there is nothing here\n");
	else if (!is_listed(route->methods, request->method))
		reply_text(c, 405, route->methods, "the method is not allowed here\n");
	else
		handle(c, route, request);
}

static struct accepted *open_conn(void *user, bool is_unix)
{
	struct http_server *s = user;
	struct http_conn *c = x_calloc(1, sizeof(*c));
	const struct http1_config config = {
		.max_body_bytes = s->config.max_body_bytes,
		.max_buffered_bytes = s->config.max_buffered_bytes,
		.buffered_bytes = &s->buffered_bytes,
		.is_single = s->config.for_probes,
		.on_request = on_request,
		.user = c,
	};

	(void)is_unix;
	c->server = s;
	c->http1 = http1_new(&config);
	return &c->head;
}

static struct http_conn *conn_of(struct accepted *a)
{
	return (struct http_conn *)a;
}

static void *protocol_self(struct accepted *a)
{
	return conn_of(a)->http1;
}

static void close_conn(struct accepted *a)
{
	struct http_conn *c = conn_of(a);

	if (c->call)
		c->call->conn = NULL;
	http1_free(c->http1);
	free(c);
}

static void drain_conn(struct accepted *a)
{
	http1_close(conn_of(a)->http1);
}

static uint64_t requests(const struct accepted *a)
{
	return http1_requests(((const struct http_conn *)a)->http1);
}

static bool has_expired(const struct accepted *a, uint64_t now_ns)
{
	return http1_has_expired(((const struct http_conn *)a)->http1, now_ns);
}

static bool is_running(const struct accepted *a)
{
	return ((const struct http_conn *)a)->call != NULL;
}

static uint64_t queued_since_ns(const struct accepted *a)
{
	return http1_queued_since_ns(((const struct http_conn *)a)->http1);
}

static int receive(void *self, struct span bytes, struct error **err)
{
	return http1_receive(self, bytes, err);
}

static int send_bytes(void *self, struct buf *out, struct error **err)
{
	return http1_send(self, out, err);
}

static bool is_done(const void *self)
{
	return http1_is_done(self);
}

static bool lingers(const void *self)
{
	return http1_lingers(self);
}

static const struct conn_protocol protocol = {
	.receive = receive,
	.send = send_bytes,
	.is_done = is_done,
	.lingers = lingers,
};

static const struct acceptor_server acceptor_server = {
	.protocol = &protocol,
	.open = open_conn,
	.protocol_self = protocol_self,
	.close = close_conn,
	.drain = drain_conn,
	.requests = requests,
	.has_expired = has_expired,
	.is_running = is_running,
	.queued_since_ns = queued_since_ns,
};

static unsigned max_connections(const struct http_server_config *config)
{
	if (config->for_probes)
		return LIMIT_PROBE_CONNECTIONS;
	return config->max_connections ? config->max_connections : LIMIT_HTTP1_CONNECTIONS;
}

struct http_server *http_server_new(const struct http_server_config *config)
{
	struct http_server *s = x_calloc(1, sizeof(*s));
	const struct acceptor_config acceptor = {
		.loop = config->loop,
		.handshakes = config->handshakes,
		.server = &acceptor_server,
		.user = s,
		.max_connections = max_connections(config),
		.is_brief = config->for_probes,
		.name = "HTTP",
	};

	s->config = *config;
	s->acceptor = acceptor_new(&acceptor);
	return s;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	acceptor_free(s->acceptor);
	for (struct http_call *call = s->calls; call; call = call->next) {
		call->server = NULL;
		call->held.buffered_bytes = NULL;
	}
	free(s);
}

int http_server_listen(struct http_server *s, const char *listen, struct tls_context *tls, struct error **err)
{
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://%s", listen);

	return acceptor_listen(s->acceptor, endpoint, tls, /* allow_plain_tcp= */ true, err);
}

unsigned http_server_port(const struct http_server *s)
{
	return acceptor_port(s->acceptor);
}

static void on_empty(void *user)
{
	struct http_server *s = user;

	s->emptied = true;
	if (!s->calls)
		s->on_drained(s->on_drained_user);
}

void http_server_drain(struct http_server *s, loop_fn on_drained, void *user)
{
	s->on_drained = on_drained;
	s->on_drained_user = user;
	acceptor_drain(s->acceptor, on_empty, s);
}

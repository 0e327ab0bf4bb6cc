#include "net/http_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/acceptor.h"
#include "net/limits.h"

#define TEXT "text/plain; charset=utf-8"

struct http_server {
	struct http_server_config config;
	struct acceptor *acceptor;
	size_t buffered_bytes;
};

struct http_conn {
	struct accepted head;
	struct http_server *server;
	struct http1 *http1;
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

static void handle(struct http_conn *c, const struct http_route *route, const struct http1_request *request)
{
	struct http_reply reply = {
		.status = 200, .content_type = TEXT, .body = BUF_INIT(LIMIT_HTTP1_BODY_BYTES)};

	route->handle(route->self, request, &reply);
	if (reply.body.overflowed)
		reply_text(c, 500, NULL, "the reply is too large\n");
	else
		http1_reply(c->http1, reply.status, reply.content_type, NULL, buf_span(&reply.body));
	buf_done(&reply.body);
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
		.buffered_bytes = &s->buffered_bytes,
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

	http1_free(c->http1);
	free(c);
}

static void drain_conn(struct accepted *a)
{
	http1_close(conn_of(a)->http1);
}

static bool is_known(const struct accepted *a)
{
	return http1_requests(((const struct http_conn *)a)->http1) > 0;
}

static bool has_expired(const struct accepted *a, uint64_t now_ns)
{
	return http1_has_expired(((const struct http_conn *)a)->http1, now_ns);
}

/* Handlers run to their end on the loop thread. */
static bool is_running(const struct accepted *a)
{
	(void)a;
	return false;
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
	.is_known = is_known,
	.has_expired = has_expired,
	.is_running = is_running,
};

struct http_server *http_server_new(const struct http_server_config *config)
{
	struct http_server *s = x_calloc(1, sizeof(*s));
	const struct acceptor_config acceptor = {
		.loop = config->loop,
		.handshakes = config->handshakes,
		.server = &acceptor_server,
		.user = s,
		.max_connections = LIMIT_HTTP1_CONNECTIONS,
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
	free(s);
}

int http_server_listen(struct http_server *s, const char *listen, struct tls_context *tls, struct error **err)
{
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://%s", listen);

	return acceptor_listen(s->acceptor, endpoint, tls, /* allow_remote= */ true, err);
}

unsigned http_server_port(const struct http_server *s)
{
	return acceptor_port(s->acceptor);
}

void http_server_drain(struct http_server *s, loop_fn on_drained, void *user)
{
	acceptor_drain(s->acceptor, on_drained, user);
}

/*
 * http_server.h - HTTP/1.1 servers for a few fixed paths: metrics, probes, the scheduler extender, webhooks.
 *
 * Handlers run on the loop thread and must not wait. An unknown path is 404, another method 405 with Allow;
 * HEAD is GET without the body. Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/handshakes.h"
#include "net/http1.h"
#include "net/loop.h"
#include "net/tls.h"

struct http_server;

struct http_reply {
	unsigned status;          /* 200 unless changed */
	const char *content_type; /* "text/plain; charset=utf-8" unless changed; static */
	struct buf body;
};

struct http_route {
	const char *path;
	const char *methods; /* as in Allow: "GET, HEAD" */
	void (*handle)(void *self, const struct http1_request *request, struct http_reply *reply);
	void *self;
};

struct http_server_config {
	struct loop *loop;
	struct handshakes *handshakes;   /* NULL without TLS */
	const struct http_route *routes; /* ends with path NULL; borrowed */
	size_t max_body_bytes;
};

/** http_server_new() - without listeners. Return: never NULL; http_server_free(). */
struct http_server *http_server_new(const struct http_server_config *config);
void http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free);

/** http_server_listen() - serve on @listen, ":port" or "host:port" as in Go's flags. @tls: referenced; NULL:
 * plain. Return: 0, or -1 with ERR_INVALID_ARGUMENT, or as addr_listen(). */
int http_server_listen(
	struct http_server *s, const char *listen, struct tls_context *tls, struct error **err) MUST_CHECK;

/** http_server_port() - the port of the listener that was added last. */
unsigned http_server_port(const struct http_server *s);

/** http_server_drain() - stop listening, finish what runs. @on_drained: called from the loop at the end. */
void http_server_drain(struct http_server *s, loop_fn on_drained, void *user);

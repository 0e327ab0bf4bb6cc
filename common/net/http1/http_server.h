/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server.h - HTTP/1.1 servers for a few fixed paths: metrics, probes, the scheduler extender, webhooks.
 *
 * Each connection is an http1 (http1.h) behind acceptor.h. Handlers run on the loop thread and must not wait;
 * a handler that has to wait for something keeps its call and replies later. A peer that closes the
 * connection meanwhile, even only for sending, counts as gone. Drain waits for all calls. An unknown path is
 * 404, another method 405 with Allow; HEAD is GET without the body. Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/http1/http1.h"
#include "net/limits.h"
#include "net/tls/tls.h"

struct http_server;

/* A request that is answered later. */
struct http_call;

struct http_reply {
	unsigned status;          /* 200 unless changed */
	const char *content_type; /* "text/plain; charset=utf-8" unless changed; static */
	struct buf body;          /* LIMIT_HTTP1_BODY_BYTES */
};

#define HTTP_REPLY                                                                                           \
	((struct http_reply){.status = 200,                                                                  \
		.content_type = "text/plain; charset=utf-8",                                                 \
		.body = BUF_INIT(LIMIT_HTTP1_BODY_BYTES)})

struct http_route {
	const char *path;
	const char *methods; /* as in Allow: "GET, HEAD" */
	/* @reply: to be filled in; a body beyond its limit becomes 500 */
	void (*handle)(void *self, const struct http1_request *request, struct http_reply *reply);
	void *self;
	/* instead of handle: it, or a later function, calls http_call_reply() exactly once */
	void (*handle_later)(void *self, struct http_call *call);
};

struct http_server_config {
	struct loop *loop;
	struct handshakes *handshakes;   /* NULL without TLS */
	const struct http_route *routes; /* ends with path NULL; borrowed */
	size_t max_body_bytes;           /* largest body of a request; beyond it the reply is 413 */
	size_t max_buffered_bytes; /* bodies of requests, and of replies on their way: requests beyond are
				    * refused with 503. 0: LIMIT_BUFFERED_BYTES */
	unsigned max_connections;  /* 0: LIMIT_HTTP1_CONNECTIONS */
	/* A server for probes, which must answer however many peers connect to other ports or to this one: a
	 * connection makes one request, is closed after the reply, and has LIMIT_SILENT_MS while others
	 * wait. Up to LIMIT_PROBE_CONNECTIONS are accepted, whatever max_connections is. */
	bool for_probes;
};

/** http_server_new() - without listeners. Return: never NULL; http_server_free(). */
struct http_server *http_server_new(const struct http_server_config *config);

/** http_server_free() - close all connections. Calls that are not answered stay valid, as after their peers
 * have gone. NULL is allowed. Not from handlers. */
void http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free);

/** http_server_listen() - serve on @listen, ":port" (all addresses) or "host:port" as in Go's flags; the host
 * is numeric or "localhost". @tls: referenced; NULL: plain, also beyond this host. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT, or as addr_listen(). */
int http_server_listen(
	struct http_server *s, const char *listen, struct tls_context *tls, struct error **err) MUST_CHECK;

/** http_server_port() - the port of the listener that was added last. */
unsigned http_server_port(const struct http_server *s);

/** http_call_request() - the request. Its spans live as long as @call. */
const struct http1_request *http_call_request(const struct http_call *call);

/** http_call_peer() - the address of the peer without its port, as addr_peer_host(); "" when it has gone.
 * Borrowed. */
const char *http_call_peer(const struct http_call *call);

/** http_call_gone() - whether the peer has gone, so that the reply is not needed. */
bool http_call_gone(const struct http_call *call);

/** http_call_reply() - answer @call and destroy it; when the peer has gone, only the latter. @reply: its body
 * is taken over; one beyond its limit becomes 500. */
void http_call_reply(struct http_call *call, struct http_reply *reply);

/** http_server_drain() - stop listening, and finish running calls. @on_drained: called from the loop at the
 * end. */
void http_server_drain(struct http_server *s, loop_fn on_drained, void *user);

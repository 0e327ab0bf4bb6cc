/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_server.h - gRPC servers on unix and TCP sockets: unary calls, deadlines, drain.
 *
 * The order of the checks is that of grpc-go: content-type, grpc-timeout, method, path, message. Each
 * connection is an h2 (h2.h) behind acceptor.h. Threads: create, listen and stop belong to the loop thread;
 * worker handlers run on the pool.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/core/workers.h"
#include "net/grpc/grpc_service.h"
#include "net/tls/tls.h"

struct grpc_server;

/* Called on the loop thread when the handling of a call of a known method has ended, once: also when its
 * client no longer waits. */
struct grpc_observer {
	/* @method_path: that of the method's table. @status: gRPC's, 0 is success. @duration_ns: from its
	 * header block on */
	void (*ended)(void *user, const char *method_path, unsigned status, uint64_t duration_ns);
	void *user;
};

struct grpc_server_config {
	const char
		*name; /* prefix of errors that the server itself finds in calls; NULL: no prefix. Borrowed */
	struct loop *loop;                   /* borrowed */
	struct workers *workers;             /* of services that have none of their own; borrowed */
	const struct grpc_service *services; /* ends with methods NULL; borrowed */
	/* Node that calls are served for: one that names another node in GRPC_RECIPIENT_HEADER is refused
	 * with UNAVAILABLE before its message is read, and one without that header is not, since clients of
	 * earlier releases and kubelet send none. NULL: the header is ignored. Borrowed */
	const char *recipient;
	bool allow_plain_tcp;          /* TCP without TLS is allowed (-insecure) */
	struct handshakes *handshakes; /* borrowed; NULL when no listener has TLS */
	struct grpc_observer observer; /* ended may be NULL */
	unsigned max_connections;      /* 0: LIMIT_CONNECTIONS */
};

/** grpc_server_new() - a server without listeners. Return: never NULL; grpc_server_free() after it has
 * drained. */
struct grpc_server *grpc_server_new(const struct grpc_server_config *config);
void grpc_server_free(struct grpc_server *s);
DEFINE_CLEANUP(struct grpc_server *, grpc_server_free);

/**
 * grpc_server_listen() - serve on @endpoint (addr.h) too.
 * @tls: referenced; its ALPN is "h2"; NULL: plain
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed; TCP without TLS and allow_plain_tcp), or
 * as addr_listen().
 */
int grpc_server_listen(
	struct grpc_server *s, const char *endpoint, struct tls_context *tls, struct error **err) MUST_CHECK;

/** grpc_server_port() - the TCP port of the listener that was added last, or 0. */
uint16_t grpc_server_port(const struct grpc_server *s);

struct grpc_server_count {
	unsigned connections;
	unsigned calls; /* calls being received, handled or answered, including those whose client has gone */
};

/** grpc_server_count() - count the connections and calls of @s. */
void grpc_server_count(const struct grpc_server *s, struct grpc_server_count *ret);

/**
 * grpc_server_drain() - stop listening (socket files are removed), send GOAWAY, let running calls finish,
 * close.
 * @on_drained: called on the loop thread when the last connection is closed; connections that a peer keeps
 * open without calls are closed at once
 */
void grpc_server_drain(struct grpc_server *s, loop_fn on_drained, void *user);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acceptor.h - the listening side of a server of any protocol: sockets, limits, time-outs, drain.
 *
 * It owns the connections of a server. Newcomers, which have not made a valid request yet, are limited in
 * number and time; beyond that number the oldest one is closed, so that silent peers do not keep others out.
 * The peer of a unix socket must be uid 0 or our own euid (SO_PEERCRED). Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/core/addr.h"
#include "net/core/conn.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/tls/tls.h"

struct acceptor;

/* Head of a server's own struct for a connection. Only the acceptor writes it. */
struct accepted {
	struct accepted *prev;
	struct accepted *next;
	struct acceptor *acceptor;
	struct conn *conn;
	uint64_t since_ns; /* when it was accepted, or completed its handshake */
	uint64_t asked_ns; /* when it made its last valid request */
	uint64_t requests; /* the number of valid requests until then; a newcomer has made none */
	bool open;         /* connected, and the handshake is complete */
	bool is_unix;
	char host[ADDR_HOST_MAX]; /* as addr_peer_host() */
};

/* Functions by which a server handles its connections. @a is the result of open(). */
struct acceptor_server {
	const struct conn_protocol *protocol;
	/* a new connection; the acceptor fills the head in. Return: never NULL */
	struct accepted *(*open)(void *server, bool is_unix);
	/* what conn_protocol's functions get as self */
	void *(*protocol_self)(struct accepted *a);
	/* the connection is gone: free @a. Its running calls continue without it */
	void (*close)(struct accepted *a);
	/* end soon: refuse calls that are not running yet; is_done() becomes true when the others are
	 * answered */
	void (*drain)(struct accepted *a);
	/* how many valid requests it has made */
	uint64_t (*requests)(const struct accepted *a);
	/* a time limit of the connection has passed: it is drained, and closed at once */
	bool (*has_expired)(const struct accepted *a, uint64_t now_ns);
	/* the server is processing one of its requests: it is not closed by a drain */
	bool (*is_running)(const struct accepted *a);
	/* the time (clock.h) since which a request has always been waiting for the reply to another one of
	 * the same connection, or 0; NULL: requests do not wait for each other */
	uint64_t (*queued_since_ns)(const struct accepted *a);
};

struct acceptor_config {
	struct loop *loop;
	struct handshakes *handshakes; /* NULL when no listener has TLS */
	const struct acceptor_server *server;
	void *user; /* server of open() */
	unsigned max_connections;
	bool is_brief;    /* newcomers must make a request at once, within LIMIT_SILENT_MS */
	const char *name; /* for logs: "gRPC" */
};

/** acceptor_new() - without listeners. Return: never NULL; acceptor_free(). */
struct acceptor *acceptor_new(const struct acceptor_config *config);

/** acceptor_free() - close all. NULL is allowed. */
void acceptor_free(struct acceptor *a);

/**
 * acceptor_listen() - also accept connections on @endpoint (addr.h).
 * @tls:       referenced; NULL: plain
 * @allow_plain_tcp: TCP without TLS is allowed
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed; TCP without TLS), or as addr_listen().
 */
int acceptor_listen(struct acceptor *a, const char *endpoint, struct tls_context *tls, bool allow_plain_tcp,
	struct error **err) MUST_CHECK;

/** acceptor_connections() - the number of open connections. */
unsigned acceptor_connections(const struct acceptor *a);

/** acceptor_port() - the TCP port of the listener that was added last, or 0; for endpoints with port 0. */
uint16_t acceptor_port(const struct acceptor *a);

/** acceptor_drain() - stop listening, drain all connections. @on_empty: called from the loop when the last
 * connection is closed. */
void acceptor_drain(struct acceptor *a, loop_fn on_empty, void *user);

/** accepted_flush() - send what is ready to be sent; @a may be gone afterwards. */
void accepted_flush(struct accepted *a);

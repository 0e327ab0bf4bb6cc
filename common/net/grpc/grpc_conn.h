/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_conn.h - inside of a gRPC server: the server, its connections and the calls on them. Private to
 * grpc_*.c.
 *
 * Ownership: a server owns its connections and a connection its calls (struct grpc_stream). A call whose
 * client disconnects while a worker runs its handler has no owner (conn NULL) until the worker posts that
 * it is done; the worker touches nothing but the call's arena, request, reply, packed, error and by_handler.
 * An async call is owned by its handler in the same way until grpc_call_finish(). Threads: the loop's
 * otherwise.
 */
#pragma once

#include "net/core/acceptor.h"
#include "net/core/log_quota.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/grpc/grpc_server.h"
#include "net/http2/h2.h"

struct grpc_server {
	struct grpc_server_config config;
	struct acceptor *acceptor;
	unsigned running;      /* calls whose handlers run, on worker threads or async */
	unsigned big_running;  /* those on worker threads with a big request */
	unsigned async;        /* those that are async */
	size_t buffered_bytes; /* see LIMIT_BUFFERED_BYTES */
	uint64_t calls;        /* ever */
	unsigned live_calls;   /* see LIMIT_CALLS */
	struct log_quota *refused_log;
	struct log_quota *failed_log;
	bool no_conns; /* the last connection is closed after a drain began */
	bool drained;
	loop_fn on_drained;
	void *on_drained_user;
};

struct grpc_conn {
	struct accepted head;
	struct grpc_server *server;
	struct h2 *h2;
	struct grpc_stream *streams;
	uint64_t requests;       /* requests that it made */
	bool draining;           /* the server ends */
	uint64_t done_ns;        /* when everything was sent; 0: not yet */
	uint64_t idle_since_ns;  /* valid without streams */
	uint64_t stuck_since_ns; /* since when the peer has read nothing of what is to be sent; 0: nothing is
				    to be sent */
	size_t out_bytes;        /* when bytes were last given to the socket */
	size_t sending_bytes;    /* bytes to be sent, as counted in the server's sum */
	size_t request_bytes;    /* bytes of streams, as counted in the server's sum */
	unsigned calls;          /* streams */
};

struct grpc_stream {
	struct grpc_stream *next; /* of the same connection */
	struct grpc_server *server;
	struct grpc_conn *conn;
	int32_t id;
	const struct grpc_method
		*method; /* NULL: not gRPC; @error is the answer when the request has ended */
	const struct grpc_service *service;
	bool has_encoding; /* the request names a grpc-encoding */
	bool running;      /* its handler has the call */
	bool by_handler;   /* @error is what the handler returned; valid while the call is not running */
	bool big;          /* counted in the server's big_running */
	uint64_t begin_ns;
	uint64_t answer_by_ns;    /* a running call; see LIMIT_ANSWER_EARLY_MS */
	struct loop_timer *timer; /* server-side end of a running call; may be NULL */
	struct grpc_assembler body;
	struct grpc_call call;
	/* unpacked, to find out what the call is doing while it runs; NULL before */
	_Atomic(const ProtobufCMessage *) request;
	ProtobufCMessage *reply;
	struct span packed; /* reply with prefix */
	struct error *error;
};

/* The fields of a request's header block that gRPC uses. */
struct grpc_head {
	struct span method;
	struct span path;
	struct span content_type;
	struct span te;
	struct span timeout;
	struct span encoding;
	struct span authorization;
	struct span recipient;
	uint64_t timeout_ns; /* UINT64_MAX: none */
	const struct grpc_method *target;
	const struct grpc_service *service; /* that it belongs to */
};

/* grpc_server.c */

/** grpc_server_check() - a running call has ended: report that the server has drained if this was the last
 * one. */
void grpc_server_check(struct grpc_server *s);

/** grpc_server_sign() - put the server's name before an error that the server itself found. */
void grpc_server_sign(const struct grpc_server *s, struct error **err);

/* grpc_conn.c */

/** what acceptor.h needs to know of gRPC connections; its user is a struct grpc_server */
extern const struct acceptor_server grpc_conn_server;

/* grpc_head.c */

/**
 * grpc_head_read() - read and check a request's header block, in the order of
 * grpc-go/internal/transport/http2_server.go.
 * @ret_http: HTTP status for the reply, set in both cases
 *
 * Return: 0, or -1 with the error that becomes the status of the call.
 */
int grpc_head_read(const struct grpc_service *services, const struct h2_header *headers, size_t n,
	struct grpc_head *ret, unsigned *ret_http, struct error **err) MUST_CHECK;

/* grpc_reply.c */

/** grpc_reply_error() - end stream @id with the status @e; nothing was sent on it yet. @http: HTTP status. */
void grpc_reply_error(struct h2 *h, int32_t id, unsigned http, const struct error *e);

/** grpc_reply_plain() - as grpc_reply_error(), with a body of text for clients of other protocols. */
void grpc_reply_plain(struct h2 *h, int32_t id, unsigned http, const struct error *e);

/** grpc_reply_message() - end stream @id with the message @packed, prefix included, and status OK. */
void grpc_reply_message(struct h2 *h, int32_t id, struct span packed);

/*
 * grpc_client_call.h - one call of a gRPC client, from its request to the reply or the error it ends with.
 * Private to grpc_client*.c.
 *
 * A call ends once, with a reply or an error; what comes later changes nothing. Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "net/grpc_client.h"
#include "net/grpc_message.h"
#include "net/grpc_wire.h"
#include "net/h2.h"

struct grpc_client_conn;

struct grpc_client_call {
	struct grpc_client_call *next; /* of the same client */
	struct grpc_client *client;
	struct grpc_client_conn *conn; /* NULL until it is sent */
	int32_t stream;
	struct loop_timer *timer;
	char *path;
	struct arena *arena;
	struct span packed; /* request with prefix, in arena */
	uint64_t deadline_ns;
	unsigned http;
	unsigned status; /* grpc-status; valid with has_status */
	bool has_status;
	struct buf status_text;
	struct grpc_assembler body;
	const ProtobufCMessageDescriptor *reply_type;
	grpc_reply_fn fn;
	void *user;
	bool ended;
	ProtobufCMessage *reply;     /* in arena */
	ProtobufCMessage **ret_copy; /* NULL, or where a copy of the reply goes that outlives the call */
	struct error *error;
};

/** grpc_client_call_new() - a call; parameters as of grpc_client_call(). It has ended already if @request is
 * too large. */
struct grpc_client_call *grpc_client_call_new(const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user);

/** grpc_client_call_free() - destroy @call, which is in no list. */
void grpc_client_call_free(struct grpc_client_call *call);

/** grpc_client_call_request() - open a stream for @call. Return: 0, or -1 as h2_request(). */
int grpc_client_call_request(
	struct grpc_client_call *call, struct h2 *h, const char *authority, struct error **err) MUST_CHECK;

/** grpc_client_call_headers() - header block or trailers of the reply. */
void grpc_client_call_headers(struct grpc_client_call *call, const struct h2_header *headers, size_t n);

/** grpc_client_call_feed() - bytes of the reply. Return: -1 when they ended the call with an error. */
int grpc_client_call_feed(struct grpc_client_call *call, struct span data) MUST_CHECK;

/** grpc_client_call_close() - the stream is closed with @h2_code, which tells how the call has ended. */
void grpc_client_call_close(struct grpc_client_call *call, uint32_t h2_code);

/** grpc_client_call_fail() - end @call with an error, unless it has ended. */
void grpc_client_call_fail(struct grpc_client_call *call, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

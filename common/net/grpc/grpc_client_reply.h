/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_client_reply.h - what a gRPC client collects of one reply, and what it makes of it. Private to
 * grpc_client.c and grpc_client_reply.c.
 *
 * Threads: one owner at a time; nothing blocks.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/grpc/grpc_wire.h"
#include "net/http2/h2.h"

struct grpc_client_reply {
	unsigned http;
	unsigned status; /* grpc-status; valid with has_status */
	bool has_status;
	struct buf status_text;
	struct grpc_assembler body;
	struct error *error; /* what is wrong with the body */
};

/** grpc_client_reply_init() - nothing has come yet. grpc_client_reply_done(): release what was collected. */
void grpc_client_reply_init(struct grpc_client_reply *r);
void grpc_client_reply_done(struct grpc_client_reply *r);

/** grpc_client_reply_headers() - header block or trailers. */
void grpc_client_reply_headers(struct grpc_client_reply *r, const struct h2_header *headers, size_t n);

/** grpc_client_reply_feed() - bytes of the body. Return: false when they have made it worthless. */
bool grpc_client_reply_feed(struct grpc_client_reply *r, struct span data) MUST_CHECK;

/**
 * grpc_client_reply_finish() - how the call has ended.
 * @path:  method, for messages
 * @cause: why its stream ended early, or NULL; borrowed
 *
 * Return: 0 when @r->body holds the message of a successful call, or -1 with the status of the call.
 */
int grpc_client_reply_finish(struct grpc_client_reply *r, const char *path, const struct error *cause,
	struct error **err) MUST_CHECK;

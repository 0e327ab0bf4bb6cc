/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_out.h - what an HTTP/1.1 connection has to send: heads and bodies of replies, given out in pieces.
 * Part of http1.h. Threads: as there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

struct http1_out {
	struct buf bytes;
	struct buf body; /* behind them: of the last reply, when it was handed over */
	size_t given;    /* of both */
};

struct http1_reply {
	unsigned status;
	const char *reason;
	const char *content_type; /* NULL: no such field */
	const char *allow;        /* as content_type */
	const char *connection;   /* as content_type */
	struct span body;
	struct buf *taken; /* NULL, or what holds the body: it is moved, not copied */
	bool head_only;    /* to HEAD: the length is told, the body is not sent */
};

/** http1_out_init() - room for LIMIT_OUT_BYTES and, on top, one reply of LIMIT_HTTP1_BODY_BYTES. */
void http1_out_init(struct http1_out *o);

/** http1_out_done() - release; @o is empty and reusable afterwards. */
void http1_out_done(struct http1_out *o);

/** http1_out_left() - bytes that are not given out yet. */
size_t http1_out_left(const struct http1_out *o);

/** http1_out_add() - a reply whose body is at most LIMIT_HTTP1_BODY_BYTES; less than LIMIT_OUT_BYTES are
 * left. */
void http1_out_add(struct http1_out *o, const struct http1_reply *reply);

/** http1_out_add_continue() - the interim reply 100. */
void http1_out_add_continue(struct http1_out *o);

/** http1_out_give() - append to @to, until it holds LIMIT_OUT_BYTES. */
void http1_out_give(struct http1_out *o, struct buf *to);

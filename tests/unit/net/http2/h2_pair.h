/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_pair.h - an HTTP/2 server and a client, connected by byte arrays, that record what is reported to them.
 *
 * Each side notes its callbacks as lines: "headers 1 :method=POST ... \n" ("trailers" on the client),
 * "end 1\n", "close 1 CODE\n", "goaway LAST CODE\n". Bodies are collected without a line.
 */
#pragma once

#include "base/buf.h"
#include "net/http2/h2.h"

enum h2_event { H2_ON_HEADERS, H2_ON_DATA, H2_ON_END, H2_ON_CLOSE };

struct h2_side {
	struct h2 *h2;
	struct buf log;
	struct buf body; /* of all streams together */
	struct buf out;  /* given out, and not yet delivered */
	/* called after an event was noted; may answer. May be NULL */
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream);
};

struct h2_pair {
	struct h2_side server;
	struct h2_side client;
	size_t chunk_bytes; /* what is delivered at once; SIZE_MAX: all there is */
};

/** h2_pair_init() - connect a new client with a new server. @react: the server's, may be NULL. */
void h2_pair_init(struct h2_pair *p, bool strict_authority,
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream));
void h2_pair_done(struct h2_pair *p);

/** h2_side_init() - one side alone, for a test that is the other one. */
void h2_side_init(struct h2_side *side);
void h2_side_done(struct h2_side *side);

/** h2_side_collect() - append to @side->out all that it has to send. */
void h2_side_collect(struct h2_side *side);

/** h2_side_feed() - deliver @bytes to @side; a refusal fails the test. */
void h2_side_feed(struct h2_side *side, struct span bytes);

/** h2_pair_run() - deliver in both directions until both are silent. */
void h2_pair_run(struct h2_pair *p);

/** h2_pair_post() - open a gRPC-like request for @path; @end: without a body. Return: the stream. */
int32_t h2_pair_post(struct h2_pair *p, const char *path, bool end);

/** h2_reply() - answer with status 200, @body and a trailer grpc-status 0. */
void h2_reply(struct h2 *h, int32_t stream, struct span body);

/** h2_react_echo() - a server that answers each request with what it has received so far. */
void h2_react_echo(struct h2_side *side, enum h2_event event, int32_t stream);

/** h2_events_of_sides - callbacks of a struct h2_side. */
extern const struct h2_events h2_events_of_sides;

/** what h2_pair_post() sends, as the server writes it down */
#define H2_POST_LINE(stream, path)                                                                           \
	"headers " stream " :method=POST :scheme=http :path=" path " :authority=localhost te=trailers\n"

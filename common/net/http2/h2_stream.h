/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_stream.h - the streams of one HTTP/2 connection, and what is sent on them. Private to h2.c and
 * h2_stream.c.
 *
 * A stream is in the list from its first frame, or h2_request(), until nghttp2 has closed it. Threads: as
 * h2.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http2/h2.h"
#include "net/http2/h2_headers.h"

struct nghttp2_session;

struct h2_stream {
	struct h2_stream *next;
	int32_t id;
	bool announced;    /* the user knows of it, and is notified of its end */
	bool have_headers; /* the peer's header block was seen; another one is trailers */
	bool responded;
	bool finished; /* the body is complete */
	bool deferred; /* nghttp2 waits for nghttp2_session_resume_data() */
	bool dead;     /* was reset with @code; only its end is reported */
	enum h2_code code;
	size_t head_bytes; /* bytes of a reply's header block that h2_send() has not returned yet */
	struct buf body;
	size_t body_sent;
	struct h2_header *trailers; /* one block of memory with what it points to */
	size_t n_trailers;
};

/*
 * Finds the last stream number in GOAWAY frames of a client, as bytes arrive in any pieces.
 *
 * Clients written in Go name the last stream of their own there, where RFC 9113 section 6.8 wants one of the
 * server's; nghttp2 therefore ends the connection and drops requests that are being answered. A server opens
 * no streams, so that the only correct number is 0, and h2.c feeds that instead.
 */
struct h2_scan {
	size_t skip;     /* bytes until the next frame begins, or until the stream number ends */
	size_t after;    /* bytes of the frame after the stream number */
	bool at_number;  /* @skip counts bytes of a GOAWAY's stream number */
	uint8_t head[9]; /* RFC 9113 section 4.1 */
	size_t have;     /* of @head */
};

struct h2 {
	struct nghttp2_session *session;
	const struct h2_events *events;
	void *user;
	bool server;
	bool own_checks;
	bool greeted; /* by the peer's SETTINGS */
	bool failed;
	struct h2_stream *streams;
	size_t announced;
	int32_t newest;    /* server: the highest number that a client has used */
	int32_t gap_begin; /* server: the numbers that were skipped last, up to gap_end exclusive */
	int32_t gap_end;
	struct h2_scan scan; /* server */
	size_t queued_bytes; /* bytes of bodies and reply headers that h2_send() has not returned yet */
	/* HPACK requires that header blocks of different streams do not overlap, so there is one at a time;
	 * empty between them
	 */
	struct h2_fields fields;
};

/** h2_must_have_memory() - end the process when the nghttp2 result @rv is "out of memory". */
void h2_must_have_memory(int rv);

/** h2_stream_add() - new stream with number @id. Return: owned by @h. */
struct h2_stream *h2_stream_add(struct h2 *h, int32_t id);

/** h2_stream_head_sent() - the header block of the reply was returned by h2_send(), or never will be. */
void h2_stream_head_sent(struct h2 *h, struct h2_stream *s);

/** h2_stream_announce() - count @s as a stream that the user knows. */
void h2_stream_announce(struct h2 *h, struct h2_stream *s);

/** h2_stream_find() - stream @id, or NULL. h2_stream_find_live(): only if it was not reset. */
struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id);
struct h2_stream *h2_stream_find_live(const struct h2 *h, int32_t id);

/** h2_stream_reset() - reset @s: the peer gets RST_STREAM with @code, and the user is notified of its end
 * only. */
void h2_stream_reset(struct h2 *h, struct h2_stream *s, enum h2_code code);

/** h2_stream_unlink() - take @s, which becomes the caller's, out of the list. h2_stream_free(): destroy it.
 */
void h2_stream_unlink(struct h2 *h, struct h2_stream *s);
void h2_stream_free(struct h2_stream *s);

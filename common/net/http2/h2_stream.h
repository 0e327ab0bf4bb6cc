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
#include "net/http2/h2_scan.h"

struct nghttp2_session;

struct h2_stream {
	struct h2_stream *next;
	int32_t id;
	bool announced;    /* the user knows of it, and is notified of its end */
	bool have_headers; /* the peer's header block was seen; another one is trailers */
	bool responded;
	bool finished; /* nothing is added to the body any more */
	bool deferred; /* nghttp2 waits for nghttp2_session_resume_data() */
	bool dead;     /* given up with @code; only its end is reported */
	enum h2_code code;
	size_t head_bytes; /* of a reply's header block that is not given out yet */
	struct buf body;
	size_t body_sent;
	struct h2_header *trailers; /* one block of memory with what it points to */
	size_t n_trailers;
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
	int32_t gap_begin; /* server: numbers that were passed over last, up to gap_end exclusive */
	int32_t gap_end;
	struct h2_scan scan; /* server */
	size_t queued_bytes; /* of bodies and reply headers, not given out yet */
	/* HPACK makes header blocks of all streams one sequence: there is one at a time; empty between them
	 */
	struct h2_fields fields;
};

/** h2_must_have_memory() - end the process when the nghttp2 result @rv says that memory is out. */
void h2_must_have_memory(int rv);

/** h2_stream_add() - new stream with number @id. Return: owned by @h. */
struct h2_stream *h2_stream_add(struct h2 *h, int32_t id);

/** h2_stream_head_sent() - the header block of the reply is given out, or never will be. */
void h2_stream_head_sent(struct h2 *h, struct h2_stream *s);

/** h2_stream_announce() - count @s as one that the user knows of. */
void h2_stream_announce(struct h2 *h, struct h2_stream *s);

/** h2_stream_find() - stream @id, or NULL. h2_stream_find_live(): only if it was not given up. */
struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id);
struct h2_stream *h2_stream_find_live(const struct h2 *h, int32_t id);

/** h2_stream_reset() - give @s up: the peer gets RST_STREAM with @code, the user is notified of nothing but
 * its end. */
void h2_stream_reset(struct h2 *h, struct h2_stream *s, enum h2_code code);

/** h2_stream_unlink() - take @s, which becomes the caller's, out of the list. h2_stream_free(): destroy it.
 */
void h2_stream_unlink(struct h2 *h, struct h2_stream *s);
void h2_stream_free(struct h2_stream *s);

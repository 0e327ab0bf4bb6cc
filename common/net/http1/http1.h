/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.h - one HTTP/1.1 connection of a server without I/O: bytes in, requests out, replies in, bytes out.
 * Requests are read by http1_reader.h.
 *
 * Requests of a connection are handled one after the other: pipelined ones wait unparsed until the reply to
 * the previous one was handed over. Limits: request line and header section LIMIT_HEADER_BYTES (414, 431),
 * body as configured (413, decided from the announced length before a byte of it is taken), all bodies of a
 * server as configured (503; those of replies that were handed over count, too), waiting requests
 * LIMIT_HTTP1_PIPELINED_BYTES. Malformed input is answered with 400, another version than 1.x with 505, and
 * each such refusal ends the connection. `Expect: 100-continue` is answered, `Upgrade` is not done. Threads:
 * one at a time. Source: RFC 9112.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

struct http1;

/* Spans live as long as the callback; see http1_hold(). */
struct http1_request {
	struct span method; /* "GET" */
	struct span path;   /* without the query; not decoded. "*" with OPTIONS only */
	struct span query;  /* behind '?', may be empty */
	struct span body;
};

/* The memory to which the spans of a request point; it may outlive the connection. */
struct http1_held {
	struct buf path;
	struct buf query;
	struct buf body;
	size_t *buffered_bytes; /* the sum in which the body is counted, borrowed; NULL: none */
};

struct http1_config {
	size_t max_body_bytes;
	size_t max_buffered_bytes; /* 0: LIMIT_BUFFERED_BYTES */
	bool is_single;            /* the connection is closed directly after its first reply */
	size_t *buffered_bytes;    /* sum of the bodies of all connections of a server; borrowed */
	/* called with a complete request: it, or a later function, calls http1_reply() exactly once; it must
	 * not call http1_free() */
	void (*on_request)(void *user, const struct http1_request *request);
	void *user;
};

/** http1_new() - a connection. Return: never NULL; http1_free(). */
struct http1 *http1_new(const struct http1_config *config);

/** http1_free() - NULL is allowed. */
void http1_free(struct http1 *h);

/** http1_receive() - process bytes of the peer. After the last request they are discarded. Return: 0, or -1
 * with ERR_UNAVAILABLE when too many bytes of requests wait. */
int http1_receive(struct http1 *h, struct span bytes, struct error **err) MUST_CHECK;

/** http1_reply() - answer the current request. @content_type may be NULL without a body; @allow is the value
 * of an Allow header (405) or NULL. For HEAD only the header section is sent. */
void http1_reply(
	struct http1 *h, unsigned status, const char *content_type, const char *allow, struct span body);

/** http1_reply_take() - http1_reply() with a @body that is taken over: it is not copied, and freed when it is
 * sent. @body is empty afterwards. */
void http1_reply_take(struct http1 *h, unsigned status, const char *content_type, struct buf *body);

/** http1_hold() - within on_request(): keep the spans of the request valid until http1_held_done() of @ret,
 * even after @h is freed. Once per request. */
void http1_hold(struct http1 *h, struct http1_held *ret);

/** http1_held_done() - release a held request. Loop thread. */
void http1_held_done(struct http1_held *held);

/** http1_send() - append what is to be sent to @out: of one reply, at most to LIMIT_OUT_BYTES. Return: 0. */
int http1_send(struct http1 *h, struct buf *out, struct error **err) MUST_CHECK;

/** http1_is_done() - whether the connection closes once the bytes handed over are sent. */
bool http1_is_done(const struct http1 *h);

/** http1_lingers() - whether the socket is closed in two steps once it is done: unread bytes of the peer
 * would make the kernel send RST and discard replies that are not delivered yet (RFC 9112 section 9.6). */
bool http1_lingers(const struct http1 *h);

/** http1_close() - accept no further request: one that is being received is answered with 503, the current
 * one with `Connection: close`. Nothing lingers. */
void http1_close(struct http1 *h);

/** http1_requests() - the number of complete requests. */
uint64_t http1_requests(const struct http1 *h);

/** http1_queued_since_ns() - the time (clock.h) since which a pipelined request, or a part of one, has always
 * been waiting for the reply to another. 0: none waits. */
uint64_t http1_queued_since_ns(const struct http1 *h);

/** http1_has_expired() - whether at @now_ns (clock.h) the peer has taken too long: for a request
 * (LIMIT_HTTP1_REQUEST_MS), between requests (LIMIT_HTTP1_IDLE_MS), or to close its end after the last reply
 * (LIMIT_LINGER_MS). */
bool http1_has_expired(const struct http1 *h, uint64_t now_ns);

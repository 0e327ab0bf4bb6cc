/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.h - one HTTP/1.1 connection of a server without I/O: bytes in, requests out, replies in, bytes out.
 * Over http-parser, behind the stricter rules of http1_rules.h.
 *
 * Requests of a connection are handled one after the other: pipelined ones wait unparsed until the reply to
 * the one before is given out. Limits: request line and
 * header section LIMIT_HEADER_BYTES (414, 431), body as configured (413, decided from the announced length
 * before a byte of it is taken), all bodies of a server as configured (503; those of replies
 * that were handed over count, too), waiting requests LIMIT_HTTP1_PIPELINED_BYTES. Malformed input is
 * answered with 400, another version than 1.x with 505, and each such refusal ends the connection. `Expect:
 * 100-continue` is answered, `Upgrade` is not done. Threads: one at a time. Source: RFC 9112.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "net/http1/http1_held.h"

struct http1;

/* Spans live as long as the callback; see http1_hold(). */
struct http1_request {
	struct span method; /* "GET" */
	struct span path;   /* without the query; not decoded. "*" with OPTIONS only */
	struct span query;  /* behind '?', may be empty */
	struct span body;
};

struct http1_config {
	size_t max_body_bytes;
	size_t max_buffered_bytes; /* 0: LIMIT_BUFFERED_BYTES */
	bool is_single;            /* the connection is closed at once behind its first reply */
	size_t *buffered_bytes;    /* of the bodies of all connections of a server: counted here; borrowed */
	/* a complete request: http1_reply() is called in it or later, exactly once; http1_free() is not
	 * allowed in it */
	void (*on_request)(void *user, const struct http1_request *request);
	void *user;
};

/** http1_new() - a connection. Return: never NULL; http1_free(). */
struct http1 *http1_new(const struct http1_config *config);

/** http1_free() - NULL is allowed. */
void http1_free(struct http1 *h);

/** http1_receive() - bytes of the peer. After the last request they are thrown away. Return: 0, or -1 with
 * ERR_UNAVAILABLE when more requests wait than there is room for. */
int http1_receive(struct http1 *h, struct span bytes, struct error **err) MUST_CHECK;

/** http1_reply() - answer the current request. @content_type may be NULL without a body; @allow is the value
 * of an Allow header (405) or NULL. To HEAD only the head is sent. */
void http1_reply(
	struct http1 *h, unsigned status, const char *content_type, const char *allow, struct span body);

/** http1_reply_take() - http1_reply() with a @body that is taken over: it is not copied, and freed when it is
 * sent. @body is empty afterwards. */
void http1_reply_take(struct http1 *h, unsigned status, const char *content_type, struct buf *body);

/** http1_hold() - within on_request(): the spans of the request live until http1_held_done() of @ret,
 * whatever becomes of @h. Once per request. */
void http1_hold(struct http1 *h, struct http1_held *ret);

/** http1_send() - append what is to be sent to @out: of one reply, at most to LIMIT_OUT_BYTES. Return: 0. */
int http1_send(struct http1 *h, struct buf *out, struct error **err) MUST_CHECK;

/** http1_is_done() - closes after what was given out. */
bool http1_is_done(const struct http1 *h);

/** http1_lingers() - once done, the socket is closed in two steps: bytes of the peer that nobody reads would
 * make the kernel take back replies that are not delivered yet (RFC 9112 section 9.6). */
bool http1_lingers(const struct http1 *h);

/** http1_close() - no further request is taken: one that is being received is answered with 503, the current
 * one with `Connection: close`. Nothing lingers. */
void http1_close(struct http1 *h);

/** http1_requests() - how many requests were complete. */
uint64_t http1_requests(const struct http1 *h);

/** http1_queued_since_ns() - since when (clock.h) there has always been a pipelined request, or a part of
 * one, that waits for the reply to another. 0: none waits. */
uint64_t http1_queued_since_ns(const struct http1 *h);

/** http1_has_expired() - at @now_ns (clock.h) the peer has taken too long: for a request
 * (LIMIT_HTTP1_REQUEST_MS), between requests (LIMIT_HTTP1_IDLE_MS), or to close its end when all is said
 * (LIMIT_LINGER_MS). */
bool http1_has_expired(const struct http1 *h, uint64_t now_ns);

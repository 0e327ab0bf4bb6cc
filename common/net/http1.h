/*
 * http1.h - one HTTP/1.1 connection of a server without I/O: bytes in, requests out, replies in, bytes out.
 * Over http-parser.
 *
 * Requests of a connection are handled one after the other: pipelined ones wait unparsed until the reply of
 * the one before is written. Limits: header section LIMIT_HEADER_BYTES (431), body as configured (413);
 * malformed input is answered with 400 and ends the connection. `Expect: 100-continue` is answered, `Upgrade`
 * is not done. Threads: one at a time. Source: RFC 9112.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

struct http1;

/* Spans live as long as the callback. */
struct http1_request {
	struct span method; /* "GET" */
	struct span path;   /* without the query; not decoded */
	struct span query;  /* behind '?', may be empty */
	struct span body;
};

struct http1_config {
	size_t max_body_bytes;
	/* a complete request: http1_reply() is called in it or later, exactly once */
	void (*on_request)(void *user, const struct http1_request *request);
	void *user;
};

/** http1_new() - a connection. Return: never NULL; http1_free(). */
struct http1 *http1_new(const struct http1_config *config);

/** http1_free() - NULL is allowed. */
void http1_free(struct http1 *h);

/** http1_receive() - bytes of the peer. Return: 0, or -1 with ERR_UNAVAILABLE after the connection was given
 * up.
 */
int http1_receive(struct http1 *h, struct span bytes, struct error **err) MUST_CHECK;

/** http1_reply() - answer the current request. @content_type may be NULL without a body; @allow is the value
 * of an Allow header (405) or NULL. To HEAD only the head is sent. */
void http1_reply(
	struct http1 *h, unsigned status, const char *content_type, const char *allow, struct span body);

/** http1_send() - append what is to be sent to @out, at most to LIMIT_OUT_BYTES. Return: 0. */
int http1_send(struct http1 *h, struct buf *out, struct error **err) MUST_CHECK;

/** http1_is_done() - closes after what was given out. */
bool http1_is_done(const struct http1 *h);

/** http1_close() - no further request is taken: the current one is answered with `Connection: close`. */
void http1_close(struct http1 *h);

/** http1_requests() - how many requests were complete. http1_is_busy(): one is being received or answered. */
uint64_t http1_requests(const struct http1 *h);
bool http1_is_busy(const struct http1 *h);

/** http1_request_since_ns() - when the first byte of the request that is being received came; 0: none is. */
uint64_t http1_request_since_ns(const struct http1 *h);

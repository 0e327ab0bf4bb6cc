/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2.h - one HTTP/2 connection without I/O: bytes in, bytes out. Over nghttp2; server or client.
 *
 * h2_recv() takes what the peer sent and calls back; h2_send() returns what has to be sent. Bodies are
 * incremental in both directions. Callbacks may call h2_respond(), h2_write(), h2_finish() and h2_reset(),
 * but neither h2_recv(), h2_send() nor h2_free(). Header names and values are spans that live as long as the
 * callback.
 *
 * Server on a unix socket (strict_authority false): nghttp2's own message checks are off, because clients in
 * use send a socket path, a percent-encoded one or nothing as :authority; the checks that matter are made
 * here instead (one each of :method, :scheme, :path starting with "/", pseudo headers first, lower-case
 * names, no connection headers). Limits: limits.h, and windows of 64 KiB. A request whose header block is too
 * big gets :status 431; the user is not notified. Pings are answered, and their rate is not limited. The
 * queue of bytes to be sent grows with the bytes that are received: a caller that cannot write must not call
 * h2_recv() until it can. Threads: one at a time. Source: RFC 9113, nghttp2 programmers' guide.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "net/limits.h"

/* RFC 9113 section 7 */
enum h2_code {
	H2_NO_ERROR = 0,
	H2_PROTOCOL_ERROR = 1,
	H2_INTERNAL_ERROR = 2,
	H2_REFUSED_STREAM = 7,
	H2_CANCEL = 8,
	H2_ENHANCE_YOUR_CALM = 11,
};

struct h2_header {
	struct span name;
	struct span value;
};

/* header from two strings, for replies and requests */
#define H2_HEADER(n, v) ((struct h2_header){span_of(n), span_of(v)})

/*
 * All are called from h2_recv() or h2_send(), never after h2_free(). A stream is known to the user from
 * on_headers (server) or h2_request() (client) until on_close, which comes exactly once unless h2_free()
 * comes first. After h2_reset() on_close is all that follows.
 */
struct h2_events {
	/* a complete header block: of a request (server), a reply, or trailers (client, @is_trailer);
	 * trailers-only is a reply with on_end directly behind it. Interim replies (1xx) and trailers of
	 * requests are dropped. */
	void (*on_headers)(
		void *user, int32_t stream, const struct h2_header *headers, size_t n, bool is_trailer);
	/* bytes of the peer's body */
	void (*on_data)(void *user, int32_t stream, struct span data);
	/* the peer has ended its side of this stream */
	void (*on_end)(void *user, int32_t stream);
	/* the stream is gone; @code is what this side reset it with, otherwise the peer's value, which may
	 * not be in enum h2_code. H2_REFUSED_STREAM: the peer did not process the request. A server that
	 * answers early closes with H2_NO_ERROR, which may come without on_end */
	void (*on_close)(void *user, int32_t stream, uint32_t code);
	/* the peer shuts down: streams above @last_stream were not processed (client). May be NULL */
	void (*on_goaway)(void *user, int32_t last_stream, uint32_t code);
};

struct h2;

/** h2_server_new() - server side. @strict_authority: leave message checks to nghttp2 (TCP, TLS). @events is
 * borrowed. */
struct h2 *h2_server_new(bool strict_authority, const struct h2_events *events, void *user);

/** h2_client_new() - client side. */
struct h2 *h2_client_new(const struct h2_events *events, void *user);

/** h2_free() - destroy the connection without notifying the user about its streams; NULL is allowed. */
void h2_free(struct h2 *h);
DEFINE_CLEANUP(struct h2 *, h2_free);

/** h2_recv() - feed bytes of the peer. When they break the protocol, h2_send() holds a GOAWAY and
 * h2_is_done() becomes true with it. Return: 0, or -1 with ERR_UNAVAILABLE when the connection is beyond use.
 */
int h2_recv(struct h2 *h, struct span bytes, struct error **err) MUST_CHECK;

/** h2_send() - append what is to be sent to @out, until nothing is left or @out holds 64 KiB or more. The
 * limit of @out is at least 160 KiB, so that the frame that passes 64 KiB fits. Return: 0, or -1 with
 * ERR_UNAVAILABLE (beyond use) or ERR_EXHAUSTED (the limit of @out is too small). */
int h2_send(struct h2 *h, struct buf *out, struct error **err) MUST_CHECK;

/** h2_is_done() - neither side has anything left, or the connection is beyond use; close after the bytes
 * given out are delivered. */
bool h2_is_done(const struct h2 *h);

/** h2_streams() - number of streams that the user knows; in on_close the one that ends is no longer counted.
 */
size_t h2_streams(const struct h2 *h);

/** h2_is_greeted() - whether the peer's SETTINGS have come. */
bool h2_is_greeted(const struct h2 *h);

/** h2_room() - client: how many more streams the server accepts now, at most LIMIT_STREAMS together; each
 * h2_recv() may change that number. Further requests wait in h2. */
size_t h2_room(const struct h2 *h);

/** h2_buffered() - bytes that h2_send() has not returned yet: bodies from h2_write(), headers from
 * h2_respond(), and frames that answer the peer. */
size_t h2_buffered(const struct h2 *h);

/** h2_request() - client: open a stream. @headers copied; @end: no body follows. @ret_stream: its number.
 * Return: 0, or -1 with ERR_UNAVAILABLE (no more streams on this connection). */
int h2_request(struct h2 *h, const struct h2_header *headers, size_t n, bool end, int32_t *ret_stream,
	struct error **err) MUST_CHECK;

/** h2_respond() - server: send the header block of the reply. @end: it is the whole reply (trailers-only). A
 * second one, or one for a stream that is gone, is ignored. */
void h2_respond(struct h2 *h, int32_t stream, const struct h2_header *headers, size_t n, bool end);

/** h2_write() - append @data (copied) to the stream's body. A stream that is gone or finished is ignored; one
 * with more than LIMIT_CONN_BUFFERED_BYTES unsent is reset with H2_INTERNAL_ERROR. */
void h2_write(struct h2 *h, int32_t stream, struct span data);

/** h2_finish() - end the stream's body; with @n > 0 trailers follow the last byte of it. Trailers of
 * more than LIMIT_HEADER_BYTES reset the stream with H2_INTERNAL_ERROR. */
void h2_finish(struct h2 *h, int32_t stream, const struct h2_header *trailers, size_t n);

/** h2_reset() - reset the stream with @code; on_close follows when the reset is sent. */
void h2_reset(struct h2 *h, int32_t stream, enum h2_code code);

/** h2_ping() - send PING; the user is not notified of the answer. Does nothing on a connection that cannot be
 * used any more.
 */
void h2_ping(struct h2 *h);

/** h2_shutdown() - server: accept no further streams, and send GOAWAY with the last one seen; running ones
 * continue. Requests that arrive after it are not processed, which the client sees from that number.
 * Idempotent. */
void h2_shutdown(struct h2 *h);

/** h2_code_of_reset() - the error code for a stream that was reset with HTTP/2 error @h2_code. */
enum err_code h2_code_of_reset(uint32_t h2_code);

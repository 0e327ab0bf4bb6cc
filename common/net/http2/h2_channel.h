/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_channel.h - a channel to one server: requests as HTTP/2 streams with incremental bodies: one
 * connection, opened with the first request and again after a loss, with back-off.
 *
 * A request is sent a second time only if the server said that it did not process it (GOAWAY below its
 * stream, REFUSED_STREAM), and only once, over a new connection. Requests wait while a connection is opened,
 * which is complete with the server's SETTINGS, and while the server takes no more streams;
 * LIMIT_CHANNEL_REQUESTS bounds them. After a connection could not be opened, the next one of
 * several addresses is tried (h2_addresses.h). After none could, the next try waits (backoff.h);
 * requests made meanwhile fail at once with the error of the last try. A connection whose server does not
 * answer PING is lost; one on which nothing was received during the whole time limit of a request (a
 * cancellation with ERR_DEADLINE) gets no further requests, so that the next one opens another. Nothing of a
 * reply is kept: windows of 64 KiB bound what a server may send before on_data() has had it. Threads: the
 * loop's.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/span.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/http2/h2.h"
#include "net/tls/tls.h"

struct h2_channel;
struct h2_request;

struct h2_channel_config {
	struct loop *loop;
	const char *endpoint;    /* addr.h */
	char *const *endpoints;  /* all addresses of the server, NULL-terminated; NULL: @endpoint alone */
	struct tls_context *tls; /* referenced; NULL: plain */
	const char *tls_name;    /* the name that the server's certificate must have; with tls only */
	struct handshakes *handshakes; /* with tls only */
	uint64_t idle_ms;              /* a connection without streams is closed after that long; 0: never */
	uint64_t reconnect_backoff_ms; /* first wait before the next connection after a failure; 0:
					  BACKOFF_FIRST_MS */
	uint64_t open_ms;              /* from connect() to the server's SETTINGS, divided among the
					  addresses (h2_addresses_share_ms()); 0: LIMIT_HANDSHAKE_MS */
	/* send PING to a server that has sent nothing for so long, whether there are streams or not; 0: only
	 * when a request has run into its time limit without a byte from the server. Servers of grpc-go
	 * treat pings that come more often than every 5 minutes as abuse */
	uint64_t ping_ms;
	uint64_t ping_timeout_ms; /* the connection is lost if so long after a PING nothing was received; 0:
				     LIMIT_PING_MS */
	/* called when an open connection has ended: for users that keep one. It may make requests, but not
	 * free the channel. NULL: not needed */
	void (*on_lost)(void *user);
	void *user;
};

/* Callbacks of a request. on_headers() and on_data() may make and cancel requests, but not free the channel;
 * on_end() may do anything. */
struct h2_request_events {
	/* a header block of the reply; with @is_trailer the trailers. NULL: not needed */
	void (*on_headers)(void *user, const struct h2_header *headers, size_t n, bool is_trailer);
	/* bytes of the body. Return: false to cancel the request; on_end() is called with ERR_CANCELLED */
	bool (*on_data)(void *user, struct span data);
	/* called exactly once, and last; the handle is invalid from then on. @error: NULL when the server
	 * ended the stream in order, otherwise ERR_UNAVAILABLE (connection), ERR_EXHAUSTED (too many
	 * requests), what it was cancelled with, or the code of the reset (h2_code_of_reset()); borrowed */
	void (*on_end)(void *user, const struct error *error);
};

/** h2_channel_new() - nothing is connected yet. Return: 0, or -1 with ERR_INVALID_ARGUMENT. @ret:
 * h2_channel_free(). */
int h2_channel_new(
	const struct h2_channel_config *config, struct h2_channel **ret, struct error **err) MUST_CHECK;

/** h2_channel_free() - close; requests in flight end with ERR_CANCELLED before this returns, except when
 * called from on_end(): then right after it. Requests that their on_end() makes end in the same way, so it
 * must not make new ones for ever. NULL is allowed. */
void h2_channel_free(struct h2_channel *c);
DEFINE_CLEANUP(struct h2_channel *, h2_channel_free);

/** h2_channel_set_endpoints() - the server has the addresses @endpoints, NULL-terminated and not empty, from
 * now on. A connection to one that is not among them stays open. If the address that was tried last is not
 * among them, the next connection does not wait. Return: 0, or -1 with ERR_INVALID_ARGUMENT: they are as
 * before. */
int h2_channel_set_endpoints(struct h2_channel *c, char *const *endpoints, struct error **err) MUST_CHECK;

/** h2_channel_authority() - the value for :authority. Borrowed. */
const char *h2_channel_authority(const struct h2_channel *c);

/**
 * h2_channel_request() - start a request.
 * @headers, @body: copied; an empty body ends the stream with the headers; LIMIT_CONN_BUFFERED_BYTES at most
 * @events:  borrowed until on_end(), which never comes before this returned
 *
 * Return: never NULL; valid until on_end().
 */
struct h2_request *h2_channel_request(struct h2_channel *c, const struct h2_header *headers, size_t n,
	struct span body, const struct h2_request_events *events, void *user);

/** h2_request_cancel() - the server gets RST_STREAM(CANCEL); on_end() follows with @code and @msg. With
 * ERR_DEADLINE, a connection on which nothing was received all that time is not used for further requests.
 * Idempotent. */
void h2_request_cancel(struct h2_request *r, enum err_code code, const char *msg);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - one stream socket on the loop, with TLS or without, under a protocol that does no I/O itself.
 *
 * Reading stops while the peer does not take what we send, which bounds the memory that it can make us use.
 * Threads: the loop's; handshakes run on their own threads (handshakes.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/tls/tls.h"

struct conn;

/* The protocol that runs over a connection, such as h2 and http1. */
struct conn_protocol {
	/* process bytes from the peer. Return: 0, or -1 when the connection is over */
	int (*receive)(void *self, struct span bytes, struct error **err);
	/* append what is to be sent to @out, as much as fits LIMIT_OUT_BYTES. Return: 0, or -1 */
	int (*send)(void *self, struct buf *out, struct error **err);
	/* nothing is left to send or to receive: the connection is closed once the bytes handed over are
	 * delivered */
	bool (*is_done)(const void *self);
	/* once it is done, FIN is sent, and what arrives is discarded until the peer closes, too: if the
	 * socket were closed at once while bytes of the peer are unread, the kernel would send RST, and the
	 * peer could lose replies that it has not read yet. The owner of the connection limits the time.
	 * NULL: never */
	bool (*lingers)(const void *self);
};

struct conn_config {
	struct loop *loop;
	struct handshakes *handshakes; /* needed with tls only */
	struct tls *tls;               /* owned from now on; NULL: plain */
	bool connecting;               /* the socket is not connected yet (addr_connect()) */
	const struct conn_protocol *protocol;
	void *self; /* the protocol's object, borrowed */
	/* called after each round of reading and writing; it may call conn_free(), and must do so when @over
	 */
	void (*on_round)(void *user, bool over);
	void *user;
};

/** conn_new() - begin to connect, to do the handshake or to read. @fd: owned from now on, also when this
 * fails, as is config->tls. Return: 0, or -1 with ERR_INTERNAL. @ret: conn_free(). */
int conn_new(const struct conn_config *config, int fd, struct conn **ret, struct error **err) MUST_CHECK;

/** conn_free() - close; NULL is allowed. Not from callbacks of the protocol. */
void conn_free(struct conn *c);

/** conn_flush() - send what the protocol has to send, as much as the socket accepts. Not from callbacks of
 * the protocol. Return: false when the connection is over; the caller then calls conn_free(). */
bool conn_flush(struct conn *c) MUST_CHECK;

/** conn_is_open() - connected, and the TLS handshake is complete. */
bool conn_is_open(const struct conn *c);

/** conn_is_computing() - a step of its TLS handshake runs or waits for a thread: the peer waits for us. */
bool conn_is_computing(const struct conn *c);

/** conn_has_heard() - whether the peer has sent a byte. */
bool conn_has_heard(const struct conn *c);

/** conn_waits_unheard() - whether the first bytes of the peer have arrived and were not read yet. */
bool conn_waits_unheard(const struct conn *c);

/** conn_has_unsent() - as addr_has_unsent(). */
bool conn_has_unsent(const struct conn *c);

/** conn_why() - why the connection is over, or NULL when it ended as its protocol wants it. Borrowed. */
const struct error *conn_why(const struct conn *c);

/** conn_failed_handshake() - whether it is over because the TLS handshake failed. */
bool conn_failed_handshake(const struct conn *c);

/** conn_stalled_since_ns() - the time since which the peer has read more slowly than
 * LIMIT_STALLED_BYTES_PER_S (slow_reader.h). 0: nothing waits to be sent. */
uint64_t conn_stalled_since_ns(const struct conn *c);

/** conn_behind_since_ns() - the same for LIMIT_BEHIND_BYTES_PER_S. */
uint64_t conn_behind_since_ns(const struct conn *c);

/** conn_tls() - the TLS state of an open connection, or NULL. Borrowed. */
const struct tls *conn_tls(const struct conn *c);

/** conn_peer() - append the peer's address to @out, for logs: "10.0.0.1:4711", or "pid 17 uid 0". */
void conn_peer(const struct conn *c, struct buf *out);

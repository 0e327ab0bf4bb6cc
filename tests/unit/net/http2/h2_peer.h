/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_peer.h - a scripted HTTP/2 server on the loop of the test, and its connections in the order in which
 * they came.
 */
#pragma once

#include "net/core/addr.h"
#include "net/core/conn.h"

#include "h2_pair.h"
#include "unit/net/core/tmpdir.h"

enum h2_peer_manner {
	H2_PEER_SERVES,
	H2_PEER_HANGS_UP,    /* accepts, and closes */
	H2_PEER_IS_SILENT,   /* accepts, and says nothing */
	H2_PEER_GREETS_ONLY, /* shuts down along with its SETTINGS */
};

struct h2_peer_conn {
	struct h2_side side; /* the first member: what react() gets is the connection */
	struct h2_peer *peer;
	struct conn *conn; /* NULL: gone; the log of the side stays */
	int fd;            /* the connection's, which owns it; without one its own */
};

struct h2_peer {
	struct loop *loop;
	struct addr addr;
	char *endpoint;
	int listen_fd;
	struct loop_watch *watch;
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream);
	enum h2_peer_manner manner;
	uint32_t max_streams;    /* 0: as our servers */
	struct tls_context *tls; /* borrowed; NULL: plain */
	struct handshakes *handshakes;
	struct h2_peer_conn *conns[32];
	unsigned n_conns;
};

/** h2_peer_open() - listen. @endpoint: NULL: a unix socket in tmpdir; port 0: one that is free. @react: may
 * be NULL. */
void h2_peer_open(struct h2_peer *p, struct loop *loop, const char *endpoint,
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream));
void h2_peer_close(struct h2_peer *p);

/** h2_peer_listen() - listen again, after h2_peer_deafen(): refuse connections. */
void h2_peer_listen(struct h2_peer *p);
void h2_peer_deafen(struct h2_peer *p);

/** h2_peer_conn() - the @number-th connection, from 1. */
struct h2_peer_conn *h2_peer_conn(struct h2_peer *p, unsigned number);

/** h2_peer_log() - get what was reported to the @number-th connection. */
const char *h2_peer_log(struct h2_peer *p, unsigned number);

/** h2_peer_flush() - send what was given to c->side.h2, outside of react(). */
void h2_peer_flush(struct h2_peer_conn *c);

/** h2_peer_hang_up() - close the connection; in react() only its socket. */
void h2_peer_hang_up(struct h2_peer_conn *c);
void h2_peer_cut(struct h2_peer_conn *c);

/** h2_peer_goaway() - GOAWAY that names @last_stream; requests go on. */
void h2_peer_goaway(struct h2_peer_conn *c, int32_t last_stream, uint32_t code);

/** h2_peer_until() - run the loop until @done(@user). */
void h2_peer_until(struct h2_peer *p, bool (*done)(void *user), void *user);

/** h2_peer_until_logged() - run the loop until @text stands in the log of the @number-th connection. */
void h2_peer_until_logged(struct h2_peer *p, unsigned number, const char *text);

/** h2_peer_until_gone() - run the loop until the client has closed the @number-th connection. */
void h2_peer_until_gone(struct h2_peer *p, unsigned number);

/** h2_peer_rounds() - run the loop for a while, in which nothing is to happen. */
void h2_peer_rounds(struct h2_peer *p);

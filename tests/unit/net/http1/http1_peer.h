/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_peer.h - an HTTP/1.1 server without a socket that writes down what it is asked.
 *
 * Each request becomes a line "METHOD PATH [?QUERY] [BODY]\n" of the log, and is answered with 200 "hi\n"
 * unless configured otherwise.
 */
#pragma once

#include "base/buf.h"
#include "net/http1/http1.h"

/* A reply to GET without more, from a connection that stays. */
#define HTTP1_HI "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nhi\n"

#define HTTP1_GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

struct http1_peer {
	struct http1 *http1;
	struct buf log;
	struct buf out; /* all that was sent */
	size_t buffered_bytes;
	bool answers_later; /* the test calls http1_reply() itself */
	size_t reply_bytes; /* 0: "hi\n"; otherwise the length of the reply's body */
};

/** http1_peer_init() - a new connection. @p stays where it is until http1_peer_done(). */
void http1_peer_init(struct http1_peer *p, size_t max_body_bytes);
void http1_peer_done(struct http1_peer *p);

/** http1_peer_feed() - deliver @bytes, at most @chunk of them at a time, and collect what is sent. */
void http1_peer_feed(struct http1_peer *p, struct span bytes, size_t chunk);

/** http1_peer_collect() - collect what is sent. */
void http1_peer_collect(struct http1_peer *p);

/** http1_peer_say() - http1_peer_feed() with the string @text at once. */
void http1_peer_say(struct http1_peer *p, const char *text);

/** http1_peer_status() - status of the last reply in @p->out, or 0. */
unsigned http1_peer_status(const struct http1_peer *p);

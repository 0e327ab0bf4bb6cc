/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_link.h - one connection of a channel, and the requests on its streams. Private to h2_channel.c,
 * h2_link.c and h2_request.c.
 *
 * A request is in one list at a time: it waits for a stream, has one, or has ended. A link moves those that
 * the server did not look at back to the waiting ones, once, and all others to those that have ended; the
 * channel tells their users. Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/h2.h"
#include "net/h2_channel.h"

struct h2_link;

struct h2_requests {
	struct h2_request *first;
};

struct h2_request {
	struct h2_request *next;
	struct h2_requests *list;
	struct h2_channel *channel;
	struct h2_link *link; /* NULL: has no stream */
	uint64_t started_ns;  /* has it since then */
	int32_t stream;
	struct arena *payload; /* headers and body; NULL when they are not needed again */
	struct h2_header *headers;
	size_t n;
	struct span body;
	const struct h2_request_events *events;
	void *user;
	bool retried;
	bool complete; /* the server has ended the stream */
	struct error *error;
};

/** h2_request_new() - a request in no list; parameters as of h2_channel_request(). */
struct h2_request *h2_request_new(struct h2_channel *c, const struct h2_header *headers, size_t n,
	struct span body, const struct h2_request_events *events, void *user);

/** h2_request_free() - destroy @r, which is in no list. */
void h2_request_free(struct h2_request *r);

/** h2_request_append() - move @r to the end of @list. h2_request_prepend(): to its front.
 * h2_request_unlist(): to no list. */
void h2_request_append(struct h2_request *r, struct h2_requests *list);
void h2_request_prepend(struct h2_request *r, struct h2_requests *list);
void h2_request_unlist(struct h2_request *r);

/** h2_request_fail() - give @r an error; it keeps the first one. */
void h2_request_fail(struct h2_request *r, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct h2_link_config {
	struct loop *loop;
	const struct addr *addr;
	const char *endpoint;          /* for messages */
	struct tls *tls;               /* owned from now on; NULL: plain */
	struct handshakes *handshakes; /* with tls only */
	uint64_t open_ms;
	uint64_t idle_ms; /* 0: never closed for that */
	uint64_t ping_ms; /* silence of the server after which it is sent PING; 0: only in doubt */
	uint64_t ping_timeout_ms;
	struct h2_requests *waiting;
	struct h2_requests *ended;
	/* something has changed; h2_link_close() is allowed in it */
	void (*on_change)(void *user);
	void *user;
};

struct h2_link {
	struct h2_link *next; /* the channel's */
	struct h2_link_config config;
	struct h2 *h2;
	struct conn *conn;
	struct loop_timer *timer; /* until it is ready: for that; then: without streams */
	struct loop_timer *pulse; /* when it is ready: the next PING, or the end of waiting for an answer */
	uint64_t heard_ns;        /* the server's last byte */
	uint64_t ping_ns;         /* our last PING; 0: none */
	uint64_t pulse_ns;        /* when pulse is due */
	struct h2_requests requests;
	bool ready;   /* the server's SETTINGS have come */
	bool used;    /* has had a request */
	bool leaving; /* takes no new requests */
	bool over;
	bool timing_idle;
	bool unwanted_pings; /* the server takes them for abuse */
	bool flush_due;
	struct error *why; /* of over; NULL: in order */
};

/** h2_link_open() - begin to connect. @config: strings and lists are borrowed. Return: 0, or -1 with
 * ERR_UNAVAILABLE or ERR_INTERNAL. @ret: h2_link_close(). */
int h2_link_open(const struct h2_link_config *config, struct h2_link **ret, struct error **err) MUST_CHECK;

/** h2_link_close() - close; requests on its streams end with ERR_UNAVAILABLE. */
void h2_link_close(struct h2_link *l);

/** h2_link_start() - give @r, which waits, a stream; the link is ready. Return: false when it takes no more
 * requests, which makes it leave. */
bool h2_link_start(struct h2_link *l, struct h2_request *r) MUST_CHECK;

/** h2_link_drop() - reset the stream of @r, which then is without a link. */
void h2_link_drop(struct h2_request *r);

/** h2_link_doubt() - a request has run into its time limit. If nothing at all has come since it was sent,
 * further requests use another connection, and what is left of this one ends unless the server answers a
 * PING. @r: has a stream. */
void h2_link_doubt(struct h2_request *r);

/** h2_link_tend() - see what the last round of reading and writing has brought: readiness, replies that are
 * complete before the request is, the end of the last stream. */
void h2_link_tend(struct h2_link *l);

/** h2_link_flush() - send what is due. Return: whether anything was; h2_link_tend() is due then. */
bool h2_link_flush(struct h2_link *l) MUST_CHECK;

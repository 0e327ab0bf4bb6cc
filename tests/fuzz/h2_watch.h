/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_watch.h - callbacks of an HTTP/2 connection that check what h2.h promises about them: their order, and
 * that each stream ends once.
 */
#pragma once

#include "base/buf.h"
#include "net/http2/h2.h"

struct h2_watched; /* one stream */

struct h2_watch {
	struct h2 *h2; /* owned; set by the caller */
	bool server;
	bool stuck;                 /* the peer takes nothing of what is sent */
	struct h2_watched *streams; /* open ones */
	size_t open;
	/* after the checks of an event, NULL: nothing is done */
	void (*on_headers)(struct h2_watch *w, int32_t stream);
	void (*on_data)(struct h2_watch *w, int32_t stream, struct span data);
	void (*on_end)(struct h2_watch *w, int32_t stream);
};

/** h2_watch_events - for h2_server_new() and h2_client_new(), with a struct h2_watch as user. */
extern const struct h2_events h2_watch_events;

/** h2_watch_opened() - client: h2_request() gave @stream. */
void h2_watch_opened(struct h2_watch *w, int32_t stream);

/** h2_watch_reset() - h2_reset(), after which nothing but the end of the stream may be heard. */
void h2_watch_reset(struct h2_watch *w, int32_t stream, enum h2_code code);

/** h2_watch_feed() - the peer sends @bytes, and takes all that is sent unless it is stuck. Return: false when
 * the connection is over. */
bool h2_watch_feed(struct h2_watch *w, struct span bytes);

/** h2_watch_done() - free the connection. */
void h2_watch_done(struct h2_watch *w);

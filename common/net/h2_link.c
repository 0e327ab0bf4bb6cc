/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2_link.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/grpc_wire.h"
#include "net/limits.h"

/* A timer that fires so late tells of ourselves, not of the server. */
#define LATE_NS NS_PER_S

static struct h2_request *find(const struct h2_link *l, int32_t stream)
{
	for (struct h2_request *r = l->requests.first; r; r = r->next) {
		if (r->stream == stream)
			return r;
	}
	return NULL;
}

static void end(struct h2_link *l, struct h2_request *r)
{
	r->link = NULL;
	h2_request_append(r, l->config.ended);
}

static void on_headers(void *user, int32_t stream, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct h2_request *r = find(user, stream);

	if (!r)
		return;
	arena_free(TAKE_PTR(r->payload));
	if (r->events->on_headers)
		r->events->on_headers(r->user, headers, n, is_trailer);
}

static void on_data(void *user, int32_t stream, struct span data)
{
	struct h2_request *r = find(user, stream);

	if (r && !r->events->on_data(r->user, data))
		h2_request_cancel(r, ERR_CANCELLED, "the reply was not wanted any more");
}

static void on_end(void *user, int32_t stream)
{
	struct h2_request *r = find(user, stream);

	if (r)
		r->complete = true;
}

/* RFC 9113 section 8.7: it was not looked at, and may be sent again. */
static bool is_unprocessed(const struct h2_request *r, uint32_t code)
{
	return code == H2_REFUSED_STREAM && r->payload && !r->retried;
}

static void on_close(void *user, int32_t stream, uint32_t code)
{
	struct h2_link *l = user;
	struct h2_request *r = find(l, stream);

	if (!r)
		return;
	if (!r->complete && is_unprocessed(r, code)) {
		l->leaving = true;
		r->retried = true;
		r->link = NULL;
		h2_request_prepend(r, l->config.waiting);
		return;
	}
	if (!r->complete)
		h2_request_fail(r, grpc_code_of_reset(code), "%s: the stream was reset with HTTP/2 code %u",
			l->config.endpoint, code);
	end(l, r);
}

static void on_goaway(void *user, int32_t last_stream, uint32_t code)
{
	struct h2_link *l = user;

	(void)last_stream;
	l->leaving = true;
	/* A server may send several: one that ends the connection without haste takes nothing back. */
	l->unwanted_pings = l->unwanted_pings || code == H2_ENHANCE_YOUR_CALM;
}

static const struct h2_events h2_events = {
	.on_headers = on_headers,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.on_goaway = on_goaway,
};

static int receive(void *self, struct span bytes, struct error **err)
{
	struct h2_link *l = self;

	l->heard_ns = clock_ns();
	return h2_recv(l->h2, bytes, err);
}

static int send(void *self, struct buf *out, struct error **err)
{
	const struct h2_link *l = self;

	return h2_send(l->h2, out, err);
}

static bool is_done(const void *self)
{
	const struct h2_link *l = self;

	return h2_is_done(l->h2);
}

static const struct conn_protocol protocol = {.receive = receive, .send = send, .is_done = is_done};

static void set_over(struct h2_link *l)
{
	const struct error *why = conn_why(l->conn);

	if (l->over)
		return;
	l->over = true;
	if (why)
		err_set(&l->why, ERR_UNAVAILABLE, "%s", why->msg);
	else if (!l->leaving)
		err_set(&l->why, ERR_UNAVAILABLE, "the server broke the rules of HTTP/2");
}

static void on_round(void *user, bool over)
{
	struct h2_link *l = user;

	if (over)
		set_over(l);
	l->config.on_change(l->config.user);
}

static void on_timer(void *user)
{
	struct h2_link *l = user;

	l->over = true;
	if (!l->ready)
		err_set(&l->why, ERR_UNAVAILABLE, "%s within the time limit",
			conn_is_open(l->conn) ? "no HTTP/2 from the server" : "no connection");
	l->config.on_change(l->config.user);
}

static void set_pulse(struct h2_link *l, uint64_t wait_ms)
{
	l->pulse_ns = clock_ns() + wait_ms * NS_PER_MS;
	loop_timer_set(l->pulse, wait_ms, 0);
}

static void ping(struct h2_link *l)
{
	h2_ping(l->h2);
	l->flush_due = true;
	l->ping_ns = clock_ns();
	set_pulse(l, l->config.ping_timeout_ms);
}

/* Everything that the server says counts as an answer, as in Go's golang.org/x/net/http2. */
static bool is_pinging(const struct h2_link *l)
{
	return l->ping_ns > l->heard_ns;
}

static void check_pulse(struct h2_link *l)
{
	uint64_t now_ns = clock_ns();
	uint64_t silent_ms = (now_ns - l->heard_ns) / NS_PER_MS;
	/* A process that was stopped itself has not looked yet at what came meanwhile. */
	bool late = now_ns > l->pulse_ns + LATE_NS;

	if (is_pinging(l) && !late) {
		l->over = true;
		err_set(&l->why, ERR_UNAVAILABLE,
			"the server has not said anything for %" PRIu64 " ms, nor answered a PING",
			silent_ms);
	} else if (late || (l->config.ping_ms > 0 && silent_ms >= l->config.ping_ms)) {
		ping(l);
	} else if (l->config.ping_ms > 0) {
		set_pulse(l, l->config.ping_ms - silent_ms);
	}
}

static void on_pulse(void *user)
{
	struct h2_link *l = user;

	check_pulse(l);
	l->config.on_change(l->config.user);
}

void h2_link_doubt(struct h2_request *r)
{
	struct h2_link *l = r->link;

	if (l->heard_ns > r->started_ns || clock_ns() - r->started_ns < LIMIT_SILENCE_MS * NS_PER_MS)
		return;
	l->leaving = true;
	if (!is_pinging(l))
		ping(l);
}

int h2_link_open(const struct h2_link_config *config, struct h2_link **ret, struct error **err)
{
	CLEANUP(tls_freep) struct tls *tls = config->tls;
	struct h2_link *l;
	int fd;

	if (addr_connect(config->addr, &fd, err) < 0)
		return -1;
	l = x_calloc(1, sizeof(*l));
	l->config = *config;
	l->h2 = h2_client_new(&h2_events, l);
	l->timer = loop_timer_new(config->loop, on_timer, l);
	l->pulse = loop_timer_new(config->loop, on_pulse, l);
	const struct conn_config conn = {
		.loop = config->loop,
		.handshakes = config->handshakes,
		.tls = TAKE_PTR(tls),
		.connecting = true,
		.protocol = &protocol,
		.self = l,
		.on_round = on_round,
		.user = l,
	};
	if (conn_new(&conn, fd, &l->conn, err) < 0) {
		h2_link_close(l);
		return -1;
	}
	loop_timer_set(l->timer, config->open_ms, 0);
	*ret = l;
	return 0;
}

void h2_link_close(struct h2_link *l)
{
	struct h2_request *r;

	while ((r = l->requests.first)) {
		if (!r->complete)
			h2_request_fail(r, ERR_UNAVAILABLE, "%s: %s", l->config.endpoint,
				l->why ? l->why->msg : "connection closed");
		end(l, r);
	}
	loop_timer_close(l->timer);
	loop_timer_close(l->pulse);
	conn_free(l->conn);
	h2_free(l->h2);
	error_free(l->why);
	free(l);
}

static void time_idle(struct h2_link *l, bool idle)
{
	if (l->config.idle_ms == 0 || idle == l->timing_idle)
		return;
	l->timing_idle = idle;
	if (idle)
		loop_timer_set(l->timer, l->config.idle_ms, 0);
	else
		loop_timer_stop(l->timer);
}

bool h2_link_start(struct h2_link *l, struct h2_request *r)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (h2_request(l->h2, r->headers, r->n, r->body.n == 0, &r->stream, &err) < 0) {
		l->leaving = true;
		return false;
	}
	l->used = true;
	l->flush_due = true;
	r->link = l;
	r->started_ns = clock_ns();
	h2_request_append(r, &l->requests);
	if (r->body.n > 0) {
		h2_write(l->h2, r->stream, r->body);
		h2_finish(l->h2, r->stream, NULL, 0);
	}
	time_idle(l, false);
	return true;
}

void h2_link_drop(struct h2_request *r)
{
	struct h2_link *l = r->link;

	h2_reset(l->h2, r->stream, H2_CANCEL);
	l->flush_due = true;
	r->link = NULL;
}

/* Readiness is the server's SETTINGS: they tell how many streams it takes, and that it is no listener whose
 * program hangs. */
static void see_ready(struct h2_link *l)
{
	if (l->ready || !h2_is_greeted(l->h2))
		return;
	l->ready = true;
	loop_timer_stop(l->timer);
	if (l->config.ping_ms > 0)
		set_pulse(l, l->config.ping_ms);
}

/* Normally the end of the reply ends the stream. What the server did not want to read of the request, it does
 * not get. */
static void see_early_replies(struct h2_link *l)
{
	struct h2_request *next;

	for (struct h2_request *r = l->requests.first; r; r = next) {
		next = r->next;
		if (!r->complete)
			continue;
		h2_link_drop(r);
		h2_request_append(r, l->config.ended);
	}
}

static void see_idle(struct h2_link *l)
{
	if (!l->ready || h2_streams(l->h2) > 0)
		return;
	if (l->leaving)
		l->over = true;
	time_idle(l, true);
}

void h2_link_tend(struct h2_link *l)
{
	see_ready(l);
	see_early_replies(l);
	see_idle(l);
}

bool h2_link_flush(struct h2_link *l)
{
	if (!l->flush_due)
		return false;
	l->flush_due = false;
	if (!l->over && !conn_flush(l->conn))
		set_over(l);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2/h2_channel.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "net/core/conn.h"
#include "net/http2/h2.h"
#include "net/http2/h2_addresses.h"
#include "net/limits.h"
#include "pacing/backoff.h"

struct h2_link;

/*
 * A request is in one list at a time: it waits for a stream, has one, or has ended. A link, which is one
 * connection, moves those that the server did not look at back to the waiting ones, once, and all others to
 * those that have ended; the channel notifies their users.
 */
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

struct h2_link_config {
	struct loop *loop;
	const struct addr *addr;
	const char *endpoint;          /* for messages; copied */
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
	char *endpoint;
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

static void h2_request_prepend(struct h2_request *r, struct h2_requests *list);
static void h2_link_close(struct h2_link *l);

static struct span keep(struct arena *a, struct span s)
{
	uint8_t *copy = arena_alloc(a, s.n);

	if (s.n > 0)
		memcpy(copy, s.p, s.n);
	return (struct span){copy, s.n};
}

/* A request in no list; parameters as of h2_channel_request(). */
static struct h2_request *h2_request_new(struct h2_channel *c, const struct h2_header *headers, size_t n,
	struct span body, const struct h2_request_events *events, void *user)
{
	struct h2_request *r = x_calloc(1, sizeof(*r));

	r->channel = c;
	r->payload = arena_new(0);
	r->headers = arena_alloc(r->payload, n * sizeof(*headers));
	r->n = n;
	for (size_t i = 0; i < n; i++) {
		r->headers[i].name = keep(r->payload, headers[i].name);
		r->headers[i].value = keep(r->payload, headers[i].value);
	}
	r->body = keep(r->payload, body);
	r->events = events;
	r->user = user;
	return r;
}

/* Destroy @r, which is in no list. */
static void h2_request_free(struct h2_request *r)
{
	arena_free(r->payload);
	error_free(r->error);
	free(r);
}

static void h2_request_unlist(struct h2_request *r)
{
	struct h2_request **link;

	if (!r->list)
		return;
	link = &r->list->first;
	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	r->next = NULL;
	r->list = NULL;
}

static struct h2_request *take_first(struct h2_requests *list)
{
	struct h2_request *r = list->first;

	if (r) {
		list->first = r->next;
		r->next = NULL;
		r->list = NULL;
	}
	return r;
}

static void insert(struct h2_request *r, struct h2_requests *list, struct h2_request **link)
{
	r->next = *link;
	*link = r;
	r->list = list;
}

/* Move @r to the end of @list. */
static void h2_request_append(struct h2_request *r, struct h2_requests *list)
{
	struct h2_request **link = &list->first;

	h2_request_unlist(r);
	while (*link)
		link = &(*link)->next;
	insert(r, list, link);
}

static void h2_request_prepend(struct h2_request *r, struct h2_requests *list)
{
	h2_request_unlist(r);
	insert(r, list, &list->first);
}

/* Give @r an error; it keeps the first one. */
__attribute__((format(printf, 3, 4))) static void h2_request_fail(
	struct h2_request *r, enum err_code code, const char *fmt, ...)
{
	CLEANUP(free_charp) char *msg = NULL;
	va_list ap;

	if (r->error)
		return;
	va_start(ap, fmt);
	msg = x_vasprintf(fmt, ap);
	va_end(ap);
	err_set(&r->error, code, "%s", msg);
}

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
		h2_request_fail(r, h2_code_of_reset(code), "%s: the stream was reset with HTTP/2 code %u",
			l->config.endpoint, code);
	end(l, r);
}

static void on_goaway(void *user, int32_t last_stream, uint32_t code)
{
	struct h2_link *l = user;

	(void)last_stream;
	l->leaving = true;
	/* A server may send several: a server that ends the connection gracefully may send further ones. */
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

/* End @l; the first reason counts. Several requests may run into their time limit in one round of the loop.
 */
__attribute__((format(printf, 2, 3))) static void end_link(struct h2_link *l, const char *fmt, ...)
{
	CLEANUP(free_charp) char *why = NULL;
	va_list ap;

	if (l->over)
		return;
	l->over = true;
	va_start(ap, fmt);
	why = x_vasprintf(fmt, ap);
	va_end(ap);
	err_set(&l->why, ERR_UNAVAILABLE, "%s", why);
}

static void set_over(struct h2_link *l)
{
	const struct error *why = conn_why(l->conn);

	if (why)
		end_link(l, "%s", why->msg);
	else if (!l->leaving)
		end_link(l, "the server broke the rules of HTTP/2");
	l->over = true;
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

	if (!l->ready)
		end_link(l, "%s within the time limit",
			conn_is_open(l->conn) ? "no HTTP/2 from the server" : "no connection");
	l->over = true;
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
	/* If this process was stopped, it has not yet read what arrived meanwhile. */
	bool late = now_ns > l->pulse_ns + LATE_NS;

	if (is_pinging(l) && !late) {
		end_link(l, "the server has sent nothing for %" PRIu64 " ms and has not answered a PING",
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

/* A request has run into its time limit. If nothing was received since it was sent, further requests use
 * another connection, and this one ends with its remaining requests unless the server answers a PING. If the
 * server's machine has not even acknowledged everything, it ends at once: otherwise the request could be
 * delivered after its repetition, and after what followed that, by another connection. @r: has a stream.
 */
static void h2_link_doubt(struct h2_request *r)
{
	struct h2_link *l = r->link;

	if (l->heard_ns > r->started_ns || clock_ns() - r->started_ns < LIMIT_SILENCE_MS * NS_PER_MS)
		return;
	l->leaving = true;
	if (conn_has_unsent(l->conn)) {
		end_link(l, "the server's machine does not acknowledge the data that is sent to it");
	} else if (!is_pinging(l)) {
		ping(l);
	}
}

/* Begin to connect. @config: strings and lists are borrowed. Return: 0, or -1 with ERR_UNAVAILABLE or
 * ERR_INTERNAL. @ret: h2_link_close(). */
static int h2_link_open(const struct h2_link_config *config, struct h2_link **ret, struct error **err)
{
	CLEANUP(tls_freep) struct tls *tls = config->tls;
	struct h2_link *l;
	int fd;

	if (addr_connect(config->addr, &fd, err) < 0)
		return -1;
	l = x_calloc(1, sizeof(*l));
	l->config = *config;
	l->config.endpoint = l->endpoint = x_strdup(config->endpoint);
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

/* Close; requests on its streams end with ERR_UNAVAILABLE. */
static void h2_link_close(struct h2_link *l)
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
	free(l->endpoint);
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

/* Give @r, which waits, a stream; the link is ready. Return: false when it takes no more requests, which
 * makes it leave. */
static bool h2_link_start(struct h2_link *l, struct h2_request *r)
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

/* Reset the stream of @r, which then is without a link. */
static void h2_link_drop(struct h2_request *r)
{
	struct h2_link *l = r->link;

	h2_reset(l->h2, r->stream, H2_CANCEL);
	l->flush_due = true;
	r->link = NULL;
}

/* The link is ready when the server's SETTINGS have arrived: they say how many streams it accepts, and show
 * that its program does not hang. */
static void see_ready(struct h2_link *l)
{
	if (l->ready || !h2_is_greeted(l->h2))
		return;
	l->ready = true;
	loop_timer_stop(l->timer);
	if (l->config.ping_ms > 0)
		set_pulse(l, l->config.ping_ms);
}

/* Normally the end of the reply ends the stream. The rest of a request that the server did not want to read
 * is not sent. */
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

/* Process the results of the last round of reading and writing: readiness, replies that are complete before
 * the request is, the end of the last stream. */
static void h2_link_tend(struct h2_link *l)
{
	see_ready(l);
	see_early_replies(l);
	see_idle(l);
}

/* Send what can be sent. Return: whether anything was sent; the caller then calls h2_link_tend(). */
static bool h2_link_flush(struct h2_link *l)
{
	if (!l->flush_due)
		return false;
	l->flush_due = false;
	if (!l->over && !conn_flush(l->conn))
		set_over(l);
	return true;
}

struct h2_channel {
	struct h2_channel_config config; /* its strings are those below */
	struct h2_addresses addresses;
	char *endpoint; /* the first one */
	char *tls_name;
	char *authority;
	struct backoff reconnect_backoff;
	struct error *failure;   /* why no connection could be opened */
	struct loop_timer *kick; /* starts what was asked for since the last round */
	struct h2_link *links;   /* one that takes new requests at most */
	struct h2_requests waiting;
	struct h2_requests ended;
	size_t n_requests;
	bool delivering;
	bool closing;
};

static void destroy(struct h2_channel *c)
{
	loop_timer_close(c->kick);
	tls_context_unref(c->config.tls);
	h2_addresses_done(&c->addresses);
	error_free(c->failure);
	free(c->endpoint);
	free(c->tls_name);
	free(c->authority);
	free(c);
}

/* Never from callbacks of h2: the callback may make new requests, or free the channel. */
static void deliver(struct h2_channel *c)
{
	struct h2_request *r;

	if (c->delivering)
		return;
	c->delivering = true;
	while ((r = take_first(&c->ended))) {
		c->n_requests--;
		r->events->on_end(r->user, r->error);
		h2_request_free(r);
	}
	c->delivering = false;
	if (c->closing)
		destroy(c);
}

static void fail_waiting(struct h2_channel *c)
{
	struct h2_request *r;

	while ((r = c->waiting.first)) {
		h2_request_fail(r, c->failure->code, "%s", c->failure->msg);
		h2_request_append(r, &c->ended);
	}
}

/* Why the addresses that were tried in turn have failed. */
static void note_failure(struct h2_channel *c, const char *endpoint, const char *why)
{
	CLEANUP(error_freep) struct error *before = c->addresses.n_failed > 0 ? TAKE_PTR(c->failure) : NULL;

	error_clear(&c->failure);
	err_set(&c->failure, ERR_UNAVAILABLE, "%s%s%s: %s", before ? before->msg : "", before ? "; " : "",
		endpoint, why);
	log_debug("connection could not be opened", F_ERR(c->failure));
}

/* No connection to @endpoint could be opened. @refused: it was opened, and the server has ended it. */
static void fail_address(struct h2_channel *c, const char *endpoint, const char *why, bool refused)
{
	note_failure(c, endpoint, why);
	if (h2_addresses_fail(&c->addresses) && !refused)
		return;
	h2_addresses_start_over(&c->addresses);
	backoff_fail(&c->reconnect_backoff, clock_ns());
	fail_waiting(c);
}

/* A server that sends SETTINGS and closes the connection before it has accepted a request counts as a
 * failure. */
static void lose(struct h2_channel *c, struct h2_link *l)
{
	struct h2_link **place = &c->links;

	while (*place != l)
		place = &(*place)->next;
	*place = l->next;
	/* one to an address that the server has no more says nothing of the others */
	if ((!l->ready || (!l->used && c->waiting.first)) &&
		strv_contains(c->addresses.endpoints, l->config.endpoint))
		fail_address(c, l->config.endpoint,
			l->why && !l->leaving ? l->why->msg : "the server takes no requests", l->ready);
	if (l->ready && c->config.on_lost)
		c->config.on_lost(c->config.user);
	h2_link_close(l);
}

static void tend_links(struct h2_channel *c)
{
	struct h2_link *next;

	for (struct h2_link *l = c->links; l; l = next) {
		next = l->next;
		h2_link_tend(l);
		if (l->ready && !l->leaving) {
			backoff_reset(&c->reconnect_backoff);
			h2_addresses_start_over(&c->addresses);
		}
		if (l->unwanted_pings)
			c->config.ping_ms = 0;
		if (l->over)
			lose(c, l);
	}
}

static struct h2_link *taking_link(const struct h2_channel *c)
{
	struct h2_link *l = c->links;

	while (l && (l->leaving || l->over))
		l = l->next;
	return l;
}

static void on_change(void *user);

static struct h2_link *open_link(struct h2_channel *c)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct h2_addresses *a = &c->addresses;
	const struct h2_link_config config = {
		.loop = c->config.loop,
		.addr = &a->addrs[a->at],
		.endpoint = a->endpoints[a->at],
		.tls = c->config.tls ? tls_new(c->config.tls, c->config.tls_name) : NULL,
		.handshakes = c->config.handshakes,
		.open_ms = h2_addresses_share_ms(a, c->config.open_ms),
		.idle_ms = c->config.idle_ms,
		.ping_ms = c->config.ping_ms,
		.ping_timeout_ms = c->config.ping_timeout_ms,
		.waiting = &c->waiting,
		.ended = &c->ended,
		.on_change = on_change,
		.user = c,
	};
	struct h2_link *l;

	if (h2_link_open(&config, &l, &err) < 0) {
		fail_address(c, config.endpoint, err->msg, /* refused= */ false);
		return NULL;
	}
	l->next = c->links;
	c->links = l;
	return l;
}

static void assign(struct h2_channel *c)
{
	while (c->waiting.first) {
		struct h2_link *l = taking_link(c);

		if (!l && !backoff_is_over(&c->reconnect_backoff, clock_ns()))
			fail_waiting(c);
		/* an address that cannot even be tried leaves the requests to the next address */
		while (!l && c->waiting.first)
			l = open_link(c);
		if (!l || !l->ready || h2_room(l->h2) == 0)
			return;
		while (c->waiting.first && h2_room(l->h2) > 0 && h2_link_start(l, c->waiting.first))
			;
	}
}

/* Return: whether anything was sent, which may end streams and connections. */
static bool flush_links(struct h2_channel *c)
{
	bool sent = false;

	for (struct h2_link *l = c->links; l; l = l->next)
		sent = h2_link_flush(l) || sent;
	return sent;
}

static void on_change(void *user)
{
	struct h2_channel *c = user;

	do {
		tend_links(c);
		assign(c);
	} while (flush_links(c));
	deliver(c);
}

/* The value of :authority, as grpc-go chooses it: with TLS, the name that the server has to prove, without a
 * port. */
static char *authority_of(const struct addr *a, const char *tls_name)
{
	if (tls_name)
		return x_asprintf(strchr(tls_name, ':') ? "[%s]" : "%s", tls_name);
	if (a->is_unix)
		return x_strdup("localhost");
	return x_asprintf(strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
}

int h2_channel_new(const struct h2_channel_config *config, struct h2_channel **ret, struct error **err)
{
	char *const only[] = {(char *)(uintptr_t)config->endpoint, NULL};
	struct h2_addresses addresses = {0};
	struct h2_channel *c;

	if (config->tls && (!config->tls_name || !config->handshakes))
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": TLS without the server's name",
			config->endpoint);
	if (h2_addresses_set(&addresses, config->endpoints ? config->endpoints : only, err) < 0)
		return -1;
	c = x_calloc(1, sizeof(*c));
	c->config = *config;
	c->addresses = addresses;
	c->endpoint = x_strdup(config->endpoint);
	c->tls_name = x_strdup(config->tls ? config->tls_name : NULL);
	c->authority = authority_of(&c->addresses.addrs[0], c->tls_name);
	c->config.endpoint = c->endpoint;
	c->config.endpoints = NULL;
	c->config.tls_name = c->tls_name;
	if (config->tls)
		tls_context_ref(config->tls);
	if (c->config.open_ms == 0)
		c->config.open_ms = LIMIT_HANDSHAKE_MS;
	if (c->config.ping_timeout_ms == 0)
		c->config.ping_timeout_ms = LIMIT_PING_MS;
	backoff_init(&c->reconnect_backoff, config->reconnect_backoff_ms);
	c->kick = loop_timer_new(config->loop, on_change, c);
	*ret = c;
	return 0;
}

static void cancel_all(struct h2_channel *c, struct h2_requests *list)
{
	struct h2_request *r;

	while ((r = list->first)) {
		h2_request_fail(r, ERR_CANCELLED, "%s: the channel was closed", c->endpoint);
		r->link = NULL;
		h2_request_append(r, &c->ended);
	}
}

void h2_channel_free(struct h2_channel *c)
{
	struct h2_link *l;

	if (!c || c->closing)
		return;
	c->closing = true;
	cancel_all(c, &c->waiting);
	while ((l = c->links)) {
		c->links = l->next;
		cancel_all(c, &l->requests);
		h2_link_close(l);
	}
	deliver(c);
}

int h2_channel_set_endpoints(struct h2_channel *c, char *const *endpoints, struct error **err)
{
	bool is_kept = strv_contains(endpoints, c->addresses.endpoints[c->addresses.at]);

	if (h2_addresses_set(&c->addresses, endpoints, err) < 0)
		return -1;
	if (!is_kept)
		backoff_reset(&c->reconnect_backoff);
	return 0;
}

const char *h2_channel_authority(const struct h2_channel *c)
{
	return c->authority;
}

struct h2_request *h2_channel_request(struct h2_channel *c, const struct h2_header *headers, size_t n,
	struct span body, const struct h2_request_events *events, void *user)
{
	struct h2_request *r = h2_request_new(c, headers, n, body, events, user);

	h2_request_append(r, &c->waiting);
	c->n_requests++;
	if (c->closing)
		h2_request_cancel(r, ERR_CANCELLED, "the channel was closed");
	else if (c->n_requests > LIMIT_CHANNEL_REQUESTS)
		h2_request_cancel(r, ERR_EXHAUSTED, "too many requests at a time");
	loop_timer_set(c->kick, 0, 0);
	return r;
}

void h2_request_cancel(struct h2_request *r, enum err_code code, const char *msg)
{
	struct h2_channel *c = r->channel;

	if (r->list == &c->ended)
		return;
	h2_request_fail(r, code, "%s", msg);
	if (r->link && code == ERR_DEADLINE)
		h2_link_doubt(r);
	if (r->link)
		h2_link_drop(r);
	h2_request_append(r, &c->ended);
	loop_timer_set(c->kick, 0, 0);
}

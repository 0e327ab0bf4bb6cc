/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2_channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/addr.h"
#include "net/backoff.h"
#include "net/h2_link.h"
#include "net/limits.h"

struct h2_channel {
	struct h2_channel_config config; /* its strings are those below */
	struct addr addr;
	char *endpoint;
	char *tls_name;
	char *authority;
	struct backoff backoff;
	struct error *failure;   /* why the last connection could not be opened */
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
	addr_done(&c->addr);
	error_free(c->failure);
	free(c->endpoint);
	free(c->tls_name);
	free(c->authority);
	free(c);
}

/* Never from callbacks of h2: whoever is called may make new requests, or free the channel. */
static void deliver(struct h2_channel *c)
{
	struct h2_request *r;

	if (c->delivering)
		return;
	c->delivering = true;
	while ((r = c->ended.first)) {
		h2_request_unlist(r);
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

static void open_failed(struct h2_channel *c, const char *why)
{
	error_clear(&c->failure);
	err_set(&c->failure, ERR_UNAVAILABLE, "%s: %s", c->config.endpoint, why);
	log_debug("connection could not be opened", F_ERR(c->failure));
	backoff_fail(&c->backoff, clock_ns());
	fail_waiting(c);
}

/* A server that greets, and leaves before it has taken one request, is as good as none. */
static void lose(struct h2_channel *c, struct h2_link *l)
{
	struct h2_link **place = &c->links;

	while (*place != l)
		place = &(*place)->next;
	*place = l->next;
	if (!l->ready || (!l->used && c->waiting.first))
		open_failed(c, l->why && !l->leaving ? l->why->msg : "the server takes no requests");
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
		if (l->ready && !l->leaving)
			backoff_reset(&c->backoff);
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
	const struct h2_link_config config = {
		.loop = c->config.loop,
		.addr = &c->addr,
		.endpoint = c->config.endpoint,
		.tls = c->config.tls ? tls_new(c->config.tls, c->config.tls_name) : NULL,
		.handshakes = c->config.handshakes,
		.open_ms = c->config.open_ms,
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
		open_failed(c, err->msg);
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

		if (!l && backoff_is_over(&c->backoff, clock_ns()))
			l = open_link(c);
		else if (!l)
			fail_waiting(c);
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

/* As grpc-go: the name that the server has to prove, without a port. */
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
	struct addr addr;
	struct h2_channel *c;

	if (config->tls && (!config->tls_name || !config->handshakes))
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": TLS without the server's name",
			config->endpoint);
	if (addr_parse(config->endpoint, &addr, err) < 0)
		return -1;
	c = x_calloc(1, sizeof(*c));
	c->config = *config;
	c->addr = addr;
	c->endpoint = x_strdup(config->endpoint);
	c->tls_name = x_strdup(config->tls ? config->tls_name : NULL);
	c->authority = authority_of(&addr, c->tls_name);
	c->config.endpoint = c->endpoint;
	c->config.tls_name = c->tls_name;
	if (config->tls)
		tls_context_ref(config->tls);
	if (c->config.open_ms == 0)
		c->config.open_ms = LIMIT_HANDSHAKE_MS;
	if (c->config.ping_timeout_ms == 0)
		c->config.ping_timeout_ms = LIMIT_PING_MS;
	backoff_init(&c->backoff, config->backoff_ms);
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

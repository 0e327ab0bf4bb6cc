/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/client_private.h"

/* A name is not looked up more often. */
#define LOOK_UP_AGAIN_NS (10 * NS_PER_S)

/* client-go, rest/transport.go: HTTP2_READ_IDLE_TIMEOUT_SECONDS. The API server does not count pings. */
#define PING_MS 30000

static bool is_address(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static int open_channel(struct kube_client *c, const char *endpoint, struct error **err)
{
	const struct h2_channel_config config = {
		.loop = c->config.loop,
		.endpoint = endpoint,
		.tls = c->tls,
		.tls_name = c->config.kube->tls_name,
		.handshakes = c->config.handshakes,
		.backoff_ms = c->config.backoff_ms,
		.ping_ms = c->config.ping_ms ? c->config.ping_ms : PING_MS,
		.ping_timeout_ms = c->config.ping_timeout_ms,
	};

	if (h2_channel_new(&config, &c->channel, err) < 0)
		return -1;
	free(c->endpoint);
	c->endpoint = x_strdup(endpoint);
	return 0;
}

static int set_up_tls(struct kube_client *c, struct error **err)
{
	const struct tls_config config = {
		.role = TLS_CLIENT,
		.ca_file = c->config.kube->ca_file,
		.cert_file = c->config.kube->cert_file,
		.key_file = c->config.kube->key_file,
		.alpn = "h2",
	};

	return config.ca_file ? tls_context_new(&config, &c->tls, err) : 0;
}

/* An address needs no look-up, and what is wrong with it is told at once. */
static int set_up_server(struct kube_client *c, struct error **err)
{
	const struct kube_config *kube = c->config.kube;
	CLEANUP(free_charp) char *endpoint = NULL;

	c->is_named = !is_address(kube->host);
	if (c->is_named)
		return 0;
	endpoint =
		x_asprintf(strchr(kube->host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u", kube->host, kube->port);
	return open_channel(c, endpoint, err);
}

static void on_pump(void *user)
{
	kube_client_pump(user);
}

/* The token, TLS and the server are set up by the caller. */
static struct kube_client *client_new(const struct kube_client_config *config)
{
	struct kube_client *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	c->refs = 1;
	c->user_agent = x_strdup(config->user_agent ? config->user_agent : "pmem-csi/" PMEM_VERSION);
	c->pump = loop_timer_new(config->loop, on_pump, c);
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->running);
	TAILQ_INIT(&c->paused);
	kube_bucket_init(&c->bucket, config->qps, config->burst);
	return c;
}

int kube_client_new(const struct kube_client_config *config, struct kube_client **ret, struct error **err)
{
	CLEANUP(kube_client_freep) struct kube_client *c = client_new(config);

	if (kube_token_init(&c->token, config->kube->token, config->kube->token_file, err) < 0 ||
		set_up_tls(c, err) < 0 || set_up_server(c, err) < 0)
		return -1;
	*ret = TAKE_PTR(c);
	return 0;
}

struct kube_client *kube_client_sibling(
	const struct kube_client *c, uint64_t ping_ms, uint64_t ping_timeout_ms)
{
	struct kube_client_config config = c->config;
	struct kube_client *sibling;

	config.user_agent = c->user_agent;
	config.qps = 0;
	config.ping_ms = ping_ms;
	config.ping_timeout_ms = ping_timeout_ms;
	sibling = client_new(&config);
	kube_token_copy(&sibling->token, &c->token);
	sibling->tls = c->tls ? tls_context_ref(c->tls) : NULL;
	/* The first request opens the channel; looking up a numeric address asks nobody. */
	sibling->is_named = c->is_named;
	return sibling;
}

void kube_client_unref(struct kube_client *c)
{
	if (--c->refs > 0)
		return;
	tls_context_unref(c->tls);
	kube_token_done(&c->token);
	free(c->endpoint);
	free(c->user_agent);
	free(c);
}

/* Whoever is told may free the client: the caller holds a reference. */
static void fail_all(struct kube_requests *list, enum err_code code, const char *msg)
{
	struct kube_request *r;

	while ((r = TAILQ_FIRST(list)))
		kube_request_fail(r, code, msg);
}

void kube_client_free(struct kube_client *c)
{
	if (!c || c->closing)
		return;
	c->closing = true;
	loop_lookup_cancel(c->lookup);
	loop_timer_close(c->pump);
	fail_all(&c->paused, ERR_CANCELLED, "the client was closed");
	fail_all(&c->waiting, ERR_CANCELLED, "the client was closed");
	h2_channel_free(c->channel);
	kube_client_unref(c);
}

struct loop *kube_client_loop(const struct kube_client *c)
{
	return c->config.loop;
}

uint64_t kube_client_backoff_ms(const struct kube_client *c)
{
	return c->config.backoff_ms;
}

const char *kube_client_namespace(const struct kube_client *c)
{
	return c->config.kube->namespace;
}

static void pump(struct kube_client *c);

/* The requests of the old channel end with it, and are made again by whoever needs them. */
static void on_looked_up(void *user, char *const *endpoints, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_client *c = user;

	c->lookup = NULL;
	c->refs++;
	if (!error && (!c->channel || !strv_contains(endpoints, c->endpoint))) {
		h2_channel_free(TAKE_PTR(c->channel));
		if (!c->closing && open_channel(c, endpoints[0], &err) < 0)
			error = err;
	}
	if (!c->channel && error)
		fail_all(&c->waiting, ERR_UNAVAILABLE, error->msg);
	pump(c);
	kube_client_unref(c);
}

static void look_up(struct kube_client *c)
{
	if (c->lookup)
		return;
	c->looked_up_ns = clock_ns();
	c->lookup = loop_look_up(c->config.loop, c->config.kube->host, c->config.kube->port, on_looked_up, c);
}

void kube_client_lost(struct kube_client *c)
{
	if (c->is_named && !c->closing && clock_ns() - c->looked_up_ns >= LOOK_UP_AGAIN_NS)
		look_up(c);
}

/* The caller holds a reference, since a request that fails at once may end in the client's being freed. */
static void pump(struct kube_client *c)
{
	struct kube_request *r;

	if (c->closing || TAILQ_EMPTY(&c->waiting))
		return;
	if (!c->channel) {
		look_up(c);
		return;
	}
	while (!c->closing && (r = TAILQ_FIRST(&c->waiting))) {
		uint64_t wait_ns = kube_bucket_take(&c->bucket, clock_ns());

		if (wait_ns > 0) {
			loop_timer_set(c->pump, wait_ns / NS_PER_MS + 1, 0);
			break;
		}
		kube_request_start(r);
	}
}

void kube_client_pump(struct kube_client *c)
{
	c->refs++;
	pump(c);
	kube_client_unref(c);
}

/* Begun by the timer, since a request that cannot be sent ends at once. */
struct kube_request *kube_client_call(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user)
{
	struct kube_request *r = kube_request_new(c, call, fn, user);

	if (c->closing && c->channel)
		kube_request_start(r);
	else if (!c->closing && TAILQ_FIRST(&c->waiting) == r)
		loop_timer_set(c->pump, 0, 0);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/json_members.h"
#include "kube/token.h"
#include "net/http2/h2_channel.h"
#include "pacing/bucket.h"

/* A name is not looked up more often. */
#define LOOK_UP_AGAIN_NS (10 * NS_PER_S)

/* client-go, rest/transport.go: HTTP2_READ_IDLE_TIMEOUT_SECONDS. The API server does not count pings. */
#define PING_MS 30000

/* client-go rest/with_retry.go */
#define MAX_TRIES 10

/* Limit for the text of a failed reply in error messages, if it is not a Status object. */
#define MAX_SHOWN_BYTES 512

/* A reply that is kept whole, and what is kept of one that reports a failure. */
#define MAX_REPLY_BYTES   (4u << 20)
#define MAX_FAILURE_BYTES (64u << 10)

/* A request waits for its turn, is with the server, or waits out a Retry-After. */
enum stage { WAITING, RUNNING, PAUSED };

TAILQ_HEAD(kube_requests, kube_request);

struct kube_request {
	TAILQ_ENTRY(kube_request) entry; /* in the client's list of its stage */
	struct kube_client *client;
	enum stage stage;
	char *verb;
	char *what;
	char *method;
	char *path;
	char *accept;
	char *content_type;
	struct buf body;
	bool (*on_data)(void *user, struct span data);
	void (*on_begin)(void *user);
	kube_reply_fn fn; /* NULL: cancelled */
	void *user;
	uint64_t deadline_ns;
	struct loop_timer *timer; /* deadline; NULL: none */
	struct loop_timer *pause; /* end of a Retry-After */

	/* of the try that runs */
	struct h2_request *h2;
	uint64_t started_ns;
	unsigned status; /* 0: no header block yet */
	uint64_t retry_after_ms;
	bool has_retry_after;
	bool observed;
	struct buf reply;

	unsigned tries;
	bool token_tried; /* after a 401 */
};

struct kube_client {
	struct kube_client_config config;
	char *user_agent;
	struct tls_context *tls;
	struct h2_channel *channel; /* NULL: the server's name was not looked up yet */
	struct loop_lookup *lookup; /* runs */
	uint64_t looked_up_ns;
	bool is_named; /* the server has a name, not an address */
	struct kube_token token;
	struct bucket bucket;
	struct loop_timer *pump;
	struct kube_requests waiting; /* in order */
	struct kube_requests running;
	struct kube_requests paused;
	size_t refs; /* of requests, and of its owner: what free() ends may make new ones */
	bool closing;
};

static enum err_code code_of(const char *verb, unsigned status)
{
	switch (status) {
	case 400:
	case 422:
		return ERR_INVALID_ARGUMENT;
	case 401:
		return ERR_UNAUTHENTICATED;
	case 403:
		return ERR_PERMISSION;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return str_eq(verb, "create") ? ERR_EXISTS : ERR_ABORTED;
	case 410:
		return ERR_RANGE;
	case 429:
		return ERR_UNAVAILABLE;
	default:
		return status >= 500 ? ERR_UNAVAILABLE : ERR_UNKNOWN;
	}
}

static int read_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "message"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

/* Return: caller frees. */
static char *message_of(struct span body)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(body);
	CLEANUP(error_freep) struct error *err = NULL;
	char *message = NULL;

	if (kube_read_object(r, read_member, &message, &err) == 0 && !str_empty(message))
		return message;
	free(message);
	return x_strndup(
		body.n > 0 ? (const char *)body.p : "", body.n < MAX_SHOWN_BYTES ? body.n : MAX_SHOWN_BYTES);
}

static void pump(void *user);

static void client_unref(struct kube_client *c)
{
	if (--c->refs > 0)
		return;
	tls_context_unref(c->tls);
	kube_token_done(&c->token);
	free(c->user_agent);
	free(c);
}

static struct kube_requests *list_of(struct kube_client *c, enum stage stage)
{
	switch (stage) {
	case WAITING:
		return &c->waiting;
	case RUNNING:
		return &c->running;
	case PAUSED:
		break;
	}
	return &c->paused;
}

static void take_out(struct kube_request *r)
{
	TAILQ_REMOVE(list_of(r->client, r->stage), r, entry);
}

static void set_stage(struct kube_request *r, enum stage stage)
{
	take_out(r);
	r->stage = stage;
	TAILQ_INSERT_TAIL(list_of(r->client, stage), r, entry);
}

/* @r is in no list any more. */
static void request_free(struct kube_request *r)
{
	loop_timer_close(r->timer);
	loop_timer_close(r->pause);
	free(r->verb);
	free(r->what);
	free(r->method);
	free(r->path);
	free(r->accept);
	free(r->content_type);
	buf_done(&r->body);
	buf_done(&r->reply);
	client_unref(r->client);
	free(r);
}

/* The user may do everything in @fn, also free the client: the request is in none of its lists then. */
static void finish(struct kube_request *r, struct span body, const struct error *error)
{
	kube_reply_fn fn = r->fn;

	take_out(r);
	r->fn = NULL;
	if (fn)
		fn(r->user, r->status, body, error);
	request_free(r);
}

static void fail(struct kube_request *r, enum err_code code, const char *msg)
{
	CLEANUP(error_freep) struct error *err = NULL;

	err_set(&err, code, "kube: %s %s: %s", r->verb, r->what, msg);
	finish(r, (struct span){0}, err);
}

/* A request's function may free the client: the caller holds a reference. */
static void fail_all(struct kube_requests *list, enum err_code code, const char *msg)
{
	struct kube_request *r;

	while ((r = TAILQ_FIRST(list)))
		fail(r, code, msg); /* NOLINT(clang-analyzer-unix.Malloc): take_out() removes it from @list */
}

static bool is_address(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* @endpoints: the addresses of the server, NULL-terminated */
static int open_channel(struct kube_client *c, char *const *endpoints, struct error **err)
{
	const struct h2_channel_config config = {
		.loop = c->config.loop,
		.endpoint = endpoints[0],
		.endpoints = endpoints,
		.tls = c->tls,
		.tls_name = c->config.kube->tls_name,
		.handshakes = c->config.handshakes,
		.reconnect_backoff_ms = c->config.reconnect_backoff_ms,
		.ping_ms = c->config.ping_ms ? c->config.ping_ms : PING_MS,
		.ping_timeout_ms = c->config.ping_timeout_ms,
	};

	return h2_channel_new(&config, &c->channel, err);
}

static void on_looked_up(void *user, char *const *endpoints, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_client *c = user;

	c->lookup = NULL;
	c->refs++;
	if (!error && (c->channel ? h2_channel_set_endpoints(c->channel, endpoints, &err)
				  : open_channel(c, endpoints, &err)) < 0)
		error = err;
	if (!c->channel && error)
		fail_all(&c->waiting, ERR_UNAVAILABLE, error->msg);
	pump(c);
	client_unref(c); /* NOLINT(clang-analyzer-unix.Malloc): the reference that was taken above */
}

static void look_up(struct kube_client *c)
{
	if (c->lookup)
		return;
	c->looked_up_ns = clock_ns();
	c->lookup = loop_look_up(c->config.loop, c->config.kube->host, c->config.kube->port, on_looked_up, c);
}

static void look_up_again(struct kube_client *c)
{
	if (c->is_named && !c->closing && clock_ns() - c->looked_up_ns >= LOOK_UP_AGAIN_NS)
		look_up(c);
}

static void on_timeout(void *user)
{
	struct kube_request *r = user;

	if (r->stage == RUNNING)
		h2_request_cancel(r->h2, ERR_DEADLINE, "no answer within the time limit");
	else
		fail(r, ERR_DEADLINE, "not sent within the time limit");
}

static struct kube_request *request_new(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user)
{
	struct kube_request *r = x_calloc(1, sizeof(*r));

	c->refs++;
	r->client = c;
	r->verb = x_strdup(call->verb);
	r->what = x_strdup(call->what);
	r->method = x_strdup(call->method);
	r->path = x_asprintf("%s%s", c->config.kube->path ? c->config.kube->path : "", call->path);
	r->accept = x_strdup(call->accept ? call->accept : "application/json");
	r->content_type = x_strdup(call->content_type ? call->content_type : "application/json");
	r->body = BUF_INIT(call->body.n);
	buf_add(&r->body, call->body.p, call->body.n);
	r->on_data = call->on_data;
	r->on_begin = call->on_begin;
	r->fn = fn;
	r->user = user;
	r->reply = BUF_INIT(MAX_REPLY_BYTES);
	r->deadline_ns = DEADLINE_NONE;
	if (call->timeout_ms > 0) {
		r->deadline_ns = clock_ns() + call->timeout_ms * NS_PER_MS;
		r->timer = loop_timer_new(c->config.loop, on_timeout, r);
		loop_timer_set(r->timer, call->timeout_ms, 0);
	}
	r->stage = WAITING;
	TAILQ_INSERT_TAIL(&c->waiting, r, entry);
	return r;
}

static void observe(struct kube_request *r)
{
	const struct kube_observer *observer = &r->client->config.observer;
	CLEANUP(free_charp) char *resource = NULL;

	if (r->observed || !observer->ended)
		return;
	r->observed = true;
	resource = x_strndup(r->what, strcspn(r->what, " "));
	observer->ended(observer->user, r->verb, resource, r->status, clock_ns() - r->started_ns);
}

void kube_client_note_skipped(const struct kube_client *c, const char *resource, uint64_t n)
{
	if (c->config.observer.skipped)
		c->config.observer.skipped(c->config.observer.user, resource, n);
}

static bool is_success(unsigned status)
{
	return status >= 200 && status < 300;
}

static void on_headers(void *user, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct kube_request *r = user;

	if (is_trailer)
		return;
	for (size_t i = 0; i < n; i++) {
		if (span_eq(headers[i].name, ":status")) {
			r->status = parse_u32_or(headers[i].value, 0);
		} else if (span_eq(headers[i].name, "retry-after")) {
			r->retry_after_ms = parse_u32_or(headers[i].value, 1) * UINT64_C(1000);
			r->has_retry_after = true;
		}
	}
	if (!is_success(r->status))
		r->reply.max = MAX_FAILURE_BYTES;
	if (str_eq(r->verb, "watch"))
		observe(r);
	if (is_success(r->status) && r->fn && r->on_begin)
		r->on_begin(r->user);
}

/* The body of a failed reply is cut off at its limit; a successful reply that exceeds its limit is refused,
 * because a part of it would be wrong. */
static bool on_data(void *user, struct span data)
{
	struct kube_request *r = user;

	if (!r->fn)
		return false;
	if (is_success(r->status) && r->on_data)
		return r->on_data(r->user, data);
	if (is_success(r->status)) {
		buf_add(&r->reply, data.p, data.n);
		return !r->reply.overflowed;
	}
	if (data.n > r->reply.max - r->reply.len)
		data.n = r->reply.max - r->reply.len;
	buf_add(&r->reply, data.p, data.n);
	return true;
}

static void on_pause_end(void *user)
{
	struct kube_request *r = user;
	struct kube_client *c = r->client;

	set_stage(r, WAITING);
	pump(c);
}

/* Return: whether the same request is worth another try, which is then due after @ret_wait_ms. */
static bool is_retryable(struct kube_request *r, uint64_t *ret_wait_ms)
{
	struct kube_client *c = r->client;
	uint64_t now_ns = clock_ns();

	*ret_wait_ms = 0;
	if (c->closing || !r->fn || r->tries >= MAX_TRIES)
		return false;
	if (r->status == 401 && !r->token_tried) {
		r->token_tried = true;
		return kube_token_refused(&c->token);
	}
	if ((r->status != 429 && r->status != 503) || !r->has_retry_after)
		return false;
	*ret_wait_ms = r->retry_after_ms;
	return r->deadline_ns == DEADLINE_NONE ||
	       (r->deadline_ns > now_ns && r->retry_after_ms * NS_PER_MS < r->deadline_ns - now_ns);
}

static void pause_request(struct kube_request *r, uint64_t wait_ms)
{
	set_stage(r, PAUSED);
	if (!r->pause)
		r->pause = loop_timer_new(r->client->config.loop, on_pause_end, r);
	loop_timer_set(r->pause, wait_ms, 0);
}

/* Return: 0, or -1 with what the server says of the failure. */
static int check_reply(const struct kube_request *r, const struct error *cause, struct error **err)
{
	CLEANUP(free_charp) char *message = NULL;

	if (is_success(r->status) && r->reply.overflowed)
		return err_set(err, ERR_EXHAUSTED, "kube: %s %s: the reply is larger than %u bytes", r->verb,
			r->what, MAX_REPLY_BYTES);
	if (cause && (r->status == 0 || is_success(r->status)))
		return err_set(err, cause->code, "kube: %s %s: %s", r->verb, r->what, cause->msg);
	if (is_success(r->status))
		return 0;
	message = message_of(buf_span(&r->reply));
	return err_set(err, code_of(r->verb, r->status), "kube: %s %s: %u: %.*s", r->verb, r->what, r->status,
		MAX_SHOWN_BYTES, message);
}

static void on_end(void *user, const struct error *cause)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_request *r = user;
	uint64_t wait_ms;

	r->h2 = NULL;
	observe(r);
	/* Nothing would end a try that begins behind the time limit. */
	if (!(cause && cause->code == ERR_DEADLINE) && is_retryable(r, &wait_ms)) {
		pause_request(r, wait_ms);
		return;
	}
	if (r->status == 0 && cause && cause->code == ERR_UNAVAILABLE)
		look_up_again(r->client);
	if (check_reply(r, cause, &err) < 0)
		finish(r, (struct span){0}, err);
	else
		finish(r, buf_span(&r->reply), NULL);
}

static const struct h2_request_events events = {on_headers, on_data, on_end};

static size_t add_headers(const struct kube_request *r, const char *authorization, struct h2_header *headers)
{
	const struct kube_client *c = r->client;
	size_t n = 0;

	headers[n++] = H2_HEADER(":method", r->method);
	headers[n++] = H2_HEADER(":scheme", c->tls ? "https" : "http");
	headers[n++] = H2_HEADER(":authority", h2_channel_authority(c->channel));
	headers[n++] = H2_HEADER(":path", r->path);
	headers[n++] = H2_HEADER("accept", r->accept);
	headers[n++] = H2_HEADER("user-agent", c->user_agent);
	if (authorization)
		headers[n++] = H2_HEADER("authorization", authorization);
	if (r->body.len > 0)
		headers[n++] = H2_HEADER("content-type", r->content_type);
	return n;
}

static void start(struct kube_request *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_client *c = r->client;
	const char *authorization = NULL;
	struct h2_header headers[8];
	int rv = kube_token_get(&c->token, clock_ns(), &authorization, &err);

	set_stage(r, RUNNING);
	r->tries++;
	r->status = 0;
	r->has_retry_after = false;
	r->observed = false;
	r->started_ns = clock_ns();
	buf_reset(&r->reply);
	r->reply.max = MAX_REPLY_BYTES;
	r->h2 = h2_channel_request(
		c->channel, headers, add_headers(r, authorization, headers), buf_span(&r->body), &events, r);
	/* Cancelled before it is sent, so that it ends later, as all requests do. */
	if (rv < 0)
		h2_request_cancel(r->h2, err->code, err->msg);
}

static void start_waiting(struct kube_client *c)
{
	struct kube_request *r;

	while (!c->closing && (r = TAILQ_FIRST(&c->waiting))) {
		uint64_t wait_ns = bucket_take(&c->bucket, clock_ns());

		if (wait_ns > 0) {
			loop_timer_set(c->pump, wait_ns / NS_PER_MS + 1, 0);
			break;
		}
		start(r);
	}
}

/* Begin what may begin. A request that fails at once may end in the client's being freed. */
static void pump(void *user)
{
	struct kube_client *c = user;

	c->refs++;
	if (!c->closing && !TAILQ_EMPTY(&c->waiting)) {
		if (c->channel)
			start_waiting(c);
		else
			look_up(c);
	}
	client_unref(c);
}

/* Begun by the timer, since a request that cannot be sent ends at once. */
struct kube_request *kube_client_call(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user)
{
	struct kube_request *r = request_new(c, call, fn, user);

	if (c->closing && c->channel)
		start(r);
	else if (!c->closing && TAILQ_FIRST(&c->waiting) == r)
		loop_timer_set(c->pump, 0, 0);
	return r;
}

void kube_request_cancel(struct kube_request *r)
{
	if (!r)
		return;
	r->fn = NULL;
	if (r->stage == RUNNING) {
		h2_request_cancel(r->h2, ERR_CANCELLED, "the request was cancelled");
		return;
	}
	take_out(r);
	request_free(r);
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

/* An address needs no look-up, so that an invalid one is reported at once. */
static int set_up_server(struct kube_client *c, struct error **err)
{
	const struct kube_config *kube = c->config.kube;
	CLEANUP(free_charp) char *endpoint = NULL;

	c->is_named = !is_address(kube->host);
	if (c->is_named)
		return 0;
	endpoint =
		x_asprintf(strchr(kube->host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u", kube->host, kube->port);
	return open_channel(c, (char *const[]){endpoint, NULL}, err);
}

/* The token, TLS and the server are set up by the caller. */
static struct kube_client *client_new(const struct kube_client_config *config)
{
	struct kube_client *c = x_calloc(1, sizeof(*c));

	c->config = *config;
	c->refs = 1;
	c->user_agent = x_strdup(config->user_agent ? config->user_agent : "pmem-csi/" PMEM_VERSION);
	c->pump = loop_timer_new(config->loop, pump, c);
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->running);
	TAILQ_INIT(&c->paused);
	bucket_init(&c->bucket, config->qps, config->burst);
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
	/* The first request opens the channel; looking up a numeric address asks no server. */
	sibling->is_named = c->is_named;
	return sibling;
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
	client_unref(c);
}

struct loop *kube_client_loop(const struct kube_client *c)
{
	return c->config.loop;
}

uint64_t kube_client_reconnect_backoff_ms(const struct kube_client *c)
{
	return c->config.reconnect_backoff_ms;
}

const char *kube_client_namespace(const struct kube_client *c)
{
	return c->config.kube->namespace;
}

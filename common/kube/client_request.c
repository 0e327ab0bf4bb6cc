/* SPDX-License-Identifier: Apache-2.0 */
/* One request: sent, tried again where the server says when, ended. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/client_private.h"
#include "kube/failure.h"

/* client-go rest/with_retry.go */
#define MAX_TRIES 10

static struct kube_requests *list_of(struct kube_client *c, enum kube_stage stage)
{
	switch (stage) {
	case KUBE_WAITING:
		return &c->waiting;
	case KUBE_RUNNING:
		return &c->running;
	case KUBE_PAUSED:
		break;
	}
	return &c->paused;
}

static void take_out(struct kube_request *r)
{
	TAILQ_REMOVE(list_of(r->client, r->stage), r, entry);
}

static void set_stage(struct kube_request *r, enum kube_stage stage)
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
	kube_client_unref(r->client);
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

void kube_request_fail(struct kube_request *r, enum err_code code, const char *msg)
{
	CLEANUP(error_freep) struct error *err = NULL;

	err_set(&err, code, "kube: %s %s: %s", r->verb, r->what, msg);
	finish(r, (struct span){0}, err);
}

static void on_timeout(void *user)
{
	struct kube_request *r = user;

	if (r->stage == KUBE_RUNNING)
		h2_request_cancel(r->h2, ERR_DEADLINE, "no answer within the time limit");
	else
		kube_request_fail(r, ERR_DEADLINE, "not sent within the time limit");
}

struct kube_request *kube_request_new(
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
	r->reply = BUF_INIT(KUBE_MAX_REPLY_BYTES);
	r->deadline_ns = DEADLINE_NONE;
	if (call->timeout_ms > 0) {
		r->deadline_ns = clock_ns() + call->timeout_ms * NS_PER_MS;
		r->timer = loop_timer_new(c->config.loop, on_timeout, r);
		loop_timer_set(r->timer, call->timeout_ms, 0);
	}
	r->stage = KUBE_WAITING;
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
		r->reply.max = KUBE_MAX_FAILURE_BYTES;
	if (str_eq(r->verb, "watch"))
		observe(r);
	if (is_success(r->status) && r->fn && r->on_begin)
		r->on_begin(r->user);
}

/* What is too long of a failure's text is left out; a success that is cut off would be none. */
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

	set_stage(r, KUBE_WAITING);
	kube_client_pump(c);
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
	set_stage(r, KUBE_PAUSED);
	if (!r->pause)
		r->pause = loop_timer_new(r->client->config.loop, on_pause_end, r);
	loop_timer_set(r->pause, wait_ms, 0);
}

static int check_reply(const struct kube_request *r, const struct error *cause, struct error **err)
{
	if (is_success(r->status) && r->reply.overflowed)
		return err_set(err, ERR_EXHAUSTED, "kube: %s %s: a reply of more than %u bytes", r->verb,
			r->what, KUBE_MAX_REPLY_BYTES);
	if (cause && (r->status == 0 || is_success(r->status)))
		return err_set(err, cause->code, "kube: %s %s: %s", r->verb, r->what, cause->msg);
	if (!is_success(r->status))
		return kube_failure(r->verb, r->what, r->status, buf_span(&r->reply), err);
	return 0;
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
		kube_client_lost(r->client);
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

void kube_request_start(struct kube_request *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_client *c = r->client;
	const char *authorization = NULL;
	struct h2_header headers[8];
	int rv = kube_token_get(&c->token, clock_ns(), &authorization, &err);

	set_stage(r, KUBE_RUNNING);
	r->tries++;
	r->status = 0;
	r->has_retry_after = false;
	r->observed = false;
	r->started_ns = clock_ns();
	buf_reset(&r->reply);
	r->reply.max = KUBE_MAX_REPLY_BYTES;
	r->h2 = h2_channel_request(
		c->channel, headers, add_headers(r, authorization, headers), buf_span(&r->body), &events, r);
	/* Cancelled before it is sent, so that it ends later, as all requests do. */
	if (rv < 0)
		h2_request_cancel(r->h2, err->code, err->msg);
}

void kube_request_cancel(struct kube_request *r)
{
	if (!r)
		return;
	r->fn = NULL;
	if (r->stage == KUBE_RUNNING) {
		h2_request_cancel(r->h2, ERR_CANCELLED, "the request was given up");
		return;
	}
	take_out(r);
	request_free(r);
}

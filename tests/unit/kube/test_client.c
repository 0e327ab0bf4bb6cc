/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <fcntl.h>

#include "base/mem.h"
#include "fake_api.h"
#include "os/file.h"

static struct fake_api api;
static struct fake_reply reply;
static char *seen; /* what the server saw of the request at hand */

static void open_with(void (*serve)(struct fake_api *a, const struct fake_request *r))
{
	fake_api_open(&api, serve, (struct kube_client_config){0});
}

static void finish(void)
{
	fake_reply_done(&reply);
	free(seen);
	fake_api_close(&api);
}

static void serve_hello(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	free(seen);
	seen = x_asprintf("%s %s %s [%s] %s", r->method, r->path, r->accept, r->authorization, r->body);
	fake_answer(r, "200", "{\"hello\":1}");
}

START_TEST(a_request_is_sent_as_it_was_asked_for)
{
	const struct kube_call call = {.verb = "create",
		.what = "things x",
		.method = "POST",
		.path = "/apis/x",
		.accept = "application/json;as=Table",
		.body = span_of("{\"a\":1}")};

	open_with(serve_hello);
	kube_client_call(api.client, &call, fake_note, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_str_eq(seen, "POST /apis/x application/json;as=Table [] {\"a\":1}");
	ck_assert_uint_eq(reply.status, 200);
	ck_assert_uint_eq(reply.code, 0);
	ck_assert_str_eq(reply.text, "{\"hello\":1}");
	finish();
}
END_TEST

static void serve_status(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, strrchr(r->path, '/') + 1,
		"{\"kind\":\"Status\",\"message\":\"no rule allows\\nit\",\"code\":1}");
}

static void expect(const char *verb, const char *path, enum err_code code, const char *text)
{
	const struct kube_call call = {.verb = verb, .what = "things ns/x", .method = "GET", .path = path};

	kube_client_call(api.client, &call, fake_note, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_msg(reply.code == code, "%s: %s", path, reply.text);
	ck_assert_str_eq(reply.text, text);
	fake_reply_done(&reply);
}

START_TEST(refusals_name_verb_object_and_what_the_server_said)
{
	open_with(serve_status);
	expect("patch", "/403", ERR_PERMISSION, "kube: patch things ns/x: 403: no rule allows it");
	expect("get", "/404", ERR_NOT_FOUND, "kube: get things ns/x: 404: no rule allows it");
	expect("update", "/409", ERR_ABORTED, "kube: update things ns/x: 409: no rule allows it");
	expect("create", "/409", ERR_EXISTS, "kube: create things ns/x: 409: no rule allows it");
	expect("list", "/410", ERR_RANGE, "kube: list things ns/x: 410: no rule allows it");
	expect("create", "/422", ERR_INVALID_ARGUMENT, "kube: create things ns/x: 422: no rule allows it");
	expect("get", "/401", ERR_UNAUTHENTICATED, "kube: get things ns/x: 401: no rule allows it");
	expect("get", "/429", ERR_UNAVAILABLE, "kube: get things ns/x: 429: no rule allows it");
	expect("get", "/500", ERR_UNAVAILABLE, "kube: get things ns/x: 500: no rule allows it");
	finish();
}
END_TEST

static void serve_text(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "502", "<html>bad\ngateway</html>");
}

START_TEST(a_refusal_that_is_no_status_is_shown_as_it_is)
{
	open_with(serve_text);
	expect("get", "/x", ERR_UNAVAILABLE, "kube: get things ns/x: 502: <html>bad gateway</html>");
	finish();
}
END_TEST

static void serve_nothing(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	(void)r;
}

START_TEST(a_request_ends_at_its_time)
{
	open_with(serve_nothing);
	fake_get(&api, "/x", 20, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.code, ERR_DEADLINE);
	ck_assert_ptr_nonnull(strstr(reply.text, "within the time limit"));
	finish();
}
END_TEST

START_TEST(a_request_that_is_cancelled_is_heard_of_no_more)
{
	struct fake_reply other;

	open_with(serve_hello);
	kube_request_cancel(fake_get(&api, "/waits", 0, &other));
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(other.n, 0);
	ck_assert_str_eq(buf_str(&api.log), "GET /x\n");
	finish();
}
END_TEST

START_TEST(a_request_with_the_server_can_be_cancelled)
{
	struct kube_request *r;

	open_with(serve_nothing);
	r = fake_get(&api, "/x", 1000000, &reply);
	fake_until_asked(&api, 1);
	kube_request_cancel(r);
	h2_peer_until_logged(&api.peer, 1, "close 1 8");
	ck_assert_uint_eq(reply.n, 0);
	finish();
}
END_TEST

START_TEST(all_end_when_the_client_is_closed)
{
	struct fake_reply queued = {0};

	fake_api_open(&api, serve_nothing, (struct kube_client_config){.qps = 1, .burst = 1});
	fake_get(&api, "/x", 0, &reply);
	fake_get(&api, "/y", 0, &queued);
	fake_until_asked(&api, 1);
	kube_client_free(TAKE_PTR(api.client));
	ck_assert_uint_eq(reply.code, ERR_CANCELLED);
	ck_assert_uint_eq(queued.code, ERR_CANCELLED);
	fake_reply_done(&queued);
	finish();
}
END_TEST

static void free_client(void *user, unsigned status, struct span body, const struct error *error)
{
	kube_client_free(TAKE_PTR(api.client));
	fake_note(user, status, body, error);
}

START_TEST(the_client_may_be_freed_when_a_request_ends)
{
	const struct kube_call call = {.verb = "get", .what = "x", .method = "GET", .path = "/x"};
	struct fake_reply other = {0};

	fake_api_open(&api, serve_hello, (struct kube_client_config){.qps = 1, .burst = 1});
	kube_client_call(api.client, &call, free_client, &reply);
	kube_client_call(api.client, &call, fake_note, &other);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.status, 200);
	ck_assert_uint_eq(other.code, ERR_CANCELLED);
	fake_reply_done(&other);
	finish();
}
END_TEST

START_TEST(the_client_may_be_freed_when_a_request_ends_that_was_never_sent)
{
	const struct kube_call call = {
		.verb = "get", .what = "x", .method = "GET", .path = "/x", .timeout_ms = 1};
	struct fake_reply first = {0};

	fake_api_open(&api, serve_nothing, (struct kube_client_config){.qps = 1, .burst = 1});
	fake_get(&api, "/first", 0, &first);
	fake_until_asked(&api, 1);
	kube_client_call(api.client, &call, free_client, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.n, 1);
	ck_assert_uint_eq(reply.code, ERR_DEADLINE);
	ck_assert_uint_eq(first.code, ERR_CANCELLED);
	fake_reply_done(&first);
	finish();
}
END_TEST

static void serve_much(struct fake_api *a, const struct fake_request *r)
{
	static char blanks[(1u << 20) + 1];

	(void)a;
	memset(blanks, ' ', sizeof(blanks) - 1);
	fake_begin(r);
	for (unsigned i = 0; i < 5; i++)
		fake_say(r, blanks);
	fake_end(r);
}

START_TEST(a_reply_that_is_too_long_is_refused)
{
	open_with(serve_much);
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.code, ERR_EXHAUSTED);
	finish();
}
END_TEST

static void serve_cut(struct fake_api *a, const struct fake_request *r)
{
	fake_begin(r);
	fake_say(r, "{\"half");
	h2_peer_cut(h2_peer_conn(&a->peer, a->peer.n_conns));
}

START_TEST(a_reply_that_is_cut_off_is_no_success)
{
	open_with(serve_cut);
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.code, ERR_UNAVAILABLE);
	finish();
}
END_TEST

struct observed {
	struct buf log;
};

static void note_ended(void *user, const char *verb, const char *resource, unsigned code, uint64_t took_ns)
{
	struct observed *o = user;

	(void)took_ns;
	buf_addf(&o->log, "%s %s %u\n", verb, resource, code);
}

START_TEST(requests_are_observed)
{
	struct observed o = {BUF_INIT(256)};

	fake_api_open(&api, serve_status,
		(struct kube_client_config){.observer = {.ended = note_ended, .user = &o}});
	fake_get(&api, "/404", 0, &reply);
	fake_reply_wait(&api, &reply);
	h2_peer_close(&api.peer);
	fake_reply_done(&reply);
	fake_get(&api, "/404", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.code, ERR_UNAVAILABLE);
	ck_assert_str_eq(buf_str(&o.log), "get things 404\nget things 0\n");
	h2_peer_open(&api.peer, api.loop, "tcp://127.0.0.1:0", NULL);
	buf_done(&o.log);
	finish();
}
END_TEST

TMPDIR_MAIN("kube/client", a_request_is_sent_as_it_was_asked_for,
	refusals_name_verb_object_and_what_the_server_said, a_refusal_that_is_no_status_is_shown_as_it_is,
	a_request_ends_at_its_time, a_request_that_is_cancelled_is_heard_of_no_more,
	a_request_with_the_server_can_be_cancelled, all_end_when_the_client_is_closed,
	the_client_may_be_freed_when_a_request_ends,
	the_client_may_be_freed_when_a_request_ends_that_was_never_sent, a_reply_that_is_too_long_is_refused,
	a_reply_that_is_cut_off_is_no_success, requests_are_observed)

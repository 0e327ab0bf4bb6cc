/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that the server refuses at first and accepts later, tokens, and limits of rates. */
#include "kube/client.h"

#include "base/mem.h"
#include "base/str.h"
#include "fake_api.h"
#include "os/file.h"

static struct fake_api api;
static struct fake_reply reply;
static const char *refusal;
static char *tokens;

static void serve_second_time(struct fake_api *a, const struct fake_request *r)
{
	if (a->n == 1)
		fake_answer_later(r, refusal, "0");
	else
		fake_answer(r, "200", "ok");
}

static void is_tried_again_after(const char *status)
{
	refusal = status;
	fake_api_open(&api, serve_second_time, (struct kube_client_config){0});
	fake_get(&api, "/x", 1000000, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_str_eq(reply.text, "ok");
	ck_assert_uint_eq(api.n, 2);
	fake_reply_done(&reply);
	fake_api_close(&api);
}

START_TEST(what_the_server_wants_later_is_tried_later)
{
	is_tried_again_after("429");
	is_tried_again_after("503");
}
END_TEST

static void serve_later(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer_later(r, "429", str_eq(r->path, "/long") ? "3600" : "0");
}

START_TEST(later_than_the_time_limit_is_never)
{
	fake_api_open(&api, serve_later, (struct kube_client_config){0});
	fake_get(&api, "/long", 1000000, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.code, ERR_UNAVAILABLE);
	ck_assert_uint_eq(api.n, 1);
	fake_reply_done(&reply);
	fake_api_close(&api);
}
END_TEST

START_TEST(tries_come_to_an_end)
{
	fake_api_open(&api, serve_later, (struct kube_client_config){0});
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.status, 429);
	ck_assert_uint_eq(api.n, 10);
	fake_reply_done(&reply);
	fake_api_close(&api);
}
END_TEST

START_TEST(a_request_that_waits_for_later_can_be_cancelled)
{
	struct kube_request *r;

	fake_api_open(&api, serve_later, (struct kube_client_config){0});
	r = fake_get(&api, "/long", 0, &reply);
	fake_until_asked(&api, 1);
	h2_peer_rounds(&api.peer);
	kube_request_cancel(r);
	ck_assert_uint_eq(reply.n, 0);
	fake_api_close(&api);
}
END_TEST

static void write_token(const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;

	ASSERT_OK(dir_open(tmpdir, false, 0, &dir_fd, &err));
	ASSERT_OK(file_write_atomic(dir_fd, "token", span_of(text), 0600, &err));
}

static void open_with_token_file(void (*serve)(struct fake_api *a, const struct fake_request *r))
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_client_config config = {.reconnect_backoff_ms = 1};

	fake_api_open(&api, serve, config);
	kube_client_free(api.client);
	config.loop = api.loop;
	config.kube = &api.config;
	api.config.token_file = x_asprintf("%s/token", tmpdir);
	ASSERT_OK(kube_client_new(&config, &api.client, &err));
}

static void close_with_token_file(void)
{
	fake_reply_done(&reply);
	free(tokens);
	tokens = NULL;
	free(api.config.token_file);
	fake_api_close(&api);
}

static void serve_by_token(struct fake_api *a, const struct fake_request *r)
{
	char *more = x_asprintf("%s[%s]", tokens ? tokens : "", r->authorization);

	(void)a;
	free(tokens);
	tokens = more;
	fake_answer(r, str_eq(r->authorization, "Bearer new") ? "200" : "401", "{}");
}

START_TEST(a_token_that_is_refused_is_read_again_once)
{
	write_token("old\n");
	open_with_token_file(serve_by_token);
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.code, ERR_UNAUTHENTICATED);
	fake_reply_done(&reply);
	write_token("new\n");
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.status, 200);
	ck_assert_str_eq(tokens, "[Bearer old][Bearer old][Bearer old][Bearer new]");
	close_with_token_file();
}
END_TEST

static void refuse_without_end(struct fake_api *a, const struct fake_request *r)
{
	const struct h2_header refused = H2_HEADER(":status", "401");

	if (a->n == 1)
		h2_respond(r->side->h2, r->stream, &refused, 1, /* end= */ false);
	else
		fake_answer(r, "200", "ok");
}

START_TEST(nothing_is_tried_again_behind_its_time_limit)
{
	write_token("old");
	open_with_token_file(refuse_without_end);
	fake_get(&api, "/x", 100, &reply);
	fake_reply_wait(&api, &reply);
	/* a machine that is slow gets nothing of the refusal */
	ck_assert(reply.code == ERR_UNAUTHENTICATED || reply.code == ERR_DEADLINE);
	ck_assert_uint_le(api.n, 1);
	close_with_token_file();
}
END_TEST

START_TEST(a_token_stays_in_use_when_its_file_is_gone)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/token", tmpdir);

	write_token("new");
	open_with_token_file(serve_by_token);
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	fake_reply_done(&reply);
	ck_assert_int_eq(unlink(path), 0);
	fake_get(&api, "/x", 0, &reply);
	fake_reply_wait(&api, &reply);
	ck_assert_uint_eq(reply.status, 200);
	close_with_token_file();
}
END_TEST

START_TEST(what_is_no_token_is_not_sent)
{
	static const char *const texts[] = {"", "\n", "two words", "line\nbreak", "\x80"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_token(texts[i]);
		open_with_token_file(serve_by_token);
		fake_get(&api, "/x", 0, &reply);
		fake_reply_wait(&api, &reply);
		ck_assert_uint_eq(reply.code, ERR_UNAUTHENTICATED);
		ck_assert_uint_eq(api.n, 0);
		close_with_token_file();
	}
}
END_TEST

static void serve_ok(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	fake_answer(r, "200", "ok");
}

/* The rate itself: test_bucket.c. */
START_TEST(what_is_beyond_the_rate_waits_in_order)
{
	struct fake_reply replies[5];
	char path[8];

	fake_api_open(&api, serve_ok, (struct kube_client_config){.qps = 100, .burst = 2});
	for (unsigned i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "/%u", i);
		fake_get(&api, path, 0, &replies[i]);
	}
	for (unsigned i = 0; i < 5; i++) {
		fake_reply_wait(&api, &replies[i]);
		ck_assert_str_eq(replies[i].text, "ok");
		fake_reply_done(&replies[i]);
	}
	ck_assert_str_eq(buf_str(&api.log), "GET /0\nGET /1\nGET /2\nGET /3\nGET /4\n");
	fake_api_close(&api);
}
END_TEST

START_TEST(a_request_that_is_not_sent_in_its_time_says_so)
{
	struct fake_reply late;

	fake_api_open(&api, serve_ok, (struct kube_client_config){.qps = 1, .burst = 1});
	fake_get(&api, "/x", 0, &reply);
	fake_get(&api, "/y", 1, &late);
	fake_reply_wait(&api, &late);
	ck_assert_uint_eq(late.code, ERR_DEADLINE);
	ck_assert_ptr_nonnull(strstr(late.text, "not sent"));
	fake_reply_wait(&api, &reply);
	fake_reply_done(&late);
	fake_reply_done(&reply);
	fake_api_close(&api);
}
END_TEST

struct loop_lookup *__real_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user);
struct loop_lookup *__wrap_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user);

static const char *first_address; /* of every name, before its true ones; NULL: none */
static loop_lookup_fn look_up_fn;

static void on_looked_up(void *user, char *const *endpoints, const struct error *error)
{
	CLEANUP(strv_freep) char **all = NULL;

	ck_assert_msg(!error, "%s", error ? error->msg : "");
	if (first_address)
		strv_add(&all, first_address);
	for (size_t i = 0; i < strv_len(endpoints); i++)
		strv_add(&all, endpoints[i]);
	look_up_fn(user, all, NULL);
}

/* The linker puts it in the place of loop_look_up(). */
struct loop_lookup *__wrap_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user)
{
	look_up_fn = fn;
	return __real_loop_look_up(l, host, port, on_looked_up, user);
}

static void is_served_under_a_name(uint64_t reconnect_backoff_ms)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_client_config config = {.reconnect_backoff_ms = reconnect_backoff_ms};

	fake_api_open(&api, serve_ok, config);
	kube_client_free(api.client);
	free(api.config.host);
	api.config.host = x_strdup("localhost");
	config.loop = api.loop;
	config.kube = &api.config;
	ASSERT_OK(kube_client_new(&config, &api.client, &err));
	for (unsigned i = 0; i < 2; i++) {
		fake_get(&api, "/x", 0, &reply);
		fake_reply_wait(&api, &reply);
		ck_assert_str_eq(reply.text, "ok");
		fake_reply_done(&reply);
	}
	fake_api_close(&api);
}

/* The name is looked up, and the address used from then on. */
START_TEST(a_server_may_have_a_name)
{
	is_served_under_a_name(1);
}
END_TEST

START_TEST(a_server_whose_first_address_is_dead_is_found_at_the_next)
{
	first_address = "tcp://127.0.0.1:1";
	is_served_under_a_name(60000);
}
END_TEST

TMPDIR_MAIN("kube/client_retry", what_the_server_wants_later_is_tried_later,
	later_than_the_time_limit_is_never, tries_come_to_an_end,
	a_request_that_waits_for_later_can_be_cancelled, a_token_that_is_refused_is_read_again_once,
	nothing_is_tried_again_behind_its_time_limit, a_token_stays_in_use_when_its_file_is_gone,
	what_is_no_token_is_not_sent, what_is_beyond_the_rate_waits_in_order,
	a_request_that_is_not_sent_in_its_time_says_so, a_server_may_have_a_name,
	a_server_whose_first_address_is_dead_is_found_at_the_next)

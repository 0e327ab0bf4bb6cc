/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are answered later, on real sockets: the client is in this thread, between rounds of the
 * loop. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/http1/http_server.h"
#include "unit/unit.h"

#define MAX_BUFFERED 1000

struct site {
	struct loop *loop;
	struct loop_timer *tick;
	struct http_server *server;
	struct http_call *calls[8]; /* in the order of their arrival */
	size_t n_calls;
	bool at_once;
	bool drained;
	struct buf reply; /* what the client got */
	bool closed;      /* it got the end, too */
};

static void park(void *self, struct http_call *call)
{
	struct site *s = self;
	struct http_reply reply = HTTP_REPLY;

	s->calls[s->n_calls++] = call;
	if (!s->at_once)
		return;
	buf_adds(&reply.body, "at once\n");
	http_call_reply(call, &reply);
}

static void stop(void *user)
{
	loop_stop(user);
}

static void site_open(struct site *s)
{
	static struct http_route routes[] = {
		{.path = "/later", .methods = "POST", .handle_later = park}, {0}};
	CLEANUP(error_freep) struct error *err = NULL;

	*s = (struct site){.reply = BUF_INIT(1 << 20)};
	ASSERT_OK(loop_new(&s->loop, &err));
	s->tick = loop_timer_new(s->loop, stop, s->loop);
	routes[0].self = s;
	const struct http_server_config config = {.loop = s->loop,
		.routes = routes,
		.max_body_bytes = MAX_BUFFERED,
		.max_buffered_bytes = MAX_BUFFERED};
	s->server = http_server_new(&config);
	ASSERT_OK(http_server_listen(s->server, "127.0.0.1:0", NULL, &err));
}

static void run(struct site *s)
{
	loop_timer_set(s->tick, 1, 0);
	loop_run(s->loop);
}

static void site_close(struct site *s)
{
	loop_timer_close(s->tick);
	http_server_free(s->server);
	loop_run(s->loop);
	loop_free(s->loop);
	buf_done(&s->reply);
}

static int dial(const struct site *s)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)http_server_port(s->server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

#define ASK "POST /later?q HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"

/* Until @n requests have come in all. */
static void run_to_calls(struct site *s, size_t n)
{
	while (s->n_calls < n)
		run(s);
}

static void run_to_gone(struct site *s, const struct http_call *call)
{
	while (!http_call_gone(call))
		run(s);
}

static void run_to_drained(struct site *s)
{
	while (!s->drained)
		run(s);
}

/* Until @text has come, or the end when it is NULL. */
static const char *hear(struct site *s, int fd, const char *text)
{
	char in[4096];

	while (text ? !strstr(buf_str(&s->reply), text) : !s->closed) {
		ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);

		if (n > 0)
			buf_add(&s->reply, in, (size_t)n);
		else if (n == 0)
			s->closed = true;
		ck_assert_msg(!text || !s->closed, "closed after <%s>", buf_str(&s->reply));
		run(s);
	}
	return buf_str(&s->reply);
}

static void answer(struct http_call *call, const char *text)
{
	struct http_reply reply = HTTP_REPLY;

	buf_adds(&reply.body, text);
	http_call_reply(call, &reply);
	ck_assert_ptr_null(reply.body.data);
}

static void on_drained(void *user)
{
	struct site *s = user;

	s->drained = true;
}

START_TEST(a_request_is_answered_after_its_handler_has_returned)
{
	struct site s;
	const struct http1_request *request;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK);
	run_to_calls(&s, 1);
	run(&s);
	request = http_call_request(s.calls[0]);
	ck_assert(span_eq(request->method, "POST"));
	ck_assert(span_eq(request->path, "/later"));
	ck_assert(span_eq(request->query, "q"));
	ck_assert(span_eq(request->body, "abc"));
	ck_assert(!http_call_gone(s.calls[0]));
	answer(s.calls[0], "later\n");
	ck_assert_str_eq(hear(&s, fd, "later\n"), "HTTP/1.1 200 OK\r\nContent-Type: text/plain; "
						  "charset=utf-8\r\nContent-Length: 6\r\n\r\nlater\n");
	close(fd);
	site_close(&s);
}
END_TEST

START_TEST(a_request_may_be_answered_at_once)
{
	struct site s;

	site_open(&s);
	s.at_once = true;
	int fd = dial(&s);
	say(fd, ASK ASK);
	run_to_calls(&s, 2);
	ck_assert(strstr(strstr(hear(&s, fd, "at once\nHTTP"), "at once"), "HTTP/1.1 200 OK"));
	close(fd);
	site_close(&s);
}
END_TEST

START_TEST(requests_behind_a_parked_one_wait_for_its_reply)
{
	struct site s;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK ASK);
	run_to_calls(&s, 1);
	run(&s);
	ck_assert_uint_eq(s.n_calls, 1);
	answer(s.calls[0], "first\n");
	run_to_calls(&s, 2);
	answer(s.calls[1], "second\n");
	ck_assert(strstr(hear(&s, fd, "second\n"), "first\nHTTP/1.1 200 OK"));
	close(fd);
	site_close(&s);
}
END_TEST

START_TEST(calls_of_several_peers_are_answered_in_any_order)
{
	struct site s;

	site_open(&s);
	int first = dial(&s);
	say(first, ASK);
	run_to_calls(&s, 1);
	int second = dial(&s);
	say(second, ASK);
	run_to_calls(&s, 2);
	int third = dial(&s);
	say(third, ASK);
	run_to_calls(&s, 3);
	answer(s.calls[1], "two\n");
	hear(&s, second, "two\n");
	answer(s.calls[0], "one\n");
	hear(&s, first, "one\n");
	answer(s.calls[2], "three\n");
	hear(&s, third, "three\n");
	close(first);
	close(second);
	close(third);
	site_close(&s);
}
END_TEST

START_TEST(a_call_outlives_its_peer)
{
	struct site s;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK);
	run_to_calls(&s, 1);
	close(fd);
	run_to_gone(&s, s.calls[0]);
	ck_assert(span_eq(http_call_request(s.calls[0])->body, "abc"));
	answer(s.calls[0], "too late\n");
	site_close(&s);
}
END_TEST

START_TEST(a_call_outlives_the_server)
{
	struct site s;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK);
	run_to_calls(&s, 1);
	http_server_free(s.server);
	s.server = NULL;
	ck_assert(http_call_gone(s.calls[0]));
	ck_assert(span_eq(http_call_request(s.calls[0])->body, "abc"));
	answer(s.calls[0], "too late\n");
	close(fd);
	site_close(&s);
}
END_TEST

START_TEST(draining_waits_for_calls_and_closes_behind_their_replies)
{
	struct site s;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK);
	run_to_calls(&s, 1);
	http_server_drain(s.server, on_drained, &s);
	run(&s);
	ck_assert(!s.drained);
	answer(s.calls[0], "the last\n");
	ck_assert(strstr(hear(&s, fd, NULL), "Connection: close\r\n\r\nthe last\n"));
	run_to_drained(&s);
	close(fd);
	site_close(&s);
}
END_TEST

START_TEST(draining_waits_for_calls_whose_peers_have_gone)
{
	struct site s;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK);
	run_to_calls(&s, 1);
	close(fd);
	run_to_gone(&s, s.calls[0]);
	http_server_drain(s.server, on_drained, &s);
	run(&s);
	ck_assert(!s.drained);
	answer(s.calls[0], "too late\n");
	ck_assert(!s.drained);
	run_to_drained(&s);
	site_close(&s);
}
END_TEST

static void say_body(int fd, size_t bytes)
{
	CLEANUP(free_charp) char *body = x_calloc(1, bytes + 1);
	CLEANUP(free_charp) char *text = NULL;

	memset(body, 'x', bytes);
	text = x_asprintf("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", bytes, body);
	say(fd, text);
}

START_TEST(bodies_of_calls_count_until_they_are_answered)
{
	struct site s;

	site_open(&s);
	int first = dial(&s);
	say_body(first, MAX_BUFFERED - 10);
	run_to_calls(&s, 1);
	int second = dial(&s);
	say_body(second, 11);
	ck_assert(strstr(hear(&s, second, "\r\n\r\n"), "503 Service Unavailable"));
	close(second);
	answer(s.calls[0], "first\n");
	hear(&s, first, "first\n");
	second = dial(&s);
	say_body(second, MAX_BUFFERED);
	run_to_calls(&s, 2);
	answer(s.calls[1], "second\n");
	hear(&s, second, "second\n");
	close(first);
	close(second);
	site_close(&s);
}
END_TEST

START_TEST(a_reply_that_does_not_fit_is_500)
{
	struct http_reply reply = {.body = BUF_INIT(3)};
	struct site s;

	site_open(&s);
	int fd = dial(&s);
	say(fd, ASK);
	run_to_calls(&s, 1);
	buf_adds(&reply.body, "four");
	http_call_reply(s.calls[0], &reply);
	ck_assert(strstr(hear(&s, fd, "\r\n\r\n"), "500 Internal Server Error"));
	close(fd);
	site_close(&s);
}
END_TEST

UNIT_MAIN("http_later", a_request_is_answered_after_its_handler_has_returned,
	a_request_may_be_answered_at_once, requests_behind_a_parked_one_wait_for_its_reply,
	calls_of_several_peers_are_answered_in_any_order, a_call_outlives_its_peer,
	a_call_outlives_the_server, draining_waits_for_calls_and_closes_behind_their_replies,
	draining_waits_for_calls_whose_peers_have_gone, bodies_of_calls_count_until_they_are_answered,
	a_reply_that_does_not_fit_is_500)

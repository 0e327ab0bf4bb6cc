/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server on real sockets: the loop runs here, a client that waits has a thread of its own. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "net/http1/http_server.h"
#include "net/limits.h"
#include "unit/unit.h"

#define MAX_BODY 16

struct site {
	struct loop *loop;
	struct http_server *server;
	bool drained;
	/* the client's */
	const char *input;
	unsigned filler;    /* that many KiB of a header field follow the input */
	bool half_closes;   /* says that nothing more comes */
	const char *expect; /* when that has come, the server is to drain; NULL: it is not */
	struct buf reply;
};

static void add_echo(struct buf *out, const char *name, struct span s)
{
	buf_addf(out, "%s=", name);
	buf_add(out, s.p, s.n);
	buf_addc(out, '\n');
}

static void echo(void *self, const struct http1_request *request, struct http_reply *reply)
{
	reply->content_type = self;
	add_echo(&reply->body, "method", request->method);
	add_echo(&reply->body, "query", request->query);
	add_echo(&reply->body, "body", request->body);
}

static void turn_down(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	reply->status = 503;
	buf_adds(&reply->body, "not now\n");
}

static void flood(void *self, const struct http1_request *request, struct http_reply *reply)
{
	static char junk[1 << 20];

	(void)self;
	(void)request;
	while (!reply->body.overflowed)
		buf_add(&reply->body, junk, sizeof(junk));
}

static char type_of_echo[] = "text/echo";

static const struct http_route routes[] = {
	{.path = "/echo", .methods = "GET, HEAD, POST", .handle = echo, .self = type_of_echo},
	{.path = "/fail", .methods = "GET", .handle = turn_down},
	{.path = "/flood", .methods = "GET", .handle = flood},
	{0},
};

static void site_open(struct site *s)
{
	CLEANUP(error_freep) struct error *err = NULL;

	*s = (struct site){.reply = BUF_INIT(SIZE_MAX)};
	ASSERT_OK(loop_new(&s->loop, &err));
	const struct http_server_config config = {
		.loop = s->loop, .routes = routes, .max_body_bytes = MAX_BODY};
	s->server = http_server_new(&config);
	ASSERT_OK(http_server_listen(s->server, "127.0.0.1:0", NULL, &err));
}

static void on_drained(void *user)
{
	struct site *s = user;

	s->drained = true;
}

static void drain(void *user)
{
	struct site *s = user;

	http_server_drain(s->server, on_drained, s);
}

static void stop(void *user)
{
	struct site *s = user;

	loop_stop(s->loop);
}

static void site_close(struct site *s)
{
	if (!s->drained)
		drain(s);
	/* until nothing is left to wait for */
	loop_run(s->loop);
	ck_assert(s->drained);
	http_server_free(s->server);
	loop_free(s->loop);
	buf_done(&s->reply);
}

static int connect_to(unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	for (size_t n = strlen(text); n > 0;) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		ck_assert_int_gt(sent, 0);
		text += sent;
		n -= (size_t)sent;
	}
}

/* Sends, reads to the end, and then stops the loop. */
static void *client(void *user)
{
	struct site *s = user;
	int fd = connect_to(http_server_port(s->server));
	char kib[1025] = "";
	char in[4096];
	ssize_t n;

	memset(kib, 'x', sizeof(kib) - 1);
	say(fd, s->input);
	for (unsigned i = 0; i < s->filler; i++)
		say(fd, kib);
	if (s->half_closes)
		shutdown(fd, SHUT_WR);
	while ((n = recv(fd, in, sizeof(in), 0)) > 0) {
		buf_add(&s->reply, in, (size_t)n);
		if (s->expect && strstr(buf_str(&s->reply), s->expect)) {
			s->expect = NULL;
			loop_post(s->loop, drain, s);
		}
	}
	ck_assert_msg(n == 0, "the connection was reset");
	close(fd);
	loop_post(s->loop, stop, s);
	return NULL;
}

/* Return: all that came until the server closed the connection. */
static const char *converse(struct site *s, const char *input)
{
	pthread_t thread;

	s->input = input;
	buf_reset(&s->reply);
	ck_assert_int_eq(pthread_create(&thread, NULL, client, s), 0);
	loop_run(s->loop);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	return buf_str(&s->reply);
}

#define LAST(method_target) method_target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define OK_ECHO(length)     "HTTP/1.1 200 OK\r\nContent-Type: text/echo\r\nContent-Length: " length "\r\n"

START_TEST(a_route_is_served_by_its_handler)
{
	struct site s;

	site_open(&s);
	ck_assert_str_eq(converse(&s, LAST("GET /echo?a=b")),
		OK_ECHO("27") "Connection: close\r\n\r\nmethod=GET\nquery=a=b\nbody=\n");
	ck_assert_str_eq(converse(&s, "POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nab"),
		OK_ECHO("27") "Connection: close\r\n\r\nmethod=POST\nquery=\nbody=ab\n");
	site_close(&s);
}
END_TEST

START_TEST(head_has_the_length_but_not_the_body)
{
	struct site s;

	site_open(&s);
	ck_assert_str_eq(converse(&s, LAST("HEAD /echo")), OK_ECHO("25") "Connection: close\r\n\r\n");
	site_close(&s);
}
END_TEST

START_TEST(requests_of_one_connection_are_answered_in_order)
{
	struct site s;

	site_open(&s);
	ck_assert_str_eq(
		converse(&s, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\nPUT / HTTP/1.1\r\nHost: a\r\n\r\n" LAST(
				     "HEAD /echo")),
		OK_ECHO("24") "\r\nmethod=GET\nquery=\nbody=\n"
			      "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n"
			      "Content-Length: 22\r\n\r\nthere is nothing here\n" OK_ECHO(
				      "25") "Connection: close\r\n\r\n");
	site_close(&s);
}
END_TEST

START_TEST(an_unknown_path_is_404_and_another_method_405_with_the_allowed_ones)
{
	struct site s;

	site_open(&s);
	ck_assert(strstr(converse(&s, LAST("GET /ech")), " 404 Not Found\r\n"));
	ck_assert(strstr(converse(&s, LAST("GET /echo/")), " 404 Not Found\r\n"));
	ck_assert(strstr(converse(&s, LAST("GET //echo")), " 404 Not Found\r\n"));
	ck_assert(strstr(converse(&s, LAST("GET /%65cho")), " 404 Not Found\r\n"));
	converse(&s, LAST("DELETE /echo"));
	ck_assert(strstr(buf_str(&s.reply), " 405 Method Not Allowed\r\n"));
	ck_assert(strstr(buf_str(&s.reply), "\r\nAllow: GET, HEAD, POST\r\n"));
	ck_assert(strstr(converse(&s, LAST("HEAD /fail")), "\r\nAllow: GET\r\n"));
	ck_assert(strstr(converse(&s, LAST("OPTIONS *")), " 204 No Content\r\n"));
	site_close(&s);
}
END_TEST

START_TEST(a_handler_says_how_it_went)
{
	struct site s;

	site_open(&s);
	ck_assert_str_eq(converse(&s, LAST("GET /fail")),
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
		"Content-Length: 8\r\nConnection: close\r\n\r\nnot now\n");
	ck_assert(strstr(converse(&s, LAST("GET /flood")), " 500 Internal Server Error\r\n"));
	site_close(&s);
}
END_TEST

START_TEST(a_body_beyond_the_limit_is_refused)
{
	struct site s;

	site_open(&s);
	ck_assert(strstr(converse(&s, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 17\r\n\r\n"),
		" 413 Content Too Large\r\n"));
	site_close(&s);
}
END_TEST

START_TEST(a_peer_that_is_still_sending_hears_the_refusal)
{
	struct site s;

	site_open(&s);
	s.filler = 4096;
	ck_assert(strstr(converse(&s, "GET /echo HTTP/1.1\r\nHost: a\r\nX: "),
		" 431 Request Header Fields Too Large\r\n"));
	site_close(&s);
}
END_TEST

START_TEST(a_peer_that_has_closed_its_side_is_answered)
{
	struct site s;

	site_open(&s);
	s.half_closes = true;
	ck_assert(strstr(converse(&s, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"), "method=GET\n"));
	site_close(&s);
}
END_TEST

START_TEST(draining_closes_a_connection_between_requests)
{
	struct site s;

	site_open(&s);
	s.expect = "method=GET";
	ck_assert_str_eq(converse(&s, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"),
		OK_ECHO("24") "\r\nmethod=GET\nquery=\nbody=\n");
	site_close(&s);
}
END_TEST

START_TEST(draining_refuses_a_request_that_is_not_complete)
{
	struct site s;

	site_open(&s);
	s.expect = "method=GET";
	converse(&s, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP");
	ck_assert(strstr(buf_str(&s.reply), "HTTP/1.1 503 Service Unavailable\r\n"));
	ck_assert(strstr(buf_str(&s.reply), "Connection: close\r\n"));
	site_close(&s);
}
END_TEST

START_TEST(addresses_are_written_as_in_go)
{
	static const char *const good[] = {":0", "0.0.0.0:0", "127.0.0.1:0", "localhost:0"};
	static const char *const bad[] = {"", ":", "0", "127.0.0.1", "no-such-host:0", ":http", ":65536",
		"unix:///x", "tcp://127.0.0.1:0", "::1:0"};
	CLEANUP(error_freep) struct error *err = NULL;
	struct site s;

	site_open(&s);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ASSERT_OK(http_server_listen(s.server, good[i], NULL, &err));
		ck_assert_uint_ne(http_server_port(s.server), 0);
		ck_assert(strstr(converse(&s, LAST("GET /echo")), "method=GET"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(
			http_server_listen(s.server, bad[i], NULL, &err), ERR_INVALID_ARGUMENT, "endpoint");
	site_close(&s);
}
END_TEST

UNIT_MAIN("http_server", a_route_is_served_by_its_handler, head_has_the_length_but_not_the_body,
	requests_of_one_connection_are_answered_in_order,
	an_unknown_path_is_404_and_another_method_405_with_the_allowed_ones, a_handler_says_how_it_went,
	a_body_beyond_the_limit_is_refused, a_peer_that_is_still_sending_hears_the_refusal,
	a_peer_that_has_closed_its_side_is_answered, draining_closes_a_connection_between_requests,
	draining_refuses_a_request_that_is_not_complete, addresses_are_written_as_in_go)

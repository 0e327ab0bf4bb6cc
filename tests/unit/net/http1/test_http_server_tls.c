/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server behind TLS: the loop runs here, the client waits in a thread of its own. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "net/http1/http_server.h"
#include "unit/net/tls/certs.h"

struct site {
	struct loop *loop;
	struct handshakes *handshakes;
	struct http_server *server;
	/* the client's */
	int fd;
	struct tls *tls;
	size_t filler; /* that many bytes of a header field, which never ends */
	struct buf reply;
	bool closed; /* by a close_notify */
};

static void hello(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	buf_adds(&reply->body, "hello\n");
}

static const struct http_route routes[] = {{.path = "/", .methods = "GET", .handle = hello}, {0}};

static void site_open(struct site *s)
{
	const struct certs_choice server = {
		.role = TLS_SERVER, .leaf = "own/pmem-registry", .alpn = "http/1.1"};
	CLEANUP(tls_context_unrefp) struct tls_context *tls = certs_context(&server);
	CLEANUP(error_freep) struct error *err = NULL;

	*s = (struct site){.reply = BUF_INIT(SIZE_MAX)};
	ASSERT_OK(loop_new(&s->loop, &err));
	s->handshakes = handshakes_new(s->loop);
	const struct http_server_config config = {
		.loop = s->loop, .handshakes = s->handshakes, .routes = routes};
	s->server = http_server_new(&config);
	ASSERT_OK(http_server_listen(s->server, "127.0.0.1:0", tls, &err));
}

static void on_drained(void *user)
{
	(void)user;
}

static void site_close(struct site *s)
{
	http_server_drain(s->server, on_drained, NULL);
	loop_run(s->loop);
	handshakes_free(s->handshakes);
	http_server_free(s->server);
	loop_free(s->loop);
	buf_done(&s->reply);
}

static void dial(struct site *s)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)http_server_port(s->server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(s->fd, 0);
	ck_assert_int_eq(connect(s->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
}

static void send_all(struct site *s, struct buf *out)
{
	while (out->len > 0) {
		ssize_t n = send(s->fd, out->data, out->len, MSG_NOSIGNAL);

		ck_assert_int_gt(n, 0);
		buf_consume(out, (size_t)n);
	}
}

static void shake_hands(struct site *s)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 20);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(error_freep) struct error *err = NULL;
	bool done = false;
	char some[4096];

	for (;;) {
		ASSERT_OK(tls_handshake(s->tls, &in, &out, &done, &err));
		send_all(s, &out);
		if (done)
			break;
		ssize_t n = recv(s->fd, some, sizeof(some), 0);
		ck_assert_int_gt(n, 0);
		buf_add(&in, some, (size_t)n);
	}
	ck_assert_uint_eq(in.len, 0);
}

static void say(struct site *s, struct span text)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(tls_write(s->tls, text, &out, &err));
	send_all(s, &out);
}

static void hear(struct site *s, struct span in)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint8_t plain[4096];
	size_t n;

	do {
		ASSERT_OK(tls_read(s->tls, &in, plain, sizeof(plain), &n, &s->closed, &err));
		buf_add(&s->reply, plain, n);
	} while (n > 0);
}

static void stop(void *user)
{
	struct site *s = user;

	loop_stop(s->loop);
}

static void *client(void *user)
{
	static const uint8_t filler[1024] = {[0 ... 1023] = 'x'};
	struct site *s = user;
	uint8_t some[4096];
	ssize_t n;

	dial(s);
	shake_hands(s);
	say(s, span_of("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: "));
	for (size_t i = 0; i < s->filler; i += sizeof(filler))
		say(s, (struct span){filler, sizeof(filler)});
	if (s->filler == 0)
		say(s, span_of("y\r\n\r\n"));
	while ((n = recv(s->fd, some, sizeof(some), 0)) > 0)
		hear(s, (struct span){some, (size_t)n});
	ck_assert_msg(n == 0, "the connection was reset");
	close(s->fd);
	loop_post(s->loop, stop, s);
	return NULL;
}

/* Return: all that came until the server closed the connection. */
static const char *converse(struct site *s)
{
	const struct certs_choice own = {.role = TLS_CLIENT, .ca = "own", .alpn = "http/1.1"};
	CLEANUP(tls_context_unrefp) struct tls_context *context = certs_context(&own);
	CLEANUP(tls_freep) struct tls *tls = tls_new(context, "pmem-registry");
	pthread_t thread;

	s->tls = tls;
	ck_assert_int_eq(pthread_create(&thread, NULL, client, s), 0);
	loop_run(s->loop);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	return buf_str(&s->reply);
}

START_TEST(a_request_is_answered_and_the_end_is_said)
{
	struct site s;

	site_open(&s);
	ck_assert_str_eq(converse(&s),
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n"
		"Connection: close\r\n\r\nhello\n");
	ck_assert(s.closed);
	site_close(&s);
}
END_TEST

START_TEST(a_peer_that_is_still_sending_hears_the_refusal_and_the_end)
{
	struct site s;

	site_open(&s);
	s.filler = 1 << 20;
	ck_assert(strstr(converse(&s), " 431 Request Header Fields Too Large\r\n"));
	ck_assert(s.closed);
	site_close(&s);
}
END_TEST

CERTS_MAIN("http_server_tls", a_request_is_answered_and_the_end_is_said,
	a_peer_that_is_still_sending_hears_the_refusal_and_the_end)

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and replies of a correct peer. */
#include "base/clock.h"
#include "http1_peer.h"
#include "net/http1/http1.h"
#include "net/limits.h"
#include "unit/unit.h"

struct exchange {
	const char *in;
	const char *log;
	const char *out;
	bool done;
};

#define CLOSING_HI                                                                                           \
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n"
#define KEPT_HI                                                                                              \
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: "                   \
	"keep-alive\r\n\r\nhi\n"
#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

static const struct exchange exchanges[] = {
	{HTTP1_GET, "GET /\n", HTTP1_HI, false},
	{"GET /a/b?c=d&e HTTP/1.1\r\nhOsT:\ta:80 \r\nX: \xe4\r\nEmpty:\r\n\r\n", "GET /a/b ?c=d&e\n",
		HTTP1_HI, false},
	{"GET /?? HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / ??\n", HTTP1_HI, false},
	{"GET http://h:1/p?q HTTP/1.1\r\nHost: other\r\n\r\n", "GET /p ?q\n", HTTP1_HI, false},
	{"GET HTTPS://h HTTP/1.1\r\nHost:\r\n\r\n", "GET /\n", HTTP1_HI, false},
	{"GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET / ?q\n", HTTP1_HI, false},
	{"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS *\n", HTTP1_HI, false},
	{"DELETE /x HTTP/1.9\r\nHost: a\r\n\r\n", "DELETE /x\n", HTTP1_HI, false},
	{"\r\n\r\n" HTTP1_GET "\r\n", "GET /\n", HTTP1_HI, false},
	/* bodies */
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "POST / abc\n", HTTP1_HI, false},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 003 \r\n\r\nabc" HTTP1_GET, "POST / abc\nGET /\n",
		HTTP1_HI HTTP1_HI, false},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" HTTP1_GET, "POST /\nGET /\n",
		HTTP1_HI HTTP1_HI, false},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
	 "2\r\nab\r\n00a;x=y\r\n\r\n34567\r\n0\r\n0\r\nTrailer: x\r\n\r\n" HTTP1_GET,
		"POST / ab\r\n34567\r\n0\nGET /\n", HTTP1_HI HTTP1_HI, false},
	{"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET /\n", HTTP1_HI,
		false},
	/* expectations */
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\na", "POST / a\n",
		CONTINUE HTTP1_HI, false},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n",
		"POST /\n", CONTINUE HTTP1_HI, false},
	{"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "GET /\n", HTTP1_HI, false},
	{"POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\na", "POST / a\n", CLOSING_HI,
		true},
	/* whether the connection stays */
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" HTTP1_GET, "GET /\n", CLOSING_HI, true},
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, Close\r\n\r\n", "GET /\n", CLOSING_HI, true},
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "GET /\n", HTTP1_HI, false},
	{"GET / HTTP/1.0\r\n\r\n", "GET /\n", CLOSING_HI, true},
	{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" HTTP1_GET, "GET /\nGET /\n", KEPT_HI HTTP1_HI,
		false},
	{"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "GET /\n", CLOSING_HI, true},
	/* another protocol is not offered */
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
	 "HTTP2-Settings: AAMAAABk\r\n\r\n" HTTP1_GET,
		"GET /\nGET /\n", HTTP1_HI HTTP1_HI, false},
	{"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab",
		"POST / ab\n", HTTP1_HI, false},
};

static void check_exchange(const struct exchange *e, struct http1_peer *p)
{
	ck_assert_str_eq(buf_str(&p->log), e->log);
	ck_assert_str_eq(buf_str(&p->out), e->out);
	ck_assert_int_eq(http1_is_done(p->http1), e->done);
	http1_peer_done(p);
}

START_TEST(a_request_is_understood_however_it_is_cut)
{
	const struct exchange *e = &exchanges[_i];
	struct http1_peer p;

	http1_peer_init(&p, 100);
	http1_peer_feed(&p, span_of(e->in), 1);
	check_exchange(e, &p);
	for (size_t cut = 0; cut < strlen(e->in); cut++) {
		http1_peer_init(&p, 100);
		http1_peer_feed(&p, (struct span){(const uint8_t *)e->in, cut}, SIZE_MAX);
		http1_peer_say(&p, e->in + cut);
		check_exchange(e, &p);
	}
}
END_TEST

START_TEST(head_gets_the_head_of_the_reply_only)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" HTTP1_GET);
	ck_assert_str_eq(buf_str(&p.log), "HEAD /\nGET /\n");
	ck_assert_str_eq(buf_str(&p.out),
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n" HTTP1_HI);
	http1_peer_done(&p);
}
END_TEST

START_TEST(a_reply_bears_what_it_is_given)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, HTTP1_GET);
	http1_reply(p.http1, 405, NULL, "GET, HEAD", span_of(""));
	http1_peer_say(&p, HTTP1_GET);
	http1_reply(p.http1, 204, NULL, NULL, span_of(""));
	http1_peer_collect(&p);
	ck_assert_str_eq(buf_str(&p.out),
		"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\n\r\n"
		"HTTP/1.1 204 No Content\r\n\r\n");
	http1_peer_done(&p);
}
END_TEST

static void reply_long(struct http1_peer *p, char filler, size_t bytes)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(bytes);
	uint8_t *at = buf_reserve(&body, bytes);

	memset(at, filler, bytes);
	buf_commit(&body, bytes);
	http1_reply_take(p->http1, 200, NULL, &body);
	ck_assert_ptr_null(body.data);
}

/* The rest of the first one is still to be sent when the second request comes, which waits for that. */
START_TEST(replies_that_are_handed_over_are_sent_whole_and_in_order)
{
	CLEANUP(buf_done) struct buf some = BUF_INIT(LIMIT_OUT_BYTES);
	CLEANUP(error_freep) struct error *err = NULL;
	struct http1_peer p;
	const size_t bytes = 2 * LIMIT_OUT_BYTES - 1000;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, HTTP1_GET);
	reply_long(&p, 'a', bytes);
	ck_assert_uint_eq(p.buffered_bytes, bytes);
	ASSERT_OK(http1_send(p.http1, &some, &err));
	buf_add(&p.out, some.data, some.len);
	ASSERT_OK(http1_receive(p.http1, span_of(HTTP1_GET), &err));
	ck_assert_uint_ne(http1_queued_since_ns(p.http1), 0);
	http1_peer_collect(&p);
	ck_assert_uint_eq(http1_queued_since_ns(p.http1), 0);
	reply_long(&p, 'b', bytes);
	http1_peer_collect(&p);
	ck_assert_uint_eq(p.buffered_bytes, 0);
	ck_assert_uint_eq(
		p.out.len, 2 * (bytes + strlen("HTTP/1.1 200 OK\r\nContent-Length: 523288\r\n\r\n")));
	ck_assert_ptr_null(memchr(p.out.data, 'b', p.out.len / 2));
	ck_assert_ptr_null(memchr(p.out.data + p.out.len / 2, 'a', p.out.len / 2));
	http1_peer_done(&p);
}
END_TEST

START_TEST(of_a_reply_that_is_handed_over_head_gets_the_head)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
	reply_long(&p, 'a', 1000);
	http1_peer_collect(&p);
	ck_assert_str_eq(buf_str(&p.out), "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
	http1_peer_done(&p);
}
END_TEST

START_TEST(a_reply_beyond_the_limit_becomes_an_error)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.reply_bytes = LIMIT_HTTP1_BODY_BYTES + 1;
	http1_peer_say(&p, HTTP1_GET);
	ck_assert_str_eq(buf_str(&p.out), "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
	http1_peer_done(&p);
}
END_TEST

START_TEST(later_requests_wait_for_the_reply)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, HTTP1_GET "GET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 ");
	ck_assert_str_eq(buf_str(&p.log), "GET /\n");
	ck_assert_str_eq(buf_str(&p.out), "");
	http1_reply(p.http1, 200, "text/plain", NULL, span_of("hi\n"));
	http1_peer_collect(&p);
	ck_assert_str_eq(buf_str(&p.log), "GET /\nGET /2\n");
	ck_assert_str_eq(buf_str(&p.out), HTTP1_HI);
	http1_reply(p.http1, 200, "text/plain", NULL, span_of("hi\n"));
	http1_peer_say(&p, "HTTP/1.1\r\nHost: a\r\n\r\n");
	ck_assert_str_eq(buf_str(&p.log), "GET /\nGET /2\nGET /3\n");
	http1_peer_done(&p);
}
END_TEST

/* Whether the connection expires @ms after an event that happened between @begin_ns and now, neither earlier
 * nor later. */
static bool expires_after(const struct http1_peer *p, uint64_t begin_ns, uint64_t ms)
{
	return !http1_has_expired(p->http1, begin_ns + ms * NS_PER_MS) &&
	       http1_has_expired(p->http1, clock_ns() + (ms + 1) * NS_PER_MS);
}

START_TEST(a_slow_request_expires_whatever_trickles_in)
{
	uint64_t begin_ns = clock_ns();
	struct http1_peer p;

	http1_peer_init(&p, 10);
	http1_peer_say(&p, HTTP1_GET "POST / HTTP/1.1\r\n");
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_REQUEST_MS));
	http1_peer_say(&p, "Host: a\r\nContent-Length: 2\r\n\r\n");
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_REQUEST_MS));
	http1_peer_say(&p, "a");
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_REQUEST_MS));
	ck_assert_uint_eq(p.buffered_bytes, 1);
	http1_peer_say(&p, "b");
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_IDLE_MS));
	ck_assert_uint_eq(http1_requests(p.http1), 2);
	ck_assert_uint_eq(p.buffered_bytes, 0);
	http1_peer_done(&p);
}
END_TEST

START_TEST(a_silent_peer_expires_and_so_does_one_that_sends_empty_lines)
{
	uint64_t begin_ns = clock_ns();
	struct http1_peer p;

	http1_peer_init(&p, 0);
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_IDLE_MS));
	http1_peer_say(&p, "\r\n");
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_IDLE_MS));
	http1_peer_say(&p, "\r");
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_REQUEST_MS));
	http1_peer_done(&p);
}
END_TEST

START_TEST(nothing_expires_while_the_peer_waits_for_us)
{
	uint64_t begin_ns = clock_ns();
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, HTTP1_GET);
	ck_assert(!http1_has_expired(p.http1, UINT64_MAX));
	http1_reply(p.http1, 200, NULL, NULL, span_of("x"));
	ck_assert(!http1_has_expired(p.http1, UINT64_MAX));
	http1_peer_collect(&p);
	ck_assert(expires_after(&p, begin_ns, LIMIT_HTTP1_IDLE_MS));
	http1_peer_done(&p);
}
END_TEST

START_TEST(closing_an_idle_connection_ends_it_without_a_word)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, HTTP1_GET);
	http1_close(p.http1);
	ck_assert(http1_is_done(p.http1));
	ck_assert(!http1_lingers(p.http1));
	http1_peer_say(&p, HTTP1_GET);
	ck_assert_str_eq(buf_str(&p.log), "GET /\n");
	http1_peer_done(&p);
}
END_TEST

START_TEST(closing_refuses_a_request_that_is_not_complete)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, "GET / HT");
	http1_close(p.http1);
	ck_assert(!http1_is_done(p.http1));
	http1_peer_collect(&p);
	ck_assert_uint_eq(http1_peer_status(&p), 503);
	ck_assert(http1_is_done(p.http1));
	ck_assert(!http1_lingers(p.http1));
	http1_peer_done(&p);
}
END_TEST

START_TEST(closing_lets_the_current_request_be_answered)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, HTTP1_GET HTTP1_GET);
	http1_close(p.http1);
	ck_assert(!http1_is_done(p.http1));
	http1_reply(p.http1, 200, "text/plain", NULL, span_of("hi\n"));
	http1_peer_collect(&p);
	ck_assert_str_eq(buf_str(&p.out), CLOSING_HI);
	ck_assert_str_eq(buf_str(&p.log), "GET /\n");
	ck_assert(http1_is_done(p.http1));
	http1_peer_done(&p);
}
END_TEST

START_TEST(the_last_reply_lingers_for_a_while)
{
	uint64_t begin_ns = clock_ns();
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, "GET / HTTP/1.0\r\n\r\n");
	ck_assert(http1_lingers(p.http1));
	ck_assert(expires_after(&p, begin_ns, LIMIT_LINGER_MS));
	http1_peer_done(&p);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("http1");
	TCase *tcase = tcase_create("http1");

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, a_request_is_understood_however_it_is_cut, 0, (int)ARRAY_SIZE(exchanges));
	tcase_add_test(tcase, head_gets_the_head_of_the_reply_only);
	tcase_add_test(tcase, a_reply_bears_what_it_is_given);
	tcase_add_test(tcase, replies_that_are_handed_over_are_sent_whole_and_in_order);
	tcase_add_test(tcase, of_a_reply_that_is_handed_over_head_gets_the_head);
	tcase_add_test(tcase, a_reply_beyond_the_limit_becomes_an_error);
	tcase_add_test(tcase, later_requests_wait_for_the_reply);
	tcase_add_test(tcase, a_slow_request_expires_whatever_trickles_in);
	tcase_add_test(tcase, a_silent_peer_expires_and_so_does_one_that_sends_empty_lines);
	tcase_add_test(tcase, nothing_expires_while_the_peer_waits_for_us);
	tcase_add_test(tcase, closing_an_idle_connection_ends_it_without_a_word);
	tcase_add_test(tcase, closing_refuses_a_request_that_is_not_complete);
	tcase_add_test(tcase, closing_lets_the_current_request_be_answered);
	tcase_add_test(tcase, the_last_reply_lingers_for_a_while);
	return unit_runner_finish(srunner_create(suite));
}

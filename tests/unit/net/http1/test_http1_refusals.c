/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are refused: malformed ones, ambiguous framing, limits, and random bytes. */
#include <stdlib.h>

#include "base/mem.h"
#include "http1_peer.h"
#include "net/http1/http1.h"
#include "net/limits.h"
#include "unit/unit.h"

#define MAX_BODY 20

struct refusal {
	const char *in;
	unsigned status;
};

#define POST(fields)   "POST / HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define CHUNKED(chunk) POST("Transfer-Encoding: chunked\r\n") chunk

static const struct refusal refusals[] = {
	/* the request line */
	{"GET /\r\n", 400},
	{"GET / \r\n", 400},
	{"GET  / HTTP/1.1\r\n", 400},
	{"GET / HTTP/1.1 \r\n", 400},
	{"GET /  HTTP/1.1\r\n", 400},
	{" GET / HTTP/1.1\r\n", 400},
	{"GET\t/\tHTTP/1.1\r\n", 400},
	{"GET /a b HTTP/1.1\r\n", 400},
	{"GET /\x7f HTTP/1.1\r\n", 400},
	{"GET /\xe4 HTTP/1.1\r\n", 400},
	{"GET /#f HTTP/1.1\r\n", 400},
	{"GET a HTTP/1.1\r\n", 400},
	{"GET * HTTP/1.1\r\n", 400},
	{"GET ftp://h/ HTTP/1.1\r\n", 400},
	{"GET http:/// HTTP/1.1\r\n", 400},
	{"GET http://u@h/ HTTP/1.1\r\n", 400},
	{"GET / http/1.1\r\n", 400},
	{"GET / HTTP/11\r\n", 400},
	{"GET / HTTP/1.10\r\n", 400},
	{"GET / HTTP/0.9\r\n", 505},
	{"GET / HTTP/2.0\r\n", 505},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
	{"CONNECT h:80 HTTP/1.1\r\n", 501},
	{"FROB / HTTP/1.1\r\n", 501},
	{"get / HTTP/1.1\r\n", 501},
	{"G(T / HTTP/1.1\r\n", 400},
	{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
	/* ends of lines */
	{"GET / HTTP/1.1\nHost: a\n\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},
	{"\nGET / HTTP/1.1\r\n", 400},
	/* header fields */
	{"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\n\tfolded\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nA B: c\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\n: c\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7f\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nX\xe4: a\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
	{"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
	{POST("Content-Length: 1\r\nExpect: miracles\r\n"), 417},
	/* where the body ends: every doubt is a way to smuggle a request */
	{POST("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400},
	{POST("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 400},
	{POST("Content-Length: 1\r\nContent-Length: 1\r\n"), 400},
	{POST("Content-Length: 1\r\ncontent-length: 2\r\n"), 400},
	{POST("Content-Length: 1, 1\r\n"), 400},
	{POST("Content-Length: 1 1\r\n"), 400},
	{POST("Content-Length: +1\r\n"), 400},
	{POST("Content-Length: -1\r\n"), 400},
	{POST("Content-Length: 0x1\r\n"), 400},
	{POST("Content-Length: 1.0\r\n"), 400},
	{POST("Content-Length: 1e1\r\n"), 400},
	{POST("Content-Length:\r\n"), 400},
	{POST("Content-Length: 18446744073709551617\r\n"), 400},
	{POST("Content-Length: 99999999999999999999999\r\n"), 400},
	{POST("Content-Length : 1\r\n"), 400},
	{POST("Content-Length: 1\r\n\t2\r\n"), 400},
	{POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
	{POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 501},
	{POST("Transfer-Encoding: chunked, chunked\r\n"), 501},
	{POST("Transfer-Encoding: chunked, identity\r\n"), 501},
	{POST("Transfer-Encoding: gzip, chunked\r\n"), 501},
	{POST("Transfer-Encoding: xchunked\r\n"), 501},
	{POST("Transfer-Encoding: \"chunked\"\r\n"), 501},
	{POST("Transfer-Encoding: chunked;a=b\r\n"), 501},
	{POST("Transfer-Encoding:\r\n"), 501},
	{POST("Transfer-Encoding: chunked\x0b\r\n"), 400},
	{POST("Transfer-Encoding : chunked\r\n"), 400},
	{POST("Transfer\xc2\xa0-Encoding: chunked\r\n"), 400},
	{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	/* chunks */
	{CHUNKED("x\r\n"), 400},
	{CHUNKED("\r\n"), 400},
	{CHUNKED(" 1\r\na\r\n0\r\n\r\n"), 400},
	{CHUNKED("1 \r\na\r\n0\r\n\r\n"), 400},
	{CHUNKED("0x1\r\na\r\n0\r\n\r\n"), 400},
	{CHUNKED("+1\r\na\r\n0\r\n\r\n"), 400},
	{CHUNKED("1\na\r\n0\r\n\r\n"), 400},
	{CHUNKED("1;\n\r\na\r\n0\r\n\r\n"), 400},
	{CHUNKED("1;x\ra\r\n0\r\n\r\n"), 400},
	{CHUNKED("1\r\na0\r\n\r\n"), 400},
	{CHUNKED("1\r\nab\r\n0\r\n\r\n"), 400},
	{CHUNKED("1\r\na\n0\r\n\r\n"), 400},
	{CHUNKED("1\r\na\rX0\r\n\r\n"), 400},
	{CHUNKED("10000000000000001\r\n"), 400},
	{CHUNKED("ffffffffffffffff\r\n"), 400},
	{CHUNKED("0\r\nContent-Length: 1\r\n\r\n"), 400},
	{CHUNKED("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
	{CHUNKED("0\r\nX : y\r\n\r\n"), 400},
	{CHUNKED("0\r\n X: y\r\n\r\n"), 400},
	{CHUNKED("0\r\n\n"), 400},
	/* limits: decided before the body comes */
	{POST("Content-Length: 21\r\n"), 413},
	{POST("Content-Length: 999999999999999999\r\nExpect: 100-continue\r\n"), 413},
	{CHUNKED("15\r\n"), 413},
	{CHUNKED("fffffffffffffff\r\n"), 413},
	{CHUNKED("14\r\n01234567890123456789\r\n1\r\n"), 413},
};

/* Asserts that the request was refused with @status, and that a request behind it on the same connection is
 * not served. */
static void check_refused(struct http1_peer *p, unsigned status)
{
	http1_peer_say(p, HTTP1_GET);
	ck_assert_str_eq(buf_str(&p->log), "");
	ck_assert_uint_eq(http1_peer_status(p), status);
	ck_assert_ptr_eq(strstr(buf_str(&p->out), "\nHTTP/1.1 "), NULL);
	ck_assert_ptr_nonnull(strstr(buf_str(&p->out), "\r\nConnection: close\r\n"));
	ck_assert(http1_is_done(p->http1));
	ck_assert(http1_lingers(p->http1));
	ck_assert_uint_eq(http1_requests(p->http1), 0);
	http1_peer_done(p);
}

START_TEST(it_is_refused_however_it_is_cut)
{
	const struct refusal *r = &refusals[_i];
	struct http1_peer p;

	http1_peer_init(&p, MAX_BODY);
	http1_peer_feed(&p, span_of(r->in), 1);
	check_refused(&p, r->status);
	for (size_t cut = 0; cut < strlen(r->in); cut++) {
		http1_peer_init(&p, MAX_BODY);
		http1_peer_feed(&p, (struct span){(const uint8_t *)r->in, cut}, SIZE_MAX);
		http1_peer_say(&p, r->in + cut);
		check_refused(&p, r->status);
	}
}
END_TEST

START_TEST(a_nul_is_refused_wherever_it_is)
{
	static const char in[] = "POST /abc HTTP/1.1\r\nHost: abc\r\nTransfer-Encoding: chunked\r\n\r\n"
				 "1;ab\r\na\r\n0\r\nTrailer: abc\r\n\r\n";
	const size_t data = (size_t)(strstr(in, "\r\na\r\n") + 2 - in);

	for (size_t at = 0; at < strlen(in); at++) {
		char text[sizeof(in)];
		struct http1_peer p;

		if (at == data)
			continue;
		memcpy(text, in, sizeof(in));
		text[at] = '\0';
		http1_peer_init(&p, MAX_BODY);
		http1_peer_feed(&p, (struct span){(uint8_t *)text, strlen(in)}, SIZE_MAX);
		check_refused(&p, 400);
	}
}
END_TEST

/* A request that fills the header section to the byte: @n bytes with the empty line. */
static void say_headers(struct http1_peer *p, size_t n, size_t chunk)
{
	struct buf in = BUF_INIT(SIZE_MAX);

	buf_adds(&in, "GET / HTTP/1.1\r\nHost: a\r\n");
	while (in.len + 1000 < n)
		buf_addf(&in, "X: %0495d\r\n", 0);
	buf_adds(&in, "Y: ");
	while (in.len + 4 < n)
		buf_adds(&in, "y");
	buf_adds(&in, "\r\n\r\n");
	ck_assert_uint_eq(in.len, n);
	http1_peer_feed(p, buf_span(&in), chunk);
	buf_done(&in);
}

START_TEST(a_header_section_may_have_the_size_of_the_limit)
{
	static const size_t chunks[] = {1, 100, SIZE_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
		struct http1_peer p;

		http1_peer_init(&p, 0);
		say_headers(&p, LIMIT_HEADER_BYTES, chunks[i]);
		ck_assert_str_eq(buf_str(&p.out), HTTP1_HI);
		/* each request by itself */
		say_headers(&p, LIMIT_HEADER_BYTES, chunks[i]);
		ck_assert_str_eq(buf_str(&p.out), HTTP1_HI HTTP1_HI);
		http1_peer_done(&p);

		http1_peer_init(&p, 0);
		say_headers(&p, LIMIT_HEADER_BYTES + 1, chunks[i]);
		check_refused(&p, 431);
	}
}
END_TEST

START_TEST(a_header_section_without_an_end_is_refused_at_the_limit)
{
	struct http1_peer p;
	size_t n = 0;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, "GET / HTTP/1.1\r\n");
	while (p.out.len == 0) {
		http1_peer_say(&p, "X-Header: foobar\r\n");
		n++;
	}
	ck_assert_uint_lt(n, LIMIT_HEADER_BYTES / strlen("X-Header: foobar\r\n") + 1);
	check_refused(&p, 431);
}
END_TEST

START_TEST(a_request_line_without_an_end_is_refused_at_the_limit)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, "GET /");
	for (size_t i = strlen("GET /"); i < LIMIT_HEADER_BYTES; i++)
		http1_peer_say(&p, "a");
	ck_assert_str_eq(buf_str(&p.out), "");
	http1_peer_say(&p, "a");
	check_refused(&p, 414);
}
END_TEST

START_TEST(empty_lines_before_a_request_have_an_end)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	for (size_t i = 0; i <= LIMIT_HEADER_BYTES / 2; i++)
		http1_peer_say(&p, "\r\n");
	check_refused(&p, 414);
}
END_TEST

START_TEST(many_small_chunks_are_fine_but_not_what_surrounds_them)
{
	struct http1_peer p;

	http1_peer_init(&p, LIMIT_HEADER_BYTES);
	http1_peer_say(&p, CHUNKED(""));
	for (size_t i = 0; i < LIMIT_HEADER_BYTES; i++)
		http1_peer_say(&p, "1\r\na\r\n");
	http1_peer_say(&p, "0\r\n\r\n");
	ck_assert_str_eq(buf_str(&p.out), HTTP1_HI);
	http1_peer_done(&p);

	http1_peer_init(&p, LIMIT_HEADER_BYTES);
	http1_peer_say(&p, CHUNKED(""));
	for (size_t i = 0; i < 500 && p.out.len == 0; i++)
		http1_peer_say(&p, "1;extension-that-is-ignored\r\na\r\n");
	check_refused(&p, 431);

	http1_peer_init(&p, 0);
	http1_peer_say(&p, CHUNKED("0\r\n"));
	for (size_t i = 0; i < 1000 && p.out.len == 0; i++)
		http1_peer_say(&p, "Trailer: that is ignored\r\n");
	check_refused(&p, 431);
}
END_TEST

START_TEST(bodies_of_a_server_are_limited_together)
{
	CLEANUP(free_charp) char *data = x_calloc(1, 1 << 20);
	struct http1_peer p;

	http1_peer_init(&p, 2 << 20);
	p.buffered_bytes = LIMIT_BUFFERED_BYTES - (1 << 20);
	http1_peer_say(&p, POST("Content-Length: 1048577\r\n"));
	http1_peer_feed(&p, (struct span){(uint8_t *)data, 1 << 20}, SIZE_MAX);
	ck_assert_uint_eq(p.buffered_bytes, LIMIT_BUFFERED_BYTES);
	http1_peer_say(&p, "x");
	ck_assert_uint_eq(p.buffered_bytes, LIMIT_BUFFERED_BYTES - (1 << 20));
	p.buffered_bytes = 0;
	check_refused(&p, 503);
}
END_TEST

START_TEST(a_refusal_to_head_has_no_body)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, "HEAD / HTTP/1.1\r\n\r\n");
	ck_assert_uint_eq(http1_peer_status(&p), 400);
	ck_assert(strncmp(buf_str(&p.out) + p.out.len - 4, "\r\n\r\n", 4) == 0);
	http1_peer_done(&p);
}
END_TEST

START_TEST(a_refusal_comes_behind_the_replies_before)
{
	struct http1_peer p;

	http1_peer_init(&p, 0);
	http1_peer_say(&p, HTTP1_GET "nonsense\r\n" HTTP1_GET);
	ck_assert_str_eq(buf_str(&p.log), "GET /\n");
	ck_assert(strncmp(buf_str(&p.out), HTTP1_HI, strlen(HTTP1_HI)) == 0);
	ck_assert_uint_eq(http1_peer_status(&p), 400);
	http1_peer_done(&p);
}
END_TEST

START_TEST(requests_that_wait_are_bounded)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *data = x_calloc(1, LIMIT_HTTP1_PIPELINED_BYTES);
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.answers_later = true;
	http1_peer_say(&p, HTTP1_GET);
	http1_peer_feed(&p, (struct span){(uint8_t *)data, LIMIT_HTTP1_PIPELINED_BYTES}, SIZE_MAX);
	ASSERT_FAILS(http1_receive(p.http1, span_of("x"), &err), ERR_UNAVAILABLE, "requests wait");
	http1_peer_done(&p);
}
END_TEST

/* The peer does not read: the replies that wait are bounded, and none is lost. */
START_TEST(replies_that_wait_hold_up_requests)
{
	enum { REPLY_BYTES = 10000, N = 200 };
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf in = BUF_INIT(SIZE_MAX);
	struct http1_peer p;

	http1_peer_init(&p, 0);
	p.reply_bytes = REPLY_BYTES;
	for (int i = 0; i < N; i++)
		buf_adds(&in, HTTP1_GET);
	ASSERT_OK(http1_receive(p.http1, buf_span(&in), &err));
	ck_assert_uint_le(http1_requests(p.http1), LIMIT_OUT_BYTES / REPLY_BYTES + 1);
	http1_peer_collect(&p);
	ck_assert_uint_eq(http1_requests(p.http1), N);
	ck_assert_uint_gt(p.out.len, (size_t)N * REPLY_BYTES);
	http1_peer_done(&p);
}
END_TEST

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Valid requests with a few changed bytes get the same answer, however they are cut into pieces. */
START_TEST(damaged_requests_are_answered_the_same_however_they_are_cut)
{
	static const char *const good[] = {
		(CHUNKED("2;a=b\r\nab\r\n0\r\nT: x\r\n\r\n") HTTP1_GET),
		(POST("Content-Length: 3\r\nExpect: 100-continue\r\n") "abc" HTTP1_GET),
		("GET http://a/b?c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" HTTP1_GET),
	};
	static const char spice[] = "\r\n\0 \t:;,0123456789abcdefxCTEH/*?#\x7f\xff";
	uint32_t state = 42;

	for (int round = 0; round < 2000; round++) {
		char text[256];
		const char *from = good[next_random(&state) % ARRAY_SIZE(good)];
		size_t n = strlen(from);
		struct http1_peer whole;
		struct http1_peer cut;

		memcpy(text, from, n);
		for (uint32_t i = next_random(&state) % 4; i > 0; i--)
			text[next_random(&state) % n] = spice[next_random(&state) % (sizeof(spice) - 1)];
		http1_peer_init(&whole, MAX_BODY);
		http1_peer_init(&cut, MAX_BODY);
		http1_peer_feed(&whole, (struct span){(uint8_t *)text, n}, SIZE_MAX);
		http1_peer_feed(&cut, (struct span){(uint8_t *)text, n}, 1 + next_random(&state) % 9);
		ck_assert_str_eq(buf_str(&whole.log), buf_str(&cut.log));
		ck_assert_str_eq(buf_str(&whole.out), buf_str(&cut.out));
		http1_peer_done(&whole);
		http1_peer_done(&cut);
	}
}
END_TEST

START_TEST(random_bytes_are_refused)
{
	uint32_t state = 4711;

	for (int round = 0; round < 500; round++) {
		uint8_t bytes[512];
		struct http1_peer p;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)next_random(&state);
		http1_peer_init(&p, MAX_BODY);
		http1_peer_feed(&p, (struct span){bytes, sizeof(bytes)}, 1 + next_random(&state) % 50);
		ck_assert_uint_eq(http1_peer_status(&p), 400);
		ck_assert_uint_eq(http1_requests(p.http1), 0);
		http1_peer_done(&p);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("http1_refusals");
	TCase *tcase = tcase_create("http1_refusals");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, it_is_refused_however_it_is_cut, 0, (int)ARRAY_SIZE(refusals));
	tcase_add_test(tcase, a_nul_is_refused_wherever_it_is);
	tcase_add_test(tcase, a_header_section_may_have_the_size_of_the_limit);
	tcase_add_test(tcase, a_header_section_without_an_end_is_refused_at_the_limit);
	tcase_add_test(tcase, a_request_line_without_an_end_is_refused_at_the_limit);
	tcase_add_test(tcase, empty_lines_before_a_request_have_an_end);
	tcase_add_test(tcase, many_small_chunks_are_fine_but_not_what_surrounds_them);
	tcase_add_test(tcase, bodies_of_a_server_are_limited_together);
	tcase_add_test(tcase, a_refusal_to_head_has_no_body);
	tcase_add_test(tcase, a_refusal_comes_behind_the_replies_before);
	tcase_add_test(tcase, requests_that_wait_are_bounded);
	tcase_add_test(tcase, replies_that_wait_hold_up_requests);
	tcase_add_test(tcase, damaged_requests_are_answered_the_same_however_they_are_cut);
	tcase_add_test(tcase, random_bytes_are_refused);
	return unit_runner_finish(srunner_create(suite));
}

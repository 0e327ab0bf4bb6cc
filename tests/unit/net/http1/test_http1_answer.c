/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to requests of ours, whole and in pieces, and what is no answer. */
#include "net/http1/http1_answer.h"

#include <string.h>

#include "base/mem.h"
#include "unit/unit.h"

#define MAX 16

static struct http1_answer *read_in_pieces(const char *text, size_t piece, bool is_end)
{
	struct http1_answer *a = http1_answer_new(MAX);
	struct error *err = NULL;

	for (size_t i = 0; i < strlen(text); i += piece) {
		size_t left = strlen(text) - i;

		ASSERT_OK(http1_answer_receive(
			a, (struct span){(const uint8_t *)text + i, left < piece ? left : piece}, &err));
	}
	if (is_end)
		ASSERT_OK(http1_answer_receive(a, (struct span){0}, &err));
	return a;
}

static void assert_read(const char *text, bool is_end, unsigned status, const char *body)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		CLEANUP(http1_answer_freep) struct http1_answer *a = read_in_pieces(text, piece, is_end);

		ck_assert(http1_answer_is_complete(a));
		ck_assert_uint_eq(http1_answer_status(a), status);
		ck_assert(span_eq(http1_answer_body(a), body));
	}
}

START_TEST(body_ends_where_the_answer_says)
{
	assert_read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 No\r\n", false, 200, "ok");
	assert_read("HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n1\r\n!\r\n0\r\n\r\n",
		false, 500, "no!");
	assert_read("HTTP/1.0 200 OK\r\n\r\nto the end", true, 200, "to the end");
	assert_read("HTTP/1.1 204 OK\r\n\r\n", false, 204, "");
	assert_read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", false, 200,
		"x");
	assert_read(
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
		false, 200, "0123456789");
	assert_read("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, 304, "");
	assert_read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false, 200, "");
}
END_TEST

static void assert_refused(const char *text, enum err_code code, const char *why)
{
	CLEANUP(http1_answer_freep) struct http1_answer *a = http1_answer_new(MAX);
	CLEANUP(error_freep) struct error *err = NULL;

	if (http1_answer_receive(a, span_of(text), &err) == 0)
		(void)!http1_answer_receive(a, (struct span){0}, &err);
	ck_assert_ptr_nonnull(err);
	ck_assert_msg(err->code == code && strstr(err->msg, why), "%s", err->msg);
	ck_assert(!http1_answer_is_complete(a));
}

#define OK "HTTP/1.1 200 OK\r\n"

/* As with requests, in whatever pieces they come: test_http1_refusals.c has every case. */
START_TEST(what_is_no_answer_is_refused)
{
	assert_refused("HTTP/1.1 OK\r\n", ERR_INTERNAL, "malformed status line");
	assert_refused("HTTP/1.1 20 OK\r\n", ERR_INTERNAL, "malformed status line");
	assert_refused("HTTP/1.1 099 OK\r\n", ERR_INTERNAL, "malformed status line");
	assert_refused("HTTP/1.1 2000 OK\r\n", ERR_INTERNAL, "malformed status line");
	assert_refused("HTTP/2.0 200 OK\r\n", ERR_INTERNAL, "only HTTP/1.x");
	assert_refused("HTTP/1.1 200 OK\n", ERR_INTERNAL, "CR and LF");
	assert_refused(OK "A: b\r\n folded\r\n\r\n", ERR_INTERNAL, "malformed header field");
	assert_refused(OK "A : b\r\n\r\n", ERR_INTERNAL, "malformed header field");
	assert_refused(
		OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", ERR_INTERNAL, "more than one");
	assert_refused(OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", ERR_INTERNAL, "more than one");
	assert_refused(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", ERR_INTERNAL, "transfer coding");
	assert_refused(OK "Transfer-Encoding: chunked\r\n\r\n1x\r\na\r\n", ERR_INTERNAL, "chunk size");
	assert_refused(OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", ERR_INTERNAL, "");
	assert_refused(OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", ERR_INTERNAL, "closed");
	assert_refused("SSH-2.0-OpenSSH\r\n", ERR_INTERNAL, "no answer");
	assert_refused("", ERR_INTERNAL, "closed");
	assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", ERR_INTERNAL, "");
	assert_refused("HTTP/1.1 100 Continue\r\n\r\n", ERR_INTERNAL, "closed");
}
END_TEST

/* A peer that sends nothing else would be waited for without an end. */
START_TEST(interim_answers_have_an_end)
{
	CLEANUP(http1_answer_freep) struct http1_answer *a = http1_answer_new(MAX);
	CLEANUP(error_freep) struct error *err = NULL;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < 1000; i++)
		rc = http1_answer_receive(a, span_of("HTTP/1.1 102 Processing\r\n\r\n"), &err);
	ASSERT_FAILS(rc, ERR_INTERNAL, "1xx");
}
END_TEST

START_TEST(large_ones_are_refused)
{
	CLEANUP(http1_answer_freep) struct http1_answer *a = http1_answer_new(MAX);
	CLEANUP(error_freep) struct error *err = NULL;
	int rc;

	assert_refused(
		"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n01234567890123456", ERR_EXHAUSTED, "body");
	assert_refused(OK "\r\n01234567890123456", ERR_EXHAUSTED, "body");
	assert_refused(OK "Transfer-Encoding: chunked\r\n\r\n11\r\n", ERR_EXHAUSTED, "body");
	rc = http1_answer_receive(a, span_of("HTTP/1.1 200 OK\r\n"), &err);
	for (unsigned i = 0; rc == 0 && i < 1000; i++)
		rc = http1_answer_receive(a, span_of("X-Header: 0123456789\r\n"), &err);
	ck_assert_int_eq(rc, -1);
	ck_assert_int_eq(err->code, ERR_EXHAUSTED);
}
END_TEST

UNIT_MAIN("http1_answer", body_ends_where_the_answer_says, what_is_no_answer_is_refused,
	interim_answers_have_an_end, large_ones_are_refused)

/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the HTTP/2 server itself to requests that it refuses. */
#include <string.h>

#include "base/mem.h"
#include "h2_frames.h"
#include "h2_pair.h"
#include "net/http2/h2.h"
#include "unit/unit.h"

#define FIELDS ":method: POST\n:scheme: http\n:path: /a.B/C\n"

/* a request of the client whose header block is one byte too big */
static int32_t post_big(struct h2_pair *p, bool end)
{
	static char value[LIMIT_HEADER_BYTES];
	const struct h2_header headers[] = {
		H2_HEADER(":method", "POST"),
		H2_HEADER(":scheme", "http"),
		H2_HEADER(":path", "/a.B/C"),
		H2_HEADER(":authority", "localhost"),
		{span_of("x"), {(const uint8_t *)value, sizeof(value)}},
	};
	CLEANUP(error_freep) struct error *err = NULL;
	int32_t stream;

	memset(value, 'v', sizeof(value));
	ASSERT_OK(h2_request(p->client.h2, headers, ARRAY_SIZE(headers), end, &stream, &err));
	return stream;
}

START_TEST(a_request_with_too_big_a_header_block_gets_431)
{
	struct h2_pair p;

	h2_pair_init(&p, false, h2_react_echo);
	post_big(&p, true);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "headers 1 :status=431\nend 1\nclose 1 0\n");
	ck_assert_str_eq(buf_str(&p.server.log), "");
	ck_assert_uint_eq(h2_streams(p.server.h2), 0);
	h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("3", "/a.B/C") "end 3\nclose 3 0\n");
	h2_pair_done(&p);
}
END_TEST

START_TEST(the_body_of_such_a_request_is_not_waited_for)
{
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, h2_react_echo);
	stream = post_big(&p, false);
	h2_write(p.client.h2, stream, span_of("body"));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "headers 1 :status=431\nend 1\nclose 1 0\n");
	ck_assert_str_eq(buf_str(&p.server.log), "");
	ck_assert_uint_eq(p.server.body.len, 0);
	h2_pair_done(&p);
}
END_TEST

/* Return: what a server answers to @in after the preface, as text. Caller frees. */
static char *answer(const struct buf *in, bool *ret_done)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(10000);
	struct h2_side server;

	h2_side_init(&server);
	server.h2 = h2_server_new(true, &h2_events_of_sides, &server);
	h2_side_feed(&server, buf_span(in));
	h2_side_collect(&server);
	frames_text(buf_span(&server.out), &text);
	*ret_done = h2_is_done(server.h2);
	h2_side_done(&server);
	return x_strdup(buf_str(&text));
}

#define AUTHORITY ":authority: localhost\n"

START_TEST(a_stream_that_was_passed_over_ends_the_connection)
{
	static const int32_t cases[][4] = {{5, 3}, {5, 1}, {1, 7, 9, 3}, {1, 7, 9, 5}, {3, 9, 1}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buf_done) struct buf in = BUF_INIT(10000);
		CLEANUP(free_charp) char *text = NULL;
		bool done;

		frames_preface(&in);
		for (size_t k = 0; k < 4 && cases[i][k]; k++)
			frames_post(&in, cases[i][k], FIELDS AUTHORITY);
		text = answer(&in, &done);
		/* In the last case the gap that counts is the one before. */
		ck_assert_msg(done == (i < 4), "case %zu: %s", i, text);
		ck_assert_msg(!done || strstr(text, " 1\n"), "%s", text);
		ck_assert_int_eq(!!strstr(text, "GOAWAY"), done);
	}
}
END_TEST

START_TEST(frames_after_the_clients_reset_end_the_connection)
{
	static const enum frame_type types[] = {FRAME_DATA, FRAME_HEADERS};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
		CLEANUP(buf_done) struct buf in = BUF_INIT(10000);
		CLEANUP(free_charp) char *text = NULL;
		bool done;

		frames_preface(&in);
		frames_fields(&block, FIELDS AUTHORITY);
		frames_add(&in, FRAME_HEADERS, FLAG_END_HEADERS, 1, buf_span(&block));
		frames_add(&in, FRAME_RST_STREAM, 0, 1, (struct span){(const uint8_t *)"\0\0\0\x08", 4});
		frames_add(&in, types[i], FLAG_END_HEADERS | FLAG_END_STREAM, 1, buf_span(&block));
		text = answer(&in, &done);
		/* RFC 9113 section 5.1: STREAM_CLOSED */
		ck_assert_ptr_nonnull(strstr(text, "GOAWAY 1 5\n"));
		ck_assert(done);
	}
}
END_TEST

UNIT_MAIN("h2_refusals", a_request_with_too_big_a_header_block_gets_431,
	the_body_of_such_a_request_is_not_waited_for, a_stream_that_was_passed_over_ends_the_connection,
	frames_after_the_clients_reset_end_the_connection)

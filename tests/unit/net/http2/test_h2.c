/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "h2_pair.h"
#include "net/http2/h2.h"
#include "unit/unit.h"

#define BIG_BYTES (900u << 10)

static const struct h2_header ok_headers[] = {{{(const uint8_t *)":status", 7}, {(const uint8_t *)"200", 3}}};

static const char echo_server_log[] = H2_POST_LINE("1", "/a.B/C") "end 1\nclose 1 0\n";
static const char echo_client_log[] = "headers 1 :status=200\ntrailers 1 grpc-status=0\nend 1\nclose 1 0\n";

static void call_echo(struct h2_pair *p)
{
	int32_t stream = h2_pair_post(p, "/a.B/C", false);

	h2_write(p->client.h2, stream, span_of("hello"));
	h2_finish(p->client.h2, stream, NULL, 0);
}

static void assert_echoed(const struct h2_pair *p)
{
	ck_assert_str_eq(buf_str(&p->server.log), echo_server_log);
	ck_assert_str_eq(buf_str(&p->client.log), echo_client_log);
	ck_assert_str_eq(buf_str(&p->server.body), "hello");
	ck_assert_str_eq(buf_str(&p->client.body), "hello");
	ck_assert_uint_eq(h2_streams(p->server.h2), 0);
	ck_assert_uint_eq(h2_streams(p->client.h2), 0);
	ck_assert(!h2_is_done(p->server.h2));
	ck_assert(!h2_is_done(p->client.h2));
}

START_TEST(a_call_has_a_request_a_reply_and_trailers)
{
	struct h2_pair p;

	h2_pair_init(&p, true, h2_react_echo);
	call_echo(&p);
	ck_assert_uint_eq(h2_streams(p.client.h2), 1);
	h2_pair_run(&p);
	assert_echoed(&p);
	h2_pair_done(&p);
}
END_TEST

START_TEST(bytes_may_come_one_at_a_time)
{
	struct h2_pair p;

	h2_pair_init(&p, false, h2_react_echo);
	p.chunk_bytes = 1;
	call_echo(&p);
	h2_pair_run(&p);
	assert_echoed(&p);
	h2_pair_done(&p);
}
END_TEST

START_TEST(bytes_may_be_split_anywhere)
{
	size_t total = SIZE_MAX;

	for (size_t first = 0; first <= total; first++) {
		struct h2_pair p;
		struct span all;

		h2_pair_init(&p, false, h2_react_echo);
		call_echo(&p);
		h2_side_collect(&p.client);
		all = buf_span(&p.client.out);
		total = all.n;
		h2_side_feed(&p.server, (struct span){all.p, first});
		h2_side_collect(&p.server);
		h2_side_feed(&p.server, (struct span){all.p + first, all.n - first});
		buf_reset(&p.client.out);
		h2_pair_run(&p);
		assert_echoed(&p);
		h2_pair_done(&p);
	}
}
END_TEST

START_TEST(large_bodies_pass_the_windows_both_ways_and_trailers_come_last)
{
	CLEANUP(free_charp) char *big = x_malloc(BIG_BYTES);
	struct h2_pair p;
	int32_t stream;

	for (size_t i = 0; i < BIG_BYTES; i++)
		big[i] = (char)(i * 7 + i / 251);
	h2_pair_init(&p, false, h2_react_echo);
	p.chunk_bytes = 1000;
	stream = h2_pair_post(&p, "/a.B/C", false);
	h2_write(p.client.h2, stream, (struct span){(uint8_t *)big, BIG_BYTES});
	h2_finish(p.client.h2, stream, NULL, 0);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), echo_client_log);
	ck_assert_uint_eq(p.client.body.len, BIG_BYTES);
	ck_assert(memcmp(p.client.body.data, big, BIG_BYTES) == 0);
	h2_pair_done(&p);
}
END_TEST

START_TEST(send_gives_about_64_kib_at_a_time)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf small = BUF_INIT(20);
	static uint8_t value[8000];
	const struct h2_header header = {span_of("big"), {value, sizeof(value)}};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	for (int i = 0; i < 20; i++)
		ASSERT_OK(h2_request(p.client.h2, &header, 1, true, &stream, &err));
	h2_side_collect(&p.client);
	ck_assert_uint_ge(p.client.out.len, 64u << 10);
	ck_assert_uint_le(p.client.out.len, (64u << 10) + 9000);
	buf_reset(&p.client.out);
	ASSERT_FAILS(h2_send(p.client.h2, &small, &err), ERR_EXHAUSTED, "HTTP/2 output");
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_reply_may_be_written_bit_by_bit)
{
	const struct h2_header trailers[] = {H2_HEADER("grpc-status", "0")};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_respond(p.server.h2, stream, ok_headers, 1, false);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "headers 1 :status=200\n");
	h2_write(p.server.h2, stream, span_of("one "));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.body), "one ");
	h2_write(p.server.h2, stream, span_of(""));
	h2_write(p.server.h2, stream, span_of("two "));
	h2_write(p.server.h2, stream, span_of("three"));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.body), "one two three");
	h2_respond(p.server.h2, stream, ok_headers, 1, false);
	h2_finish(p.server.h2, stream, trailers, 1);
	h2_write(p.server.h2, stream, span_of(" late"));
	h2_finish(p.server.h2, stream, trailers, 1);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.body), "one two three");
	ck_assert_str_eq(buf_str(&p.client.log), echo_client_log);
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_reply_without_trailers_ends_with_its_body)
{
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_write(p.server.h2, stream, span_of("body before headers"));
	h2_finish(p.server.h2, stream, NULL, 0);
	h2_respond(p.server.h2, stream, ok_headers, 1, false);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "headers 1 :status=200\nend 1\nclose 1 0\n");
	ck_assert_str_eq(buf_str(&p.client.body), "body before headers");
	h2_pair_done(&p);
}
END_TEST

START_TEST(an_empty_body_may_have_trailers)
{
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_reply(p.server.h2, stream, span_of(""));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), echo_client_log);
	ck_assert_uint_eq(p.client.body.len, 0);
	h2_pair_done(&p);
}
END_TEST

START_TEST(trailers_only_is_one_header_block)
{
	const struct h2_header headers[] = {H2_HEADER(":status", "200"), H2_HEADER("grpc-status", "12")};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_respond(p.server.h2, stream, headers, 2, true);
	h2_write(p.server.h2, stream, span_of("too late"));
	h2_finish(p.server.h2, stream, headers, 1);
	h2_respond(p.server.h2, stream, headers, 1, false);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "headers 1 :status=200 grpc-status=12\nend 1\nclose 1 0\n");
	ck_assert_uint_eq(p.client.body.len, 0);
	h2_pair_done(&p);
}
END_TEST

START_TEST(interim_replies_are_skipped)
{
	/* HEADERS of stream 1 with ":status: 103" (never indexed, name index 8), then two of the server's */
	static const uint8_t early_hints[] = {0, 0, 5, 1, 4, 0, 0, 0, 1, 0x08, 3, '1', '0', '3'};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_side_feed(&p.client, (struct span){early_hints, sizeof(early_hints)});
	h2_reply(p.server.h2, stream, span_of("x"));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), echo_client_log);
	h2_pair_done(&p);
}
END_TEST

/* answers from on_headers, which is as early as can be */
static void react_at_once(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_HEADERS)
		h2_reply(side->h2, stream, span_of("early"));
}

START_TEST(an_answer_before_the_end_of_the_request_is_followed_by_a_reset)
{
	CLEANUP(free_charp) char *big = x_calloc(1, BIG_BYTES);
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, react_at_once);
	stream = h2_pair_post(&p, "/a.B/C", false);
	h2_write(p.client.h2, stream, (struct span){(uint8_t *)big, BIG_BYTES});
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.body), "early");
	ck_assert_str_eq(buf_str(&p.client.log), echo_client_log);
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "close 1 0\n");
	ck_assert_uint_lt(p.server.body.len, BIG_BYTES);

	h2_pair_post(&p, "/a.B/D", true);
	h2_pair_run(&p);
	ck_assert_uint_eq(h2_streams(p.server.h2), 0);
	ck_assert_uint_eq(h2_streams(p.client.h2), 0);
	h2_pair_done(&p);
}
END_TEST

START_TEST(an_answer_after_the_end_of_the_request_is_not)
{
	struct h2_pair p;

	h2_pair_init(&p, false, react_at_once);
	h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.log), echo_server_log);
	ck_assert_str_eq(buf_str(&p.client.log), echo_client_log);
	h2_pair_done(&p);
}
END_TEST

static void react_trailers_only(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_DATA)
		h2_respond(side->h2, stream, ok_headers, 1, true);
}

START_TEST(trailers_only_during_the_request_is_followed_by_a_reset)
{
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, react_trailers_only);
	stream = h2_pair_post(&p, "/a.B/C", false);
	h2_write(p.client.h2, stream, span_of("part"));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "headers 1 :status=200\nend 1\nclose 1 0\n");
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "close 1 0\n");
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_client_reset_reaches_the_server_and_drops_the_answer)
{
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_reset(p.client.h2, stream, H2_CANCEL);
	h2_reset(p.client.h2, stream, H2_INTERNAL_ERROR);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 1 8\n");
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "end 1\nclose 1 8\n");
	h2_reply(p.server.h2, stream, span_of("late"));
	h2_reset(p.server.h2, stream, H2_CANCEL);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 1 8\n");
	ck_assert_uint_eq(p.client.body.len, 0);
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_request_reset_before_it_was_sent_never_arrives)
{
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, h2_react_echo);
	stream = h2_pair_post(&p, "/a.B/C", false);
	h2_write(p.client.h2, stream, span_of("hello"));
	h2_reset(p.client.h2, stream, H2_CANCEL);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 1 8\n");
	ck_assert_str_eq(buf_str(&p.server.log), "");
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_server_reset_reaches_the_client_and_drops_what_it_still_sends)
{
	CLEANUP(free_charp) char *big = x_calloc(1, BIG_BYTES);
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", false);
	h2_write(p.client.h2, stream, (struct span){(uint8_t *)big, BIG_BYTES});
	h2_side_collect(&p.client);
	h2_side_feed(&p.server, buf_span(&p.client.out));
	buf_reset(&p.client.out);
	h2_reply(p.server.h2, stream, (struct span){(uint8_t *)big, BIG_BYTES});
	h2_reset(p.server.h2, stream, H2_ENHANCE_YOUR_CALM);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 1 11\n");
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "close 1 11\n");
	h2_pair_done(&p);
}
END_TEST

static void react_reset(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_HEADERS)
		h2_reset(side->h2, stream, H2_REFUSED_STREAM);
}

START_TEST(nothing_but_the_close_follows_a_reset_from_a_callback)
{
	struct h2_pair p;

	h2_pair_init(&p, false, react_reset);
	call_echo(&p);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "close 1 7\n");
	ck_assert_str_eq(buf_str(&p.client.log), "close 1 7\n");
	ck_assert_uint_eq(p.server.body.len, 0);
	h2_pair_done(&p);
}
END_TEST

static void react_reset_at_data(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_DATA)
		h2_reset(side->h2, stream, H2_REFUSED_STREAM);
}

START_TEST(a_reset_also_cuts_off_what_has_already_come)
{
	struct h2_pair p;

	h2_pair_init(&p, false, react_reset);
	h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "close 1 7\n");
	h2_pair_done(&p);

	h2_pair_init(&p, false, react_reset_at_data);
	p.chunk_bytes = 1;
	call_echo(&p);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.log), H2_POST_LINE("1", "/a.B/C") "close 1 7\n");
	ck_assert_str_eq(buf_str(&p.server.body), "h");
	h2_pair_done(&p);
}
END_TEST

/* uses the stream that is just gone in all ways */
static void react_to_close(struct h2_side *side, enum h2_event event, int32_t stream)
{
	h2_react_echo(side, event, stream);
	if (event == H2_ON_CLOSE) {
		ck_assert_uint_eq(h2_streams(side->h2), 0);
		h2_reply(side->h2, stream, span_of("x"));
		h2_reset(side->h2, stream, H2_CANCEL);
	}
}

START_TEST(a_stream_is_unknown_while_its_close_is_reported)
{
	struct h2_pair p;

	h2_pair_init(&p, false, react_to_close);
	p.client.react = react_to_close;
	call_echo(&p);
	h2_pair_run(&p);
	assert_echoed(&p);
	h2_pair_done(&p);
}
END_TEST

START_TEST(more_than_8_mib_unsent_resets_the_stream)
{
	enum { HALF_BYTES = 4 << 20 };
	CLEANUP(free_charp) char *big = x_calloc(1, HALF_BYTES);
	struct span half = {(uint8_t *)big, HALF_BYTES};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_write(p.server.h2, stream, half);
	h2_write(p.server.h2, stream, half);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "");
	h2_write(p.server.h2, stream, span_of("x"));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 1 2\n");
	h2_pair_done(&p);
}
END_TEST

START_TEST(oversized_trailers_and_headers_reset_the_stream)
{
	CLEANUP(free_charp) char *big = x_calloc(1, 100001);
	struct h2_header headers[] = {H2_HEADER(":status", "200"), H2_HEADER("grpc-message", big)};
	struct h2_pair p;
	int32_t stream;

	memset(big, 'x', 100000);
	headers[1].value = (struct span){(uint8_t *)big, LIMIT_HEADER_BYTES};
	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_respond(p.server.h2, stream, headers, 1, false);
	h2_finish(p.server.h2, stream, headers + 1, 1);
	h2_pair_run(&p);
	ck_assert_ptr_nonnull(strstr(buf_str(&p.client.log), "close 1 2\n"));

	buf_reset(&p.client.log);
	headers[1].value.n = 100000;
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_respond(p.server.h2, stream, headers, 2, true);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 3 2\n");

	buf_reset(&p.client.log);
	headers[1].value.n = LIMIT_HEADER_BYTES;
	stream = h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_respond(p.server.h2, stream, headers, 2, true);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "close 5 11\n");
	h2_pair_done(&p);
}
END_TEST

START_TEST(resets_map_as_the_specification_says)
{
	static const enum err_code expected[] = {
		ERR_INTERNAL,    /* NO_ERROR */
		ERR_INTERNAL,    /* PROTOCOL_ERROR */
		ERR_INTERNAL,    /* INTERNAL_ERROR */
		ERR_INTERNAL,    /* FLOW_CONTROL_ERROR */
		ERR_INTERNAL,    /* SETTINGS_TIMEOUT */
		ERR_UNKNOWN,     /* STREAM_CLOSED */
		ERR_INTERNAL,    /* FRAME_SIZE_ERROR */
		ERR_UNAVAILABLE, /* REFUSED_STREAM */
		ERR_CANCELLED,   /* CANCEL */
		ERR_INTERNAL,    /* COMPRESSION_ERROR */
		ERR_INTERNAL,    /* CONNECT_ERROR */
		ERR_EXHAUSTED,   /* ENHANCE_YOUR_CALM */
		ERR_PERMISSION,  /* INADEQUATE_SECURITY */
		ERR_UNKNOWN,     /* HTTP_1_1_REQUIRED */
	};

	for (uint32_t code = 0; code < ARRAY_SIZE(expected); code++)
		ck_assert_int_eq(h2_code_of_reset(code), expected[code]);
	ck_assert_int_eq(h2_code_of_reset(UINT32_MAX), ERR_UNKNOWN);
}
END_TEST

UNIT_MAIN("h2", a_call_has_a_request_a_reply_and_trailers, bytes_may_come_one_at_a_time,
	bytes_may_be_split_anywhere, large_bodies_pass_the_windows_both_ways_and_trailers_come_last,
	send_gives_about_64_kib_at_a_time, a_reply_may_be_written_bit_by_bit,
	a_reply_without_trailers_ends_with_its_body, an_empty_body_may_have_trailers,
	trailers_only_is_one_header_block, interim_replies_are_skipped,
	an_answer_before_the_end_of_the_request_is_followed_by_a_reset,
	an_answer_after_the_end_of_the_request_is_not,
	trailers_only_during_the_request_is_followed_by_a_reset,
	a_client_reset_reaches_the_server_and_drops_the_answer,
	a_request_reset_before_it_was_sent_never_arrives,
	a_server_reset_reaches_the_client_and_drops_what_it_still_sends,
	nothing_but_the_close_follows_a_reset_from_a_callback, a_reset_also_cuts_off_what_has_already_come,
	a_stream_is_unknown_while_its_close_is_reported, more_than_8_mib_unsent_resets_the_stream,
	oversized_trailers_and_headers_reset_the_stream, resets_map_as_the_specification_says)

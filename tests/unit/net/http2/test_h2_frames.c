/* SPDX-License-Identifier: Apache-2.0 */
/* The server with a client that sends frames that nghttp2 as a client would not send. */
#include "h2_frames.h"
#include "h2_pair.h"
#include "net/http2/h2.h"
#include "unit/unit.h"

#define GOOD_FIELDS ":method: POST\n:scheme: http\n:path: /a.B/C\n"
#define GOOD_LINE   "headers %d :method=POST :scheme=http :path=/a.B/C"
#define GREETING    "SETTINGS\nSETTINGS ACK\n"

#define BYTES_MAX (2u << 20)

/* one server, and what is sent to it and comes back */
struct raw {
	struct h2_side server;
	struct buf in;
	struct buf text;
};

static void raw_init(struct raw *r, bool strict_authority)
{
	h2_side_init(&r->server);
	r->server.h2 = h2_server_new(strict_authority, &h2_events_of_sides, &r->server);
	r->server.react = h2_react_echo;
	r->in = BUF_INIT(BYTES_MAX);
	r->text = BUF_INIT(BYTES_MAX);
	frames_preface(&r->in);
}

static void raw_done(struct raw *r)
{
	h2_side_done(&r->server);
	buf_done(&r->in);
	buf_done(&r->text);
}

static void collect(struct raw *r)
{
	do {
		buf_reset(&r->server.out);
		h2_side_collect(&r->server);
		frames_text(buf_span(&r->server.out), &r->text);
	} while (r->server.out.len > 0);
}

static void raw_run(struct raw *r)
{
	ck_assert(!r->in.overflowed);
	h2_side_feed(&r->server, buf_span(&r->in));
	buf_reset(&r->in);
	collect(r);
}

/* after whatever it was: the connection still serves requests */
static void assert_alive(struct raw *r, int32_t stream)
{
	CLEANUP(buf_done) struct buf expected = BUF_INIT(200);

	buf_reset(&r->server.log);
	buf_reset(&r->text);
	frames_post(&r->in, stream, GOOD_FIELDS);
	raw_run(r);
	buf_addf(&expected, GOOD_LINE "\nend %d\nclose %d 0\n", stream, stream, stream);
	ck_assert_str_eq(buf_str(&r->server.log), buf_str(&expected));
	ck_assert(!h2_is_done(r->server.h2));
}

START_TEST(every_form_of_authority_is_taken_on_a_unix_socket)
{
	static const char *const values[] = {"/run/csi.sock", "%2Frun%2Fcsi.sock", "", "localhost",
		"unix:///run/csi.sock", "[::1]:10000", "a b", "\xc3\xa4"};
	CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
	struct raw r;

	raw_init(&r, false);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		CLEANUP(buf_done) struct buf expected = BUF_INIT(1000);
		int32_t stream = (int32_t)(2 * i + 1);

		buf_reset(&block);
		buf_reset(&r.server.log);
		frames_fields(&block, GOOD_FIELDS);
		frames_field(&block, ":authority", span_of(values[i]));
		frames_add(
			&r.in, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, stream, buf_span(&block));
		raw_run(&r);
		buf_addf(&expected, GOOD_LINE " :authority=%s\nend %d\nclose %d 0\n", stream, values[i],
			stream, stream);
		ck_assert_str_eq(buf_str(&r.server.log), buf_str(&expected));
	}
	assert_alive(&r, 101);
	raw_done(&r);
}
END_TEST

START_TEST(a_socket_path_as_authority_is_refused_where_it_is_strict)
{
	struct raw r;

	raw_init(&r, true);
	frames_post(&r.in, 1, GOOD_FIELDS ":authority: /run/csi.sock\n");
	frames_post(&r.in, 3, GOOD_FIELDS ":authority: localhost\n");
	raw_run(&r);
	ck_assert_ptr_nonnull(strstr(buf_str(&r.text), "RST_STREAM 1 1\n"));
	ck_assert_str_eq(buf_str(&r.server.log),
		"headers 3 :method=POST :scheme=http :path=/a.B/C :authority=localhost\nend 3\nclose 3 0\n");
	raw_done(&r);
}
END_TEST

START_TEST(malformed_requests_are_reset_and_the_next_one_is_served)
{
	static const char *const cases[] = {
		":scheme: http\n:path: /a\n",
		":method: POST\n:path: /a\n",
		":method: POST\n:scheme: http\n",
		":method: POST\n:scheme: http\n:path: \n",
		":method: POST\n:scheme: http\n:path: a\n",
		":method: POST\n:scheme: http\n:path: *\n",
		"a: b\n",
		GOOD_FIELDS ":method: POST\n",
		GOOD_FIELDS ":scheme: http\n",
		GOOD_FIELDS ":path: /a\n",
		GOOD_FIELDS ":authority: a\n:authority: a\n",
		GOOD_FIELDS ":status: 200\n",
		GOOD_FIELDS ":protocol: websocket\n",
		GOOD_FIELDS "a: b\n:authority: localhost\n",
		":method: POST\na: b\n:scheme: http\n:path: /a\n",
		GOOD_FIELDS "Te: trailers\n",
		GOOD_FIELDS "content-Type: application/grpc\n",
		GOOD_FIELDS "a b: c\n",
		GOOD_FIELDS "\xc3\xa4: c\n",
		GOOD_FIELDS "connection: close\n",
		GOOD_FIELDS "keep-alive: 5\n",
		GOOD_FIELDS "proxy-connection: close\n",
		GOOD_FIELDS "transfer-encoding: chunked\n",
		GOOD_FIELDS "upgrade: h2c\n",
		GOOD_FIELDS "te: gzip\n",
		GOOD_FIELDS "a: b\rc\n",
		GOOD_FIELDS ":authority: b\rc\n",
	};

	for (int strict = 0; strict < 2; strict++) {
		struct raw r;
		int32_t stream = 1;

		raw_init(&r, strict);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++, stream += 4) {
			CLEANUP(buf_done) struct buf expected = BUF_INIT(100);

			buf_reset(&r.text);
			frames_post(&r.in, stream, cases[i]);
			raw_run(&r);
			buf_addf(&expected, "%sRST_STREAM %d 1\n", i == 0 ? GREETING : "", stream);
			ck_assert_msg(strcmp(buf_str(&r.text), buf_str(&expected)) == 0,
				"strict %d, case %zu: %s", strict, i, buf_str(&r.text));
			ck_assert_str_eq(buf_str(&r.server.log), "");
			frames_post(&r.in, stream + 2, GOOD_FIELDS ":authority: localhost\n");
			raw_run(&r);
			ck_assert_ptr_nonnull(strstr(buf_str(&r.server.log), "headers"));
			buf_reset(&r.server.log);
		}
		raw_done(&r);
	}
}
END_TEST

START_TEST(an_empty_name_and_a_nul_in_a_value_are_malformed)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
	struct raw r;

	raw_init(&r, false);
	frames_fields(&block, GOOD_FIELDS);
	frames_field(&block, "", span_of("x"));
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 1, buf_span(&block));
	buf_reset(&block);
	frames_fields(&block, GOOD_FIELDS);
	frames_field(&block, "a", (struct span){(const uint8_t *)"x\0y", 3});
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 3, buf_span(&block));
	raw_run(&r);
	ck_assert_str_eq(buf_str(&r.text), GREETING "RST_STREAM 1 1\nRST_STREAM 3 1\n");
	ck_assert_str_eq(buf_str(&r.server.log), "");
	assert_alive(&r, 5);
	raw_done(&r);
}
END_TEST

START_TEST(headers_of_more_than_8_kib_are_refused)
{
	/* name, value and 32 bytes of each field count */
	static const char fields[] = GOOD_FIELDS ":authority: localhost\n";
	size_t others = (7 + 4 + 32) + (7 + 4 + 32) + (5 + 6 + 32) + (10 + 9 + 32) + (1 + 32);
	static uint8_t value[LIMIT_HEADER_BYTES];
	CLEANUP(buf_done) struct buf block = BUF_INIT(10000);
	struct raw r;

	memset(value, 'v', sizeof(value));
	for (int strict = 0; strict < 2; strict++) {
		raw_init(&r, strict);
		for (int32_t more = 0; more < 2; more++) {
			buf_reset(&block);
			frames_fields(&block, fields);
			frames_field(&block, "a",
				(struct span){value, LIMIT_HEADER_BYTES - others + (size_t)more});
			frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 2 * more + 1,
				buf_span(&block));
			raw_run(&r);
		}
		ck_assert_ptr_nonnull(strstr(buf_str(&r.server.log), "headers 1 "));
		ck_assert_ptr_null(strstr(buf_str(&r.server.log), "headers 3 "));
		ck_assert_ptr_nonnull(strstr(buf_str(&r.text), "HEADERS 3 END\n"));
		raw_done(&r);
	}
}
END_TEST

/* with :status 431: test_h2_refusals.c */
START_TEST(a_flood_of_small_fields_is_refused)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(20000);
	struct raw r;

	raw_init(&r, false);
	frames_fields(&block, GOOD_FIELDS);
	for (int i = 0; i < 16000; i++)
		buf_addc(&block, (char)0x82); /* :method GET of the static table, RFC 7541 appendix A */
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 1, buf_span(&block));
	raw_run(&r);
	ck_assert_str_eq(buf_str(&r.text), GREETING "HEADERS 1 END\n");
	ck_assert_str_eq(buf_str(&r.server.log), "");
	assert_alive(&r, 3);
	raw_done(&r);
}
END_TEST

START_TEST(a_header_block_may_continue_in_further_frames)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
	struct raw r;

	raw_init(&r, false);
	frames_fields(&block, GOOD_FIELDS);
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_STREAM, 1, (struct span){block.data, 20});
	frames_add(&r.in, FRAME_CONTINUATION, 0, 1, (struct span){block.data + 20, 1});
	frames_add(&r.in, FRAME_CONTINUATION, FLAG_END_HEADERS, 1,
		(struct span){block.data + 21, block.len - 21});
	raw_run(&r);
	ck_assert_str_eq(buf_str(&r.server.log),
		"headers 1 :method=POST :scheme=http :path=/a.B/C\nend 1\nclose 1 0\n");
	raw_done(&r);
}
END_TEST

START_TEST(a_flood_of_continuations_ends_the_connection)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
	struct raw r;

	raw_init(&r, false);
	frames_fields(&block, GOOD_FIELDS);
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_STREAM, 1, buf_span(&block));
	for (int i = 0; i < 1000; i++)
		frames_add(&r.in, FRAME_CONTINUATION, 0, 1, span_of(""));
	ASSERT_FAILS(h2_recv(r.server.h2, buf_span(&r.in), &err), ERR_UNAVAILABLE, "CONTINUATION");
	ck_assert(h2_is_done(r.server.h2));
	raw_done(&r);
}
END_TEST

START_TEST(trailers_of_a_request_are_dropped)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
	CLEANUP(buf_done) struct buf trailer = BUF_INIT(100);
	struct raw r;

	raw_init(&r, false);
	frames_fields(&block, GOOD_FIELDS);
	frames_fields(&trailer, "checksum: 1\n");
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS, 1, buf_span(&block));
	frames_add(&r.in, FRAME_DATA, 0, 1, span_of("abc"));
	frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 1, buf_span(&trailer));
	raw_run(&r);
	ck_assert_str_eq(buf_str(&r.server.log),
		"headers 1 :method=POST :scheme=http :path=/a.B/C\nend 1\nclose 1 0\n");
	ck_assert_str_eq(buf_str(&r.text), GREETING "HEADERS 1\nDATA 1 3\nHEADERS 1 END\n");
	raw_done(&r);
}
END_TEST

START_TEST(malformed_trailers_of_a_request_reset_it)
{
	static const struct {
		const char *lines;
		uint8_t flags;
	} cases[] = {
		{"checksum: 1\n", FLAG_END_HEADERS},
		{":path: /a\n", FLAG_END_HEADERS | FLAG_END_STREAM},
		{"Checksum: 1\n", FLAG_END_HEADERS | FLAG_END_STREAM},
		{"a: b\rc\n", FLAG_END_HEADERS | FLAG_END_STREAM},
	};
	struct raw r;

	raw_init(&r, false);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buf_done) struct buf block = BUF_INIT(1000);
		CLEANUP(buf_done) struct buf expected = BUF_INIT(1000);
		int32_t stream = (int32_t)(2 * i + 1);

		buf_reset(&r.server.log);
		frames_fields(&block, GOOD_FIELDS);
		frames_add(&r.in, FRAME_HEADERS, FLAG_END_HEADERS, stream, buf_span(&block));
		buf_reset(&block);
		frames_fields(&block, cases[i].lines);
		frames_add(&r.in, FRAME_HEADERS, cases[i].flags, stream, buf_span(&block));
		raw_run(&r);
		buf_addf(&expected, GOOD_LINE "\nclose %d 1\n", stream, stream);
		ck_assert_str_eq(buf_str(&r.server.log), buf_str(&expected));
	}
	assert_alive(&r, 101);
	raw_done(&r);
}
END_TEST

START_TEST(pings_are_answered_however_many)
{
	struct raw r;

	raw_init(&r, false);
	raw_run(&r);
	for (int i = 0; i < 2000; i++) {
		buf_reset(&r.text);
		frames_add(&r.in, FRAME_PING, 0, 0, span_of("ABCDEFGH"));
		raw_run(&r);
		ck_assert_str_eq(buf_str(&r.text), "PING 4142434445464748 ACK\n");
	}
	assert_alive(&r, 1);
	raw_done(&r);
}
END_TEST

START_TEST(pings_without_reading_the_answers_end_the_connection)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct raw r;

	raw_init(&r, false);
	for (int i = 0; i < 20000; i++)
		frames_add(&r.in, FRAME_PING, 0, 0, span_of("ABCDEFGH"));
	ASSERT_FAILS(h2_recv(r.server.h2, buf_span(&r.in), &err), ERR_UNAVAILABLE, "HTTP/2: ");
	ASSERT_FAILS(
		h2_recv(r.server.h2, span_of(""), &err), ERR_UNAVAILABLE, "closed after a protocol error");
	ck_assert(h2_is_done(r.server.h2));
	collect(&r);
	ck_assert_str_eq(buf_str(&r.text), "");
	raw_done(&r);
}
END_TEST

START_TEST(the_101st_stream_is_refused)
{
	struct raw r;

	raw_init(&r, false);
	r.server.react = NULL;
	for (int32_t i = 0; i < LIMIT_STREAMS + 1; i++)
		frames_post(&r.in, 2 * i + 1, GOOD_FIELDS);
	raw_run(&r);
	ck_assert_str_eq(buf_str(&r.text), GREETING "RST_STREAM 201 7\n");
	ck_assert_uint_eq(h2_streams(r.server.h2), LIMIT_STREAMS);
	ck_assert_ptr_null(strstr(buf_str(&r.server.log), " 201"));

	h2_reply(r.server.h2, 1, span_of("done"));
	collect(&r);
	r.server.react = h2_react_echo;
	assert_alive(&r, 203);
	raw_done(&r);
}
END_TEST

START_TEST(a_broken_frame_gets_a_goaway_and_ends_the_connection)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct raw r;

	raw_init(&r, false);
	r.server.react = NULL;
	frames_post(&r.in, 1, GOOD_FIELDS);
	frames_add(&r.in, FRAME_DATA, 0, 0, span_of("on stream 0"));
	raw_run(&r);
	ck_assert_str_eq(buf_str(&r.text), "SETTINGS\nGOAWAY 1 1\n");
	ck_assert(h2_is_done(r.server.h2));
	ASSERT_FAILS(
		h2_recv(r.server.h2, span_of("x"), &err), ERR_UNAVAILABLE, "closed after a protocol error");
	h2_reply(r.server.h2, 1, span_of("x"));
	h2_shutdown(r.server.h2);
	raw_done(&r);
}
END_TEST

START_TEST(http_1_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct raw r;

	raw_init(&r, false);
	ASSERT_FAILS(h2_recv(r.server.h2, span_of("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), &err),
		ERR_UNAVAILABLE, "magic");
	ck_assert(h2_is_done(r.server.h2));
	raw_done(&r);
}
END_TEST

START_TEST(shutdown_names_the_last_stream_and_takes_no_more)
{
	struct raw r;

	raw_init(&r, false);
	r.server.react = NULL;
	frames_post(&r.in, 1, GOOD_FIELDS);
	raw_run(&r);
	h2_shutdown(r.server.h2);
	h2_shutdown(r.server.h2);
	frames_post(&r.in, 3, GOOD_FIELDS);
	buf_reset(&r.text);
	collect(&r);
	raw_run(&r);
	ck_assert_ptr_nonnull(strstr(buf_str(&r.text), "GOAWAY 1 0\n"));
	ck_assert_ptr_null(strstr(buf_str(&r.server.log), "headers 3"));
	ck_assert(!h2_is_done(r.server.h2));
	h2_reply(r.server.h2, 1, span_of("last"));
	ck_assert(!h2_is_done(r.server.h2));
	collect(&r);
	ck_assert_ptr_nonnull(strstr(buf_str(&r.text), "HEADERS 1\nDATA 1 4\nHEADERS 1 END\n"));
	ck_assert(h2_is_done(r.server.h2));
	raw_done(&r);
}
END_TEST

START_TEST(a_connection_is_not_done_before_its_last_frame_is_given_out)
{
	struct raw r;

	raw_init(&r, false);
	r.server.react = NULL;
	frames_post(&r.in, 1, GOOD_FIELDS);
	raw_run(&r);
	h2_shutdown(r.server.h2);
	collect(&r);
	buf_reset(&r.text);
	frames_add(&r.in, FRAME_PING, 0, 0, span_of("ABCDEFGH"));
	frames_add(&r.in, FRAME_RST_STREAM, 0, 1, (struct span){(const uint8_t *)"\0\0\0\x08", 4});
	h2_side_feed(&r.server, buf_span(&r.in));
	ck_assert_uint_eq(h2_streams(r.server.h2), 0);
	ck_assert(!h2_is_done(r.server.h2));
	collect(&r);
	ck_assert_str_eq(buf_str(&r.text), "PING 4142434445464748 ACK\n");
	ck_assert(h2_is_done(r.server.h2));
	raw_done(&r);
}
END_TEST

UNIT_MAIN("h2_frames", every_form_of_authority_is_taken_on_a_unix_socket,
	a_socket_path_as_authority_is_refused_where_it_is_strict,
	malformed_requests_are_reset_and_the_next_one_is_served,
	an_empty_name_and_a_nul_in_a_value_are_malformed, headers_of_more_than_8_kib_are_refused,
	a_flood_of_small_fields_is_refused, a_header_block_may_continue_in_further_frames,
	a_flood_of_continuations_ends_the_connection, trailers_of_a_request_are_dropped,
	malformed_trailers_of_a_request_reset_it, pings_are_answered_however_many,
	pings_without_reading_the_answers_end_the_connection, the_101st_stream_is_refused,
	a_broken_frame_gets_a_goaway_and_ends_the_connection, http_1_is_refused,
	shutdown_names_the_last_stream_and_takes_no_more,
	a_connection_is_not_done_before_its_last_frame_is_given_out)

/* SPDX-License-Identifier: Apache-2.0 */
/* The end of connections, and more requests than the server accepts at the same time. */
#include "h2_frames.h"
#include "h2_pair.h"
#include "net/http2/h2.h"
#include "unit/unit.h"

/* one way only, as far as it goes */
static void to_client(struct h2_pair *p)
{
	h2_side_collect(&p->server);
	h2_side_feed(&p->client, buf_span(&p->server.out));
	buf_reset(&p->server.out);
}

START_TEST(a_call_goes_on_during_shutdown_and_then_both_are_done)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct h2_header headers[] = {H2_HEADER(":method", "POST")};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	stream = h2_pair_post(&p, "/a.B/C", false);
	h2_write(p.client.h2, stream, span_of("first "));
	h2_pair_run(&p);
	h2_shutdown(p.server.h2);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "goaway 1 0\n");
	ck_assert(!h2_is_done(p.server.h2));
	ck_assert(!h2_is_done(p.client.h2));
	ASSERT_FAILS(
		h2_request(p.client.h2, headers, 1, true, &stream, &err), ERR_UNAVAILABLE, "no more streams");

	h2_write(p.client.h2, stream, span_of("second"));
	h2_finish(p.client.h2, stream, NULL, 0);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.body), "first second");
	h2_reply(p.server.h2, stream, span_of("reply"));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log),
		"goaway 1 0\nheaders 1 :status=200\ntrailers 1 grpc-status=0\nend 1\nclose 1 0\n");
	ck_assert(h2_is_done(p.server.h2));
	ck_assert(h2_is_done(p.client.h2));
	h2_pair_done(&p);
}
END_TEST

START_TEST(an_idle_connection_is_done_with_the_goaway)
{
	struct h2_pair p;

	h2_pair_init(&p, false, NULL);
	h2_pair_run(&p);
	h2_shutdown(p.server.h2);
	ck_assert(!h2_is_done(p.server.h2));
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.client.log), "goaway 0 0\n");
	ck_assert(h2_is_done(p.server.h2));
	ck_assert(h2_is_done(p.client.h2));
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_request_that_crosses_the_goaway_was_not_processed)
{
	struct h2_pair p;

	h2_pair_init(&p, false, h2_react_echo);
	h2_pair_run(&p);
	h2_shutdown(p.server.h2);
	h2_side_collect(&p.server);
	h2_pair_post(&p, "/a.B/C", true);
	h2_side_collect(&p.client);
	h2_side_feed(&p.server, buf_span(&p.client.out));
	buf_reset(&p.client.out);
	to_client(&p);
	h2_pair_run(&p);
	ck_assert_str_eq(buf_str(&p.server.log), "");
	ck_assert_str_eq(buf_str(&p.client.log), "goaway 0 0\nclose 1 7\n");
	ck_assert(h2_is_done(p.client.h2));
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_request_that_was_not_sent_before_the_goaway_never_is)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);
	struct h2_pair p;

	h2_pair_init(&p, false, NULL);
	h2_pair_run(&p);
	h2_pair_post(&p, "/a.B/C", true);
	h2_shutdown(p.server.h2);
	to_client(&p);
	h2_side_collect(&p.client);
	frames_text(buf_span(&p.client.out), &text);
	ck_assert_str_eq(buf_str(&text), "");
	ck_assert_str_eq(buf_str(&p.client.log), "goaway 0 0\nclose 1 7\n");
	ck_assert_uint_eq(h2_streams(p.client.h2), 0);
	h2_pair_done(&p);
}
END_TEST

START_TEST(the_101st_request_waits_for_a_free_stream)
{
	struct h2_pair p;

	h2_pair_init(&p, false, NULL);
	h2_pair_run(&p);
	for (int i = 0; i < LIMIT_STREAMS + 1; i++)
		h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	ck_assert_uint_eq(h2_streams(p.server.h2), LIMIT_STREAMS);
	ck_assert_uint_eq(h2_streams(p.client.h2), LIMIT_STREAMS + 1);
	ck_assert_ptr_null(strstr(buf_str(&p.server.log), "headers 201 "));
	h2_reply(p.server.h2, 51, span_of("x"));
	h2_pair_run(&p);
	ck_assert_uint_eq(h2_streams(p.server.h2), LIMIT_STREAMS);
	ck_assert_ptr_nonnull(strstr(buf_str(&p.server.log), "headers 201 "));
	ck_assert_ptr_null(strstr(buf_str(&p.client.log), " 7\n"));
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_request_that_still_waits_at_the_goaway_was_not_processed)
{
	struct h2_pair p;

	h2_pair_init(&p, false, NULL);
	h2_pair_run(&p);
	for (int i = 0; i < LIMIT_STREAMS + 1; i++)
		h2_pair_post(&p, "/a.B/C", true);
	h2_pair_run(&p);
	h2_shutdown(p.server.h2);
	h2_reply(p.server.h2, 51, span_of("x"));
	h2_pair_run(&p);
	ck_assert_ptr_nonnull(strstr(buf_str(&p.client.log), "goaway 199 0\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&p.client.log), "close 51 0\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&p.client.log), "close 201 7\n"));
	ck_assert_ptr_null(strstr(buf_str(&p.server.log), "headers 201 "));
	h2_pair_done(&p);
}
END_TEST

START_TEST(a_connection_is_freed_with_streams_in_all_states)
{
	const struct h2_header trailers[] = {H2_HEADER("grpc-status", "0")};
	struct h2_pair p;
	int32_t stream;

	h2_pair_init(&p, false, NULL);
	for (int i = 0; i < 4; i++) {
		stream = h2_pair_post(&p, "/a.B/C", false);
		h2_write(p.client.h2, stream, span_of("hello"));
	}
	h2_pair_run(&p);
	h2_respond(p.server.h2, 3, trailers, 1, true);
	h2_reply(p.server.h2, 5, span_of("reply"));
	h2_reset(p.server.h2, 7, H2_CANCEL);
	h2_finish(p.client.h2, 1, trailers, 1);
	h2_pair_post(&p, "/a.B/C", false);
	buf_reset(&p.server.log);
	buf_reset(&p.client.log);
	h2_free(p.server.h2);
	h2_free(p.client.h2);
	p.server.h2 = NULL;
	p.client.h2 = NULL;
	ck_assert_str_eq(buf_str(&p.server.log), "");
	ck_assert_str_eq(buf_str(&p.client.log), "");
	h2_pair_done(&p);
}
END_TEST

UNIT_MAIN("h2_shutdown", a_call_goes_on_during_shutdown_and_then_both_are_done,
	an_idle_connection_is_done_with_the_goaway, a_request_that_crosses_the_goaway_was_not_processed,
	a_request_that_was_not_sent_before_the_goaway_never_is, the_101st_request_waits_for_a_free_stream,
	a_request_that_still_waits_at_the_goaway_was_not_processed,
	a_connection_is_freed_with_streams_in_all_states)

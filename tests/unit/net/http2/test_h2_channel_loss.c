/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that cannot be opened, that are lost, and that the server gives up. */
#include "h2_ask.h"

#include "base/clock.h"
#include "pacing/backoff.h"

/* a wait that no test sits out */
#define FOR_EVER_MS BACKOFF_MAX_MS

static struct rig r;

static void open_rig(
	uint64_t backoff_ms, void (*react)(struct h2_side *side, enum h2_event event, int32_t stream))
{
	rig_open(&r, (struct h2_channel_config){.reconnect_backoff_ms = backoff_ms}, react);
}

static void stay_silent(struct h2_side *side, enum h2_event event, int32_t stream)
{
	(void)side;
	(void)event;
	(void)stream;
}

static void answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, span_of("hello"));
}

static struct h2_peer_conn *conn(unsigned number)
{
	return h2_peer_conn(&r.peer, number);
}

static void finish(unsigned number, int32_t stream)
{
	h2_reply(conn(number)->side.h2, stream, span_of("late"));
	h2_peer_flush(conn(number));
}

START_TEST(nothing_that_listens_is_unavailable)
{
	open_rig(0, answer);
	h2_peer_deafen(&r.peer);
	ask_fails(&r, ERR_UNAVAILABLE, r.peer.endpoint);
	rig_close(&r);
}
END_TEST

START_TEST(all_that_waits_fails_with_the_connection)
{
	struct ask a = {0}, b = {0};

	open_rig(0, answer);
	r.peer.manner = H2_PEER_HANGS_UP;
	ask(&r, "/", "", &a);
	ask(&r, "/", "", &b);
	ask_ends(&a, ERR_UNAVAILABLE, "closed by the peer");
	ask_ended(&b, ERR_UNAVAILABLE, "closed by the peer");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(until_the_next_try_requests_fail_at_once_with_the_last_reason)
{
	open_rig(FOR_EVER_MS, answer);
	r.peer.manner = H2_PEER_HANGS_UP;
	ask_fails(&r, ERR_UNAVAILABLE, "closed by the peer");
	r.peer.manner = H2_PEER_SERVES;
	ask_fails(&r, ERR_UNAVAILABLE, "closed by the peer");
	ask_fails(&r, ERR_UNAVAILABLE, "closed by the peer");
	h2_peer_rounds(&r.peer);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

/* Return: requests it took. */
static unsigned ask_until_tried(unsigned n_conns)
{
	unsigned asked = 0;

	while (r.peer.n_conns < n_conns) {
		struct ask a = {0};

		ask(&r, "/", "", &a);
		h2_peer_rounds(&r.peer);
		ck_assert_uint_eq(a.ended, 1);
		ask_done(&a);
		asked++;
	}
	return asked;
}

START_TEST(after_the_wait_the_next_request_tries_again)
{
	open_rig(1, answer);
	r.peer.manner = H2_PEER_HANGS_UP;
	ask_until_tried(3);
	r.peer.manner = H2_PEER_SERVES;
	ask_until_tried(4);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 4);
	rig_close(&r);
}
END_TEST

START_TEST(a_connection_that_opens_makes_the_next_wait_short_again)
{
	open_rig(1, answer);
	r.peer.manner = H2_PEER_HANGS_UP;
	/* The last wait is 1.6 to the power of 11: 176 ms. */
	ask_until_tried(12);
	r.peer.manner = H2_PEER_SERVES;
	ask_until_tried(13);
	h2_peer_hang_up(conn(13));
	h2_peer_rounds(&r.peer);
	r.peer.manner = H2_PEER_HANGS_UP;
	ask_until_tried(14);
	/* Between two requests there are 20 ms or more. */
	ck_assert_uint_le(ask_until_tried(15), 2);
	rig_close(&r);
}
END_TEST

START_TEST(a_server_that_never_greets_is_given_up)
{
	rig_open(&r, (struct h2_channel_config){.open_ms = 20}, NULL);
	r.peer.manner = H2_PEER_IS_SILENT;
	ask_fails(&r, ERR_UNAVAILABLE, "no HTTP/2 from the server within the time limit");
	ask_fails(&r, ERR_UNAVAILABLE, "within the time limit");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

static bool is_past(void *user)
{
	const uint64_t *end_ns = user;

	return clock_ns() > *end_ns;
}

START_TEST(the_time_limit_of_opening_does_not_end_what_was_opened)
{
	const uint64_t open_ms = 1000;
	struct ask a = {0};
	uint64_t end_ns;

	rig_open(&r, (struct h2_channel_config){.open_ms = open_ms}, stay_silent);
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	end_ns = clock_ns() + open_ms * NS_PER_MS;
	h2_peer_until(&r.peer, is_past, &end_ns);
	finish(1, 1);
	ask_ends(&a, 0, "");
	rig_close(&r);
}
END_TEST

START_TEST(a_server_that_greets_but_takes_nothing_is_not_tried_over_and_over)
{
	open_rig(0, answer);
	r.peer.manner = H2_PEER_GREETS_ONLY;
	ask_fails(&r, ERR_UNAVAILABLE, "takes no requests");
	ask_fails(&r, ERR_UNAVAILABLE, "takes no requests");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(a_server_of_another_protocol_is_unavailable)
{
	struct ask a = {0};

	open_rig(0, NULL);
	r.peer.manner = H2_PEER_IS_SILENT;
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "");
	ck_assert_int_eq(write(conn(1)->fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
	ask_ends(&a, ERR_UNAVAILABLE, "rules of HTTP/2");
	rig_close(&r);
}
END_TEST

static void cut(struct h2_side *side, enum h2_event event, int32_t stream)
{
	(void)stream;
	if (event == H2_ON_END)
		h2_peer_cut((struct h2_peer_conn *)side);
}

START_TEST(a_loss_ends_requests_and_the_next_one_connects_without_a_wait)
{
	struct ask a = {0}, b = {0};

	open_rig(FOR_EVER_MS, cut);
	ask(&r, "/", "", &a);
	ask(&r, "/", "", &b);
	ask_ends(&a, ERR_UNAVAILABLE, "closed by the peer");
	ask_ended(&b, ERR_UNAVAILABLE, "closed by the peer");
	r.peer.react = answer;
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

static void cut_first_connection(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (r.peer.n_conns == 1)
		cut(side, event, stream);
	else
		answer(side, event, stream);
}

START_TEST(requests_that_wait_for_a_stream_outlive_the_connection)
{
	struct ask a = {0}, b = {0};

	open_rig(FOR_EVER_MS, cut_first_connection);
	r.peer.max_streams = 1;
	ask(&r, "/1", "", &a);
	ask(&r, "/2", "", &b);
	ask_ends(&a, ERR_UNAVAILABLE, "closed by the peer");
	ask_ends(&b, 0, "");
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

START_TEST(the_loss_of_an_idle_connection_is_nobodys_error)
{
	open_rig(FOR_EVER_MS, answer);
	ask_answered(&r);
	h2_peer_hang_up(conn(1));
	h2_peer_rounds(&r.peer);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

START_TEST(after_goaway_streams_finish_and_new_requests_use_another_connection)
{
	struct ask old = {0};

	open_rig(FOR_EVER_MS, stay_silent);
	ask(&r, "/old", "", &old);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	h2_peer_goaway(conn(1), 1, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	h2_peer_rounds(&r.peer);
	r.peer.react = answer;
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	ck_assert_uint_eq(old.ended, 0);
	finish(1, 1);
	ask_until_noted(&old, "data late\n");
	ask_ends(&old, 0, "");
	h2_peer_until_gone(&r.peer, 1);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

START_TEST(what_goaway_leaves_out_is_sent_again)
{
	struct ask first = {0}, second = {0}, third = {0};

	open_rig(FOR_EVER_MS, stay_silent);
	ask(&r, "/1", "one", &first);
	ask(&r, "/2", "two", &second);
	ask(&r, "/3", "", &third);
	h2_peer_until_logged(&r.peer, 1, "end 5\n");
	r.peer.react = answer;
	h2_peer_goaway(conn(1), 1, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	ask_until_noted(&second, "data hello\n");
	ask_ends(&second, 0, "");
	ask_ends(&third, 0, "");
	ck_assert_ptr_nonnull(strstr(h2_peer_log(&r.peer, 2), ":path=/2 "));
	ck_assert_ptr_nonnull(strstr(h2_peer_log(&r.peer, 2), ":path=/3 "));
	ck_assert_ptr_null(strstr(h2_peer_log(&r.peer, 2), ":path=/1 "));
	ck_assert_str_eq(buf_str(&conn(2)->side.body), "two");
	finish(1, 1);
	ask_ends(&first, 0, "");
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

START_TEST(a_graceful_goaway_names_its_last_stream_later)
{
	struct ask first = {0}, second = {0};

	open_rig(FOR_EVER_MS, stay_silent);
	ask(&r, "/1", "", &first);
	ask(&r, "/2", "", &second);
	h2_peer_until_logged(&r.peer, 1, "end 3\n");
	h2_peer_goaway(conn(1), INT32_MAX, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	h2_peer_rounds(&r.peer);
	r.peer.react = answer;
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	ck_assert_uint_eq(second.ended, 0);
	h2_peer_goaway(conn(1), 1, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	ask_ends(&second, 0, "");
	finish(1, 1);
	ask_ends(&first, 0, "");
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

static void lose_unread_goaway(const char *endpoint)
{
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){.endpoint = endpoint, .reconnect_backoff_ms = FOR_EVER_MS},
		answer);
	ask_answered(&r);
	h2_peer_goaway(conn(1), 1, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	h2_peer_hang_up(conn(1));
	ask(&r, "/", "body", &a);
	ask_ends(&a, 0, "");
	ck_assert_uint_eq(r.peer.n_conns, 2);
	ck_assert_str_eq(buf_str(&conn(2)->side.body), "body");
	rig_close(&r);
}

START_TEST(a_request_that_crosses_goaway_and_the_end_of_the_connection_is_sent_again)
{
	lose_unread_goaway(NULL);
	lose_unread_goaway("tcp://127.0.0.1:0");
}
END_TEST

static void begin_answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	const struct h2_header headers[] = {H2_HEADER(":status", "200")};

	if (event == H2_ON_END)
		h2_respond(side->h2, stream, headers, 1, false);
}

START_TEST(a_request_with_a_reply_is_not_sent_again)
{
	struct ask a = {0};

	open_rig(FOR_EVER_MS, begin_answer);
	ask(&r, "/", "", &a);
	ask_until_noted(&a, "headers :status=200\n");
	r.peer.react = answer;
	h2_peer_goaway(conn(1), 0, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	ask_ends(&a, ERR_UNAVAILABLE, "code 7");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

static void refuse(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_HEADERS)
		h2_reset(side->h2, stream, H2_REFUSED_STREAM);
}

static void refuse_on_first_connection(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (r.peer.n_conns == 1)
		refuse(side, event, stream);
	else
		answer(side, event, stream);
}

START_TEST(a_refused_request_is_sent_again_over_another_connection)
{
	struct ask a = {0};

	open_rig(FOR_EVER_MS, refuse_on_first_connection);
	ask(&r, "/", "body", &a);
	ask_until_noted(&a, "data hello\n");
	ask_ends(&a, 0, "");
	ck_assert_str_eq(buf_str(&conn(2)->side.body), "body");
	h2_peer_until_gone(&r.peer, 1);
	rig_close(&r);
}
END_TEST

START_TEST(a_request_is_sent_again_only_once)
{
	open_rig(FOR_EVER_MS, refuse);
	ask_fails(&r, ERR_UNAVAILABLE, "code 7");
	ck_assert_uint_eq(r.peer.n_conns, 2);
	rig_close(&r);
}
END_TEST

static void refuse_third_stream(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (stream == 3)
		refuse(side, event, stream);
}

START_TEST(a_refusal_leaves_other_streams_alone)
{
	struct ask first = {0}, second = {0};

	open_rig(FOR_EVER_MS, refuse_third_stream);
	ask(&r, "/1", "", &first);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	ask(&r, "/2", "", &second);
	h2_peer_until_logged(&r.peer, 2, "end 1\n");
	ck_assert_ptr_nonnull(strstr(h2_peer_log(&r.peer, 2), ":path=/2 "));
	finish(1, 1);
	ask_ends(&first, 0, "");
	finish(2, 1);
	ask_ends(&second, 0, "");
	rig_close(&r);
}
END_TEST

START_TEST(a_refused_request_fails_when_no_other_connection_can_be_opened)
{
	struct ask a = {0};

	open_rig(0, stay_silent);
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	h2_peer_deafen(&r.peer);
	h2_peer_goaway(conn(1), 0, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	ask_ends(&a, ERR_UNAVAILABLE, "connect");
	rig_close(&r);
}
END_TEST

START_TEST(a_connection_lost_after_goaway_is_unavailable_for_what_it_had_taken)
{
	struct ask a = {0};

	open_rig(FOR_EVER_MS, stay_silent);
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	h2_peer_goaway(conn(1), 1, H2_NO_ERROR);
	h2_peer_flush(conn(1));
	h2_peer_hang_up(conn(1));
	ask_ends(&a, ERR_UNAVAILABLE, "closed by the peer");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

TMPDIR_MAIN("net/h2_channel_loss", nothing_that_listens_is_unavailable,
	all_that_waits_fails_with_the_connection,
	until_the_next_try_requests_fail_at_once_with_the_last_reason,
	after_the_wait_the_next_request_tries_again, a_connection_that_opens_makes_the_next_wait_short_again,
	a_server_that_never_greets_is_given_up, the_time_limit_of_opening_does_not_end_what_was_opened,
	a_server_that_greets_but_takes_nothing_is_not_tried_over_and_over,
	a_server_of_another_protocol_is_unavailable,
	a_loss_ends_requests_and_the_next_one_connects_without_a_wait,
	requests_that_wait_for_a_stream_outlive_the_connection,
	the_loss_of_an_idle_connection_is_nobodys_error,
	after_goaway_streams_finish_and_new_requests_use_another_connection,
	what_goaway_leaves_out_is_sent_again, a_graceful_goaway_names_its_last_stream_later,
	a_request_that_crosses_goaway_and_the_end_of_the_connection_is_sent_again,
	a_request_with_a_reply_is_not_sent_again, a_refused_request_is_sent_again_over_another_connection,
	a_request_is_sent_again_only_once, a_refusal_leaves_other_streams_alone,
	a_refused_request_fails_when_no_other_connection_can_be_opened,
	a_connection_lost_after_goaway_is_unavailable_for_what_it_had_taken)

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are cancelled, and channels that are freed. */
#include "h2_ask.h"

static struct rig r;

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

/* Stream 1 gets one part of its reply, all others a complete one. */
static void begin_first(struct h2_side *side, enum h2_event event, int32_t stream)
{
	const struct h2_header headers[] = {H2_HEADER(":status", "200")};

	if (stream != 1) {
		answer(side, event, stream);
	} else if (event == H2_ON_END) {
		h2_respond(side->h2, stream, headers, 1, false);
		h2_write(side->h2, stream, span_of("part"));
	}
}

/* The replies to streams 1 and 3 come together. */
static void answer_in_pairs(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event != H2_ON_END || stream != 3)
		return;
	answer(side, H2_ON_END, 1);
	answer(side, H2_ON_END, 3);
}

START_TEST(a_request_that_is_cancelled_at_once_is_not_sent)
{
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, answer);
	ask(&r, "/", "", &a);
	h2_request_cancel(a.request, ERR_DEADLINE, "too late");
	ck_assert_uint_eq(a.ended, 0);
	ask_ends(&a, ERR_DEADLINE, "too late");
	ask_answered(&r);
	ck_assert_ptr_null(strstr(h2_peer_log(&r.peer, 1), "headers 3 "));
	rig_close(&r);
}
END_TEST

START_TEST(a_request_can_be_cancelled_while_the_channel_connects)
{
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, NULL);
	r.peer.manner = H2_PEER_IS_SILENT;
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "");
	h2_request_cancel(a.request, ERR_CANCELLED, "too slow");
	ask_ends(&a, ERR_CANCELLED, "too slow");
	rig_close(&r);
}
END_TEST

START_TEST(a_cancelled_request_is_reset)
{
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, begin_first);
	ask(&r, "/", "", &a);
	ask_until_noted(&a, "data part\n");
	h2_request_cancel(a.request, ERR_ABORTED, "enough");
	h2_request_cancel(a.request, ERR_INTERNAL, "twice");
	ck_assert_uint_eq(a.ended, 0);
	ask_ends(&a, ERR_ABORTED, "enough");
	h2_peer_until_logged(&r.peer, 1, "close 1 8\n");
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(a_reply_that_is_not_wanted_ends_the_request)
{
	struct ask a = {.unwanted = true};

	rig_open(&r, (struct h2_channel_config){0}, answer);
	ask(&r, "/", "", &a);
	ask_until_noted(&a, "headers :status=200\ndata hello\n");
	ask_ends(&a, ERR_CANCELLED, "not wanted");
	ask_answered(&r);
	rig_close(&r);
}
END_TEST

START_TEST(a_request_may_be_cancelled_while_it_is_notified_of_data)
{
	struct ask a = {.cancel_in_data = true, .unwanted = true};

	rig_open(&r, (struct h2_channel_config){0}, begin_first);
	ask(&r, "/", "", &a);
	ask_ends(&a, ERR_ABORTED, "changed its mind");
	h2_peer_until_logged(&r.peer, 1, "close 1 8\n");
	rig_close(&r);
}
END_TEST

START_TEST(what_has_ended_cannot_be_cancelled)
{
	struct ask first = {0}, second = {0};

	rig_open(&r, (struct h2_channel_config){0}, answer_in_pairs);
	first.cancel_in_end = &second;
	ask(&r, "/", "", &first);
	ask(&r, "/", "", &second);
	ask_ends(&first, 0, "");
	ask_ended(&second, 0, "");
	rig_close(&r);
}
END_TEST

START_TEST(the_end_of_one_request_may_cancel_another)
{
	struct ask first = {0}, second = {0};

	rig_open(&r, (struct h2_channel_config){0}, begin_first);
	second.cancel_in_end = &first;
	ask(&r, "/", "", &first);
	ask(&r, "/", "", &second);
	ask_ends(&second, 0, "");
	ask_ended(&first, ERR_CANCELLED, "by another one");
	h2_peer_until_logged(&r.peer, 1, "close 1 8\n");
	rig_close(&r);
}
END_TEST

START_TEST(the_end_of_a_request_may_make_another)
{
	struct ask a = {.ask_again_on = &r};

	rig_open(&r, (struct h2_channel_config){0}, answer);
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, ":path=/again ");
	h2_peer_until_logged(&r.peer, 1, "close 3 0\n");
	h2_peer_rounds(&r.peer);
	ck_assert_uint_eq(a.ended, 2);
	ck_assert_int_eq(a.code, 0);
	ask_done(&a);
	rig_close(&r);
}
END_TEST

START_TEST(the_end_of_a_request_may_free_the_channel)
{
	struct ask first = {0}, second = {.free_in_end = &r}, third = {0};

	rig_open(&r, (struct h2_channel_config){0}, begin_first);
	r.peer.max_streams = 2;
	ask(&r, "/", "", &first);
	ask(&r, "/", "", &second);
	ask(&r, "/", "", &third);
	ask_ends(&second, 0, "");
	ask_ended(&first, ERR_CANCELLED, "closed");
	ask_ended(&third, ERR_CANCELLED, "closed");
	h2_peer_until_gone(&r.peer, 1);
	rig_close(&r);
}
END_TEST

START_TEST(the_end_of_a_request_that_never_was_sent_may_free_the_channel)
{
	struct ask first = {.free_in_end = &r}, second = {0};

	rig_open(&r, (struct h2_channel_config){0}, NULL);
	h2_peer_deafen(&r.peer);
	ask(&r, "/", "", &first);
	ask(&r, "/", "", &second);
	ask_ends(&first, ERR_UNAVAILABLE, "connect");
	ask_ended(&second, ERR_UNAVAILABLE, "connect");
	rig_close(&r);
}
END_TEST

START_TEST(free_ends_requests_before_it_returns)
{
	struct ask sent = {0}, unsent = {0};

	rig_open(&r, (struct h2_channel_config){0}, stay_silent);
	ask(&r, "/", "", &sent);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	ask(&r, "/", "", &unsent);
	h2_channel_free(TAKE_PTR(r.channel));
	ask_ended(&sent, ERR_CANCELLED, "closed");
	ask_ended(&unsent, ERR_CANCELLED, "closed");
	h2_peer_until_gone(&r.peer, 1);
	rig_close(&r);
}
END_TEST

START_TEST(free_ends_requests_that_wait_for_the_connection)
{
	struct ask a = {0};

	rig_open(&r, (struct h2_channel_config){0}, NULL);
	r.peer.manner = H2_PEER_IS_SILENT;
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "");
	h2_channel_free(TAKE_PTR(r.channel));
	ask_ended(&a, ERR_CANCELLED, "closed");
	rig_close(&r);
}
END_TEST

START_TEST(a_request_that_free_ends_may_try_again_in_vain)
{
	struct ask a = {.ask_again_on = &r};

	rig_open(&r, (struct h2_channel_config){0}, stay_silent);
	ask(&r, "/", "", &a);
	h2_channel_free(r.channel);
	r.channel = NULL;
	ck_assert_uint_eq(a.ended, 2);
	ck_assert_int_eq(a.code, ERR_CANCELLED);
	ask_done(&a);
	rig_close(&r);
}
END_TEST

TMPDIR_MAIN("net/h2_channel_end", a_request_that_is_cancelled_at_once_is_not_sent,
	a_request_can_be_cancelled_while_the_channel_connects, a_cancelled_request_is_reset,
	a_reply_that_is_not_wanted_ends_the_request, a_request_may_be_cancelled_while_it_is_notified_of_data,
	what_has_ended_cannot_be_cancelled, the_end_of_one_request_may_cancel_another,
	the_end_of_a_request_may_make_another, the_end_of_a_request_may_free_the_channel,
	the_end_of_a_request_that_never_was_sent_may_free_the_channel, free_ends_requests_before_it_returns,
	free_ends_requests_that_wait_for_the_connection, a_request_that_free_ends_may_try_again_in_vain)

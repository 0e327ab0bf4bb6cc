/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that keep the connection open and send nothing: they hang, or the network is cut silently. */
#include "h2_ask.h"

#include "base/clock.h"
#include "net/limits.h"
#include "pacing/backoff.h"

#define PING_MS 50

/* Longer than a ping and its time limit, also on a busy machine */
#define LONG_MS 1000

/* of the request that the server does not answer: longer than LIMIT_SILENCE_MS */
#define TIMEOUT_MS (LIMIT_SILENCE_MS + 100)

static struct rig r;
static bool has_unsent; /* what the kernel says of the connection */

bool __wrap_conn_has_unsent(const struct conn *c);
bool __wrap_conn_has_unsent(const struct conn *c)
{
	(void)c;
	return has_unsent;
}

static void answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, span_of("hello"));
}

static void stay_silent(struct h2_side *side, enum h2_event event, int32_t stream)
{
	(void)side;
	(void)event;
	(void)stream;
}

static void open_rig(
	uint64_t ping_ms, void (*react)(struct h2_side *side, enum h2_event event, int32_t stream))
{
	rig_open(&r,
		(struct h2_channel_config){.reconnect_backoff_ms = BACKOFF_MAX_MS,
			.ping_ms = ping_ms,
			.ping_timeout_ms = PING_MS},
		react);
}

/* The server does not look at the @number-th connection any more. Return: caller closes. */
static int silence(unsigned number)
{
	struct h2_peer_conn *c = h2_peer_conn(&r.peer, number);
	int fd = dup(c->fd);

	ck_assert_int_ge(fd, 0);
	h2_peer_hang_up(c);
	return fd;
}

static bool is_past(void *user)
{
	const uint64_t *end_ns = user;

	return clock_ns() > *end_ns;
}

static void run_ms(uint64_t ms)
{
	uint64_t end_ns = clock_ns() + ms * NS_PER_MS;

	h2_peer_until(&r.peer, is_past, &end_ns);
}

START_TEST(a_connection_that_does_not_answer_pings_is_lost)
{
	struct ask a = {0};

	open_rig(PING_MS, stay_silent);
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	int fd = silence(1);
	ask_ends(&a, ERR_UNAVAILABLE, "has not answered a PING");
	r.peer.react = answer;
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	close(fd);
	rig_close(&r);
}
END_TEST

START_TEST(an_idle_connection_is_watched_too)
{
	open_rig(PING_MS, answer);
	ask_answered(&r);
	int fd = silence(1);
	run_ms(LONG_MS);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	close(fd);
	rig_close(&r);
}
END_TEST

START_TEST(a_server_that_works_for_long_and_answers_pings_keeps_the_connection)
{
	struct ask a = {0};

	open_rig(PING_MS, stay_silent);
	ask(&r, "/", "", &a);
	run_ms(LONG_MS);
	ck_assert_uint_eq(a.ended, 0);
	h2_reply(h2_peer_conn(&r.peer, 1)->side.h2, 1, span_of("late"));
	h2_peer_flush(h2_peer_conn(&r.peer, 1));
	ask_ends(&a, 0, "");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

/* The stream that has no time limit learns it from the ping. */
START_TEST(after_a_time_out_without_a_byte_the_next_request_opens_another_connection)
{
	struct ask watch = {0}, late = {0};

	open_rig(0, stay_silent);
	ask(&r, "/watch", "", &watch);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	int fd = silence(1);
	ask(&r, "/late", "", &late);
	run_ms(TIMEOUT_MS);
	ck_assert_uint_eq(watch.ended, 0);
	h2_request_cancel(late.request, ERR_DEADLINE, "too late");
	ask_ends(&late, ERR_DEADLINE, "too late");
	r.peer.react = answer;
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	ask_ends(&watch, ERR_UNAVAILABLE, "has not answered a PING");
	close(fd);
	rig_close(&r);
}
END_TEST

START_TEST(after_a_time_out_a_connection_on_which_something_came_goes_on)
{
	struct ask other = {0}, late = {0};

	open_rig(0, stay_silent);
	ask(&r, "/other", "", &other);
	ask(&r, "/late", "", &late);
	h2_peer_until_logged(&r.peer, 1, "end 3\n");
	run_ms(TIMEOUT_MS);
	h2_reply(h2_peer_conn(&r.peer, 1)->side.h2, 1, span_of("hello"));
	h2_peer_flush(h2_peer_conn(&r.peer, 1));
	ask_ends(&other, 0, "");
	h2_request_cancel(late.request, ERR_DEADLINE, "too late");
	ask_ends(&late, ERR_DEADLINE, "too late");
	ask(&r, "/next", "", &late);
	h2_peer_until_logged(&r.peer, 1, "end 5\n");
	ck_assert_uint_eq(r.peer.n_conns, 1);
	h2_request_cancel(late.request, ERR_CANCELLED, "enough");
	ask_ends(&late, ERR_CANCELLED, "enough");
	rig_close(&r);
}
END_TEST

/* Two requests run into their time limit in one round of the loop. */
START_TEST(a_machine_that_acknowledges_nothing_is_given_up_once)
{
	struct ask watch = {0}, late = {0}, later = {0};

	open_rig(0, stay_silent);
	ask(&r, "/watch", "", &watch);
	h2_peer_until_logged(&r.peer, 1, "end 1\n");
	int fd = silence(1);
	ask(&r, "/late", "", &late);
	ask(&r, "/later", "", &later);
	run_ms(TIMEOUT_MS);
	has_unsent = true;
	h2_request_cancel(late.request, ERR_DEADLINE, "too late");
	h2_request_cancel(later.request, ERR_DEADLINE, "too late");
	has_unsent = false;
	ask_ends(&late, ERR_DEADLINE, "too late");
	ask_ends(&later, ERR_DEADLINE, "too late");
	ask_ends(&watch, ERR_UNAVAILABLE, "does not acknowledge");
	r.peer.react = answer;
	ask_answered(&r);
	close(fd);
	rig_close(&r);
}
END_TEST

START_TEST(a_server_that_takes_pings_for_abuse_gets_no_more_of_them)
{
	struct ask a = {0};

	open_rig(PING_MS, answer);
	ask_answered(&r);
	h2_peer_goaway(h2_peer_conn(&r.peer, 1), 1, H2_ENHANCE_YOUR_CALM);
	h2_peer_goaway(h2_peer_conn(&r.peer, 1), 1, H2_NO_ERROR);
	h2_peer_flush(h2_peer_conn(&r.peer, 1));
	h2_peer_rounds(&r.peer);
	r.peer.react = stay_silent;
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 2, "end 1\n");
	int fd = silence(2);
	run_ms(LONG_MS);
	ck_assert_uint_eq(a.ended, 0);
	h2_request_cancel(a.request, ERR_CANCELLED, "enough");
	ask_ends(&a, ERR_CANCELLED, "enough");
	close(fd);
	rig_close(&r);
}
END_TEST

TMPDIR_MAIN("net/h2_channel_silence", a_connection_that_does_not_answer_pings_is_lost,
	an_idle_connection_is_watched_too,
	a_server_that_works_for_long_and_answers_pings_keeps_the_connection,
	after_a_time_out_without_a_byte_the_next_request_opens_another_connection,
	after_a_time_out_a_connection_on_which_something_came_goes_on,
	a_machine_that_acknowledges_nothing_is_given_up_once,
	a_server_that_takes_pings_for_abuse_gets_no_more_of_them)

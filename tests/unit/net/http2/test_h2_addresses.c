/* SPDX-License-Identifier: Apache-2.0 */
/* A channel to a server with several addresses. */
#include "h2_ask.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/http2/h2_addresses.h"
#include "net/limits.h"

#define DEAD "unix:///nothing-listens-here"

static struct rig r;
static struct h2_peer other; /* at another address, on the loop of the rig */

static void answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, span_of("hello"));
}

/* The server has the addresses @first and @second from now on; @first is tried first. */
static void set_addresses(const char *first, const char *second)
{
	CLEANUP(error_freep) struct error *err = NULL;
	char *const both[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};

	ASSERT_OK(h2_channel_set_endpoints(r.channel, (char *const[]){both[0], NULL}, &err));
	ASSERT_OK(h2_channel_set_endpoints(r.channel, both, &err));
}

/* A channel to the addresses @first and @second, NULL: that of the peer, which serves. */
static void begin(const char *first, const char *second)
{
	rig_open(&r, (struct h2_channel_config){.reconnect_backoff_ms = 60000}, answer);
	set_addresses(first, second ? second : r.peer.endpoint);
}

/* The second address works at once, although a failure is followed by a minute of waiting. */
START_TEST(the_next_address_is_tried_after_one_that_cannot_be_asked)
{
	begin(DEAD, NULL);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

START_TEST(the_next_address_is_tried_after_one_where_nothing_listens)
{
	begin("tcp://127.0.0.1:1", NULL);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	rig_close(&r);
}
END_TEST

/* It accepts, and nothing more is received from it: as the address of a machine that hangs. */
static void begin_beside_a_silent_one(void)
{
	rig_open(&r, (struct h2_channel_config){.open_ms = 2 * LIMIT_ADDRESS_MS}, answer);
	h2_peer_open(&other, r.loop, "tcp://127.0.0.1:0", NULL);
	other.manner = H2_PEER_IS_SILENT;
	set_addresses(other.endpoint, r.peer.endpoint);
}

START_TEST(an_address_that_is_silent_leaves_time_for_the_next)
{
	uint64_t before_ns = clock_ns();

	begin_beside_a_silent_one();
	ask_answered(&r);
	ck_assert_uint_eq(other.n_conns, 1);
	ck_assert_uint_ge(clock_ns() - before_ns, LIMIT_ADDRESS_MS * NS_PER_MS);
	h2_peer_close(&other);
	rig_close(&r);
}
END_TEST

START_TEST(the_address_that_worked_is_tried_first)
{
	begin_beside_a_silent_one();
	ask_answered(&r);
	h2_peer_hang_up(h2_peer_conn(&r.peer, 1));
	h2_peer_rounds(&r.peer);
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 2);
	ck_assert_uint_eq(other.n_conns, 1);
	h2_peer_close(&other);
	rig_close(&r);
}
END_TEST

START_TEST(when_all_addresses_have_failed_the_channel_waits)
{
	struct ask a = {0};

	begin(DEAD, "tcp://127.0.0.1:1");
	ask(&r, "/", "", &a);
	ask_ends(&a, ERR_UNAVAILABLE, "; tcp://127.0.0.1:1: ");
	ask_fails(&r, ERR_UNAVAILABLE, DEAD ": ");
	rig_close(&r);
}
END_TEST

START_TEST(other_addresses_need_no_waiting)
{
	CLEANUP(error_freep) struct error *err = NULL;

	begin(DEAD, DEAD);
	ask_fails(&r, ERR_UNAVAILABLE, DEAD);
	char *const bad[] = {r.peer.endpoint, (char[]){"x"}, NULL};
	ASSERT_FAILS(h2_channel_set_endpoints(r.channel, bad, &err), ERR_INVALID_ARGUMENT, "\"x\"");
	ask_fails(&r, ERR_UNAVAILABLE, DEAD);
	char *const good[] = {r.peer.endpoint, NULL};
	ASSERT_OK(h2_channel_set_endpoints(r.channel, good, &err));
	ask_answered(&r);
	rig_close(&r);
}
END_TEST

START_TEST(the_address_that_is_tried_stays_so_when_it_is_among_the_new_ones)
{
	CLEANUP(h2_addresses_done) struct h2_addresses a = {0};
	CLEANUP(error_freep) struct error *err = NULL;
	char x[] = "tcp://127.0.0.1:1", y[] = "tcp://127.0.0.1:2", z[] = "tcp://127.0.0.1:3";

	ASSERT_OK(h2_addresses_set(&a, (char *const[]){x, y, NULL}, &err));
	ck_assert(h2_addresses_fail(&a));
	ASSERT_OK(h2_addresses_set(&a, (char *const[]){z, x, y, NULL}, &err));
	ck_assert_str_eq(a.endpoints[a.at], y);
	ASSERT_OK(h2_addresses_set(&a, (char *const[]){z, x, NULL}, &err));
	ck_assert_str_eq(a.endpoints[a.at], z);
}
END_TEST

START_TEST(addresses_share_the_time_and_are_not_without_number)
{
	CLEANUP(h2_addresses_done) struct h2_addresses a = {0};
	CLEANUP(strv_freep) char **many = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	for (size_t i = 0; i < 2 * LIMIT_ADDRESSES; i++)
		strv_add(&many, "tcp://127.0.0.1:1");
	ASSERT_OK(h2_addresses_set(&a, many, &err));
	ck_assert_uint_eq(a.n, LIMIT_ADDRESSES);
	ck_assert_uint_eq(h2_addresses_share_ms(&a, LIMIT_ADDRESSES * 5000), 5000);
	ck_assert_uint_eq(h2_addresses_share_ms(&a, 10000), LIMIT_ADDRESS_MS);
	ck_assert_uint_eq(h2_addresses_share_ms(&a, 300), 300);
	for (size_t i = 1; i < LIMIT_ADDRESSES; i++)
		ck_assert(h2_addresses_fail(&a));
	ck_assert(!h2_addresses_fail(&a));
}
END_TEST

TMPDIR_MAIN("net/http2/h2_addresses", the_next_address_is_tried_after_one_that_cannot_be_asked,
	the_next_address_is_tried_after_one_where_nothing_listens,
	an_address_that_is_silent_leaves_time_for_the_next, the_address_that_worked_is_tried_first,
	when_all_addresses_have_failed_the_channel_waits, other_addresses_need_no_waiting,
	the_address_that_is_tried_stays_so_when_it_is_among_the_new_ones,
	addresses_share_the_time_and_are_not_without_number)

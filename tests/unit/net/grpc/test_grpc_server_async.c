/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that end after their handler has returned, without a thread that waits. */
#include "grpc_fixture.h"

#include "base/mem.h"

#define PARK ECHO "Park"

static struct fixture f;
static struct raw r;

static void open_both(void)
{
	fixture_open(&f, /* workers= */ 0);
	raw_open(&r, &f);
}

static void close_both(void)
{
	raw_done(&r);
	fixture_close(&f);
}

static bool is_parked(void *user)
{
	const unsigned *n = user;

	return f.echo.n_parked == *n;
}

static void until_parked(unsigned n)
{
	fixture_until(&f, is_parked, &n);
}

static struct error *make_error(void)
{
	struct error *e = NULL;

	if (err_set(&e, ERR_NOT_FOUND, "no such thing") == 0)
		return NULL;
	return e;
}

START_TEST(a_call_may_end_before_its_start_returns)
{
	open_both();
	ck_assert_ptr_nonnull(strstr(raw_call_info(&r, PARK, "now", ""), "grpc-status=0\n"));
	ck_assert_uint_eq(f.echo.n_parked, 0);
	close_both();
}
END_TEST

START_TEST(calls_end_in_any_order_while_others_are_answered)
{
	int32_t first;
	int32_t second;

	open_both();
	first = raw_begin(&r, (struct raw_head){.path = PARK});
	until_parked(1);
	second = raw_begin(&r, (struct raw_head){.path = PARK});
	until_parked(2);
	ck_assert_ptr_nonnull(strstr(raw_call_info(&r, ECHO "Echo", "a", ""), "grpc-status=0\n"));
	echo_unpark(&f.echo, NULL);
	raw_finished(&r, second);
	ck_assert_ptr_null(strstr(buf_str(&f.ended), "Park 5"));
	echo_unpark(&f.echo, make_error());
	ck_assert_ptr_nonnull(strstr(raw_finished(&r, first), TRAILERS_ONLY("200", "5") "no such thing"));
	fixture_until_ended(&f, "/pmem.test.Echo/Park 0\n");
	fixture_until_ended(&f, "/pmem.test.Echo/Park 5\n");
	close_both();
}
END_TEST

START_TEST(a_call_outlives_its_deadline_and_its_client)
{
	int32_t late;

	open_both();
	late = raw_begin(&r, (struct raw_head){.path = PARK, .timeout = "50m"});
	until_parked(1);
	ck_assert(grpc_call_is_wanted(f.echo.parked[0]));
	ck_assert_ptr_nonnull(strstr(raw_finished(&r, late), TRAILERS_ONLY("200", "4") "no answer before"));
	ck_assert(!grpc_call_is_wanted(f.echo.parked[0]));
	raw_begin(&r, (struct raw_head){.path = PARK});
	until_parked(2);
	raw_close(&r);
	fixture_rounds(&f);
	ck_assert(!grpc_call_is_wanted(f.echo.parked[1]));
	ck_assert_str_eq(buf_str(&f.ended), "");
	echo_unpark(&f.echo, NULL);
	fixture_until_ended(&f, "/pmem.test.Echo/Park 0\n");
	echo_unpark(&f.echo, make_error());
	fixture_until_ended(&f, "/pmem.test.Echo/Park 5\n");
	close_both();
}
END_TEST

START_TEST(a_drain_waits_for_calls_that_have_begun)
{
	int32_t stream;

	open_both();
	stream = raw_begin(&r, (struct raw_head){.path = PARK});
	until_parked(1);
	fixture_drain(&f);
	fixture_rounds(&f);
	ck_assert(!f.drained);
	echo_unpark(&f.echo, NULL);
	ck_assert_ptr_nonnull(strstr(raw_finished(&r, stream), "grpc-status=0\n"));
	fixture_free_server(&f);
	close_both();
}
END_TEST

START_TEST(the_number_of_calls_is_limited)
{
	const unsigned per_connection = LIMIT_STREAMS;
	struct raw crowd[LIMIT_ASYNC_CALLS / LIMIT_STREAMS + 1];
	unsigned n = 0;

	open_both();
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++) {
		raw_open(&crowd[i], &f);
		for (unsigned at = 0; at < per_connection && n < LIMIT_ASYNC_CALLS; at++, n++)
			raw_begin(&crowd[i], (struct raw_head){.path = PARK});
		until_parked(n);
	}
	ck_assert_ptr_nonnull(strstr(raw_call_info(&r, PARK, "now", ""), TRAILERS_ONLY("200", "14")));
	echo_unpark(&f.echo, NULL);
	fixture_until_ended(&f, "/pmem.test.Echo/Park 0\n");
	ck_assert_ptr_nonnull(strstr(raw_call_info(&r, PARK, "now", ""), "grpc-status=0\n"));
	while (f.echo.n_parked > 0)
		echo_unpark(&f.echo, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		raw_done(&crowd[i]);
	close_both();
}
END_TEST

TMPDIR_MAIN("grpc_server_async", a_call_may_end_before_its_start_returns,
	calls_end_in_any_order_while_others_are_answered, a_call_outlives_its_deadline_and_its_client,
	a_drain_waits_for_calls_that_have_begun, the_number_of_calls_is_limited)

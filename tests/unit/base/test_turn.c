/* SPDX-License-Identifier: Apache-2.0 */
/* One at a time, with a limit to waiting. */
#include "base/turn.h"

#include "base/clock.h"
#include "unit/unit.h"

#define LONG_MS   60000
#define N_THREADS 8
#define N_ROUNDS  500

static struct turn turn;

START_TEST(who_waits_in_vain_learns_what_goes_on)
{
	CLEANUP(turn_endp) struct turn *mine = NULL;
	struct turn *more = NULL;
	struct error *err = NULL;

	turn_init(&turn);
	ASSERT_OK(turn_take(&turn, "remove region7", 0, &mine, &err));
	ASSERT_FAILS(
		turn_take(&turn, "list", 0, &more, &err), ERR_UNAVAILABLE, "\"remove region7\" has been");
	ASSERT_FAILS(turn_take(&turn, "list", 20, &more, &err), ERR_UNAVAILABLE, " s");
	ck_assert_ptr_null(more);
}
END_TEST

/* Else each of many callers would hold its thread for the whole time. */
START_TEST(what_hangs_is_not_waited_for)
{
	CLEANUP(turn_endp) struct turn *mine = NULL;
	struct turn *more = NULL;
	struct error *err = NULL;

	turn_init(&turn);
	ASSERT_OK(turn_take(&turn, "hang", 0, &mine, &err));
	turn.since_ns -= LONG_MS * NS_PER_MS;
	uint64_t begun_ns = clock_ns();
	ASSERT_FAILS(turn_take(&turn, "list", LONG_MS, &more, &err), ERR_UNAVAILABLE, "for 60 s");
	ck_assert_uint_lt(clock_ns() - begun_ns, NS_PER_S);
}
END_TEST

START_TEST(what_goes_on_is_shown)
{
	struct turn *mine = NULL;
	struct error *err = NULL;
	char step[TURN_TEXT_MAX];

	turn_init(&turn);
	(void)turn_look(&turn, step);
	ck_assert_str_eq(step, "");
	uint64_t before_ns = clock_ns();
	ASSERT_OK(turn_take(&turn, "list", 0, &mine, &err));
	ck_assert_uint_ge(turn_look(&turn, step), before_ns);
	ck_assert_str_eq(step, "list");
	turn_end(mine);
	turn_end(NULL);
	(void)turn_look(&turn, step);
	ck_assert_str_eq(step, "");
	turn_done(&turn);
}
END_TEST

static unsigned at_work, done;

static void *work(void *user)
{
	struct error *err = NULL;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(turn_endp) struct turn *mine = NULL;

		if (turn_take(&turn, "work", LONG_MS, &mine, &err) < 0)
			return user;
		at_work++;
		done += at_work == 1;
		at_work--;
	}
	return NULL;
}

START_TEST(many_take_turns_and_never_two_at_once)
{
	pthread_t threads[N_THREADS];
	int failed;

	turn_init(&turn);
	for (unsigned i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &failed), 0);
	for (unsigned i = 0; i < N_THREADS; i++) {
		void *why = NULL;

		ck_assert_int_eq(pthread_join(threads[i], &why), 0);
		ck_assert_ptr_null(why);
	}
	ck_assert_uint_eq(done, N_THREADS * N_ROUNDS);
}
END_TEST

UNIT_MAIN("base/turn", who_waits_in_vain_learns_what_goes_on, what_hangs_is_not_waited_for,
	what_goes_on_is_shown, many_take_turns_and_never_two_at_once)

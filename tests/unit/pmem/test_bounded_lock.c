/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a lock with one holder at a time and a limit for waiting. */
#include "pmem/bounded_lock.h"

#include "base/clock.h"
#include "unit/unit.h"

#define LONG_MS   60000
#define N_THREADS 8
#define N_ROUNDS  500

static struct bounded_lock lock;

START_TEST(who_waits_in_vain_learns_what_goes_on)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *mine = NULL;
	struct bounded_lock *more = NULL;
	struct error *err = NULL;

	bounded_lock_init(&lock);
	ASSERT_OK(bounded_lock_take(&lock, "remove region7", 0, &mine, &err));
	ASSERT_FAILS(bounded_lock_take(&lock, "list", 0, &more, &err), ERR_UNAVAILABLE,
		"\"remove region7\" has been");
	ASSERT_FAILS(bounded_lock_take(&lock, "list", 20, &more, &err), ERR_UNAVAILABLE, " s");
	ck_assert_ptr_null(more);
}
END_TEST

/* A caller returns at once if the holder hangs: otherwise each of many callers would occupy its thread for
 * the whole time limit. */
START_TEST(what_hangs_is_not_waited_for)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *mine = NULL;
	struct bounded_lock *more = NULL;
	struct error *err = NULL;

	bounded_lock_init(&lock);
	ASSERT_OK(bounded_lock_take(&lock, "hang", 0, &mine, &err));
	lock.since_ns -= LONG_MS * NS_PER_MS;
	uint64_t begun_ns = clock_ns();
	ASSERT_FAILS(bounded_lock_take(&lock, "list", LONG_MS, &more, &err), ERR_UNAVAILABLE, "for 60 s");
	ck_assert_uint_lt(clock_ns() - begun_ns, NS_PER_S);
}
END_TEST

START_TEST(what_goes_on_is_shown)
{
	struct bounded_lock *mine = NULL;
	struct error *err = NULL;
	char step[BOUNDED_LOCK_STEP_MAX];

	bounded_lock_init(&lock);
	(void)bounded_lock_current_step(&lock, step);
	ck_assert_str_eq(step, "");
	uint64_t before_ns = clock_ns();
	ASSERT_OK(bounded_lock_take(&lock, "list", 0, &mine, &err));
	ck_assert_uint_ge(bounded_lock_current_step(&lock, step), before_ns);
	ck_assert_str_eq(step, "list");
	bounded_lock_release(mine);
	bounded_lock_release(NULL);
	(void)bounded_lock_current_step(&lock, step);
	ck_assert_str_eq(step, "");
	bounded_lock_done(&lock);
}
END_TEST

static unsigned at_work, done;

static void *work(void *user)
{
	struct error *err = NULL;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(bounded_lock_releasep) struct bounded_lock *mine = NULL;

		if (bounded_lock_take(&lock, "work", LONG_MS, &mine, &err) < 0)
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

	bounded_lock_init(&lock);
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

UNIT_MAIN("pmem/bounded_lock", who_waits_in_vain_learns_what_goes_on, what_hangs_is_not_waited_for,
	what_goes_on_is_shown, many_take_turns_and_never_two_at_once)

/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/locks.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/str.h"
#include "unit/unit.h"

#define LONG_MS   60000
#define N_THREADS 8
#define N_ROUNDS  200

static struct volume_locks *locks;

START_TEST(second_caller_is_turned_away_at_once)
{
	struct volume_lock *first = NULL;
	struct volume_lock *second = NULL;
	struct error *err = NULL;

	locks = volume_locks_new();
	ASSERT_OK(volume_lock(locks, "v1", 0, &first, &err));
	ASSERT_FAILS(volume_lock(locks, "v1", 0, &second, &err), ERR_ABORTED, "volume v1");
	ck_assert_ptr_null(second);
	volume_unlock(first);
	ASSERT_OK(volume_lock(locks, "v1", 0, &second, &err));
	volume_unlock(second);
	volume_locks_free(locks);
}
END_TEST

static bool says(void *user, const char *id)
{
	ck_assert_str_eq(id, "v1");
	return *(const bool *)user;
}

START_TEST(housekeeping_holds_a_lock_only_for_work_that_is_there)
{
	struct volume_lock *first = NULL;
	struct volume_lock *second = NULL;
	struct error *err = NULL;
	bool work = false;

	locks = volume_locks_new();
	ck_assert(!volume_lock_if(locks, "v1", says, &work, &first));
	work = true;
	ck_assert(volume_lock_if(locks, "v1", says, &work, &first));
	ck_assert(!volume_lock_if(locks, "v1", says, &work, &second));
	ASSERT_FAILS(volume_lock(locks, "v1", 0, &second, &err), ERR_ABORTED, "volume v1");
	volume_unlock(first);
	ASSERT_OK(volume_lock(locks, "v1", 0, &second, &err));
	volume_unlock(second);
	volume_locks_free(locks);
}
END_TEST

static void assert_current_step(const char *id, const char *wanted)
{
	CLEANUP(free_charp) char *step = volume_lock_current_step(locks, id);

	/* on a busy machine seconds may pass */
	if (!wanted || !step)
		ck_assert_pstr_eq(step, wanted);
	else
		ck_assert_msg(str_starts(step, wanted), "%s", step);
}

START_TEST(what_the_holder_is_doing_is_reported)
{
	struct volume_lock *first = NULL;
	struct volume_lock *second = NULL;
	struct error *err = NULL;

	locks = volume_locks_new();
	volume_lock_set_step(locks, "v1", "nothing");
	assert_current_step("v1", NULL);
	assert_current_step(NULL, NULL);
	ASSERT_OK(volume_lock(locks, "v1", 0, &first, &err));
	assert_current_step("v1", "volume v1: at work for ");
	volume_lock_set_step(locks, "v1", "mkfs.ext4");
	ASSERT_FAILS(volume_lock(locks, "v1", 0, &second, &err), ERR_ABORTED,
		"an operation on volume v1 is in progress: mkfs.ext4 for ");
	ASSERT_OK(volume_lock(locks, "v2", 0, &second, &err));
	assert_current_step("v1", "volume v1: mkfs.ext4 for ");
	assert_current_step(NULL, "volume v1: mkfs.ext4 for ");
	volume_unlock(first);
	assert_current_step("v1", NULL);
	assert_current_step(NULL, "volume v2: at work for ");
	volume_unlock(second);
	volume_locks_free(locks);
}
END_TEST

START_TEST(volumes_do_not_block_each_other)
{
	struct volume_lock *a = NULL;
	struct volume_lock *b = NULL;
	struct volume_lock *again = NULL;
	struct error *err = NULL;

	locks = volume_locks_new();
	ASSERT_OK(volume_lock(locks, "a", 0, &a, &err));
	ASSERT_OK(volume_lock(locks, "b", 0, &b, &err));
	volume_unlock(a);
	ASSERT_FAILS(volume_lock(locks, "b", 0, &again, &err), ERR_ABORTED, "b");
	ASSERT_OK(volume_lock(locks, "a", 0, &again, &err));
	volume_unlock(b);
	volume_unlock(again);
	volume_unlock(NULL);
	volume_locks_free(locks);
}
END_TEST

START_TEST(waiting_ends_when_its_time_is_over)
{
	struct volume_lock *first = NULL;
	struct volume_lock *second = NULL;
	struct error *err = NULL;
	uint64_t start_ns = clock_ns();

	locks = volume_locks_new();
	ASSERT_OK(volume_lock(locks, "v1", 0, &first, &err));
	ASSERT_FAILS(volume_lock(locks, "v1", 20, &second, &err), ERR_ABORTED, "in progress");
	ck_assert_uint_ge(clock_ns() - start_ns, 20 * NS_PER_MS);
	volume_unlock(first);
	volume_locks_free(locks);
}
END_TEST

static sem_t waiting;

static void *wait_for_lock(void *user)
{
	struct volume_lock *l = NULL;
	struct error *err = NULL;

	(void)user;
	sem_post(&waiting);
	ck_assert_int_eq(volume_lock(locks, "v1", LONG_MS, &l, &err), 0);
	volume_unlock(l);
	return NULL;
}

START_TEST(waiting_caller_gets_the_lock_when_it_is_released)
{
	struct volume_lock *first = NULL;
	struct error *err = NULL;
	pthread_t thread;

	locks = volume_locks_new();
	sem_init(&waiting, 0, 0);
	ASSERT_OK(volume_lock(locks, "v1", 0, &first, &err));
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_lock, NULL), 0);
	sem_wait(&waiting);
	volume_unlock(first);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	volume_locks_free(locks);
}
END_TEST

/* Plain memory that only a lock guards: the thread sanitizer sees if it does not. */
static struct {
	const char *id;
	unsigned entered;
} rooms[] = {{"v1", 0}, {"v2", 0}, {"v3", 0}};

static void *enter_often(void *user)
{
	(void)user;
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		struct volume_lock *l = NULL;
		struct error *err = NULL;
		size_t room = i % ARRAY_SIZE(rooms);

		ck_assert_int_eq(volume_lock(locks, rooms[room].id, LONG_MS, &l, &err), 0);
		rooms[room].entered++;
		volume_unlock(l);
	}
	return NULL;
}

START_TEST(one_caller_at_a_time_holds_a_lock)
{
	pthread_t threads[N_THREADS];
	unsigned entered = 0;

	locks = volume_locks_new();
	for (size_t i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, enter_often, NULL), 0);
	for (size_t i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++)
		entered += rooms[i].entered;
	ck_assert_uint_eq(entered, N_THREADS * N_ROUNDS);
	volume_locks_free(locks);
}
END_TEST

static atomic_uint taken;
static atomic_uint refused;

static void *try_often(void *user)
{
	(void)user;
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		struct volume_lock *l = NULL;
		struct error *err = NULL;

		if (volume_lock(locks, "v1", 0, &l, &err) == 0) {
			rooms[0].entered++;
			atomic_fetch_add(&taken, 1);
			volume_unlock(l);
		} else {
			ck_assert_int_eq(err->code, ERR_ABORTED);
			atomic_fetch_add(&refused, 1);
			error_free(err);
		}
	}
	return NULL;
}

START_TEST(callers_that_do_not_wait_enter_or_are_turned_away)
{
	pthread_t threads[N_THREADS];

	locks = volume_locks_new();
	for (size_t i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, try_often, NULL), 0);
	for (size_t i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_uint_eq(rooms[0].entered, atomic_load(&taken));
	ck_assert_uint_eq(atomic_load(&taken) + atomic_load(&refused), N_THREADS * N_ROUNDS);
	volume_locks_free(locks);
}
END_TEST

UNIT_MAIN("locks", second_caller_is_turned_away_at_once,
	housekeeping_holds_a_lock_only_for_work_that_is_there, what_the_holder_is_doing_is_reported,
	volumes_do_not_block_each_other, waiting_ends_when_its_time_is_over,
	waiting_caller_gets_the_lock_when_it_is_released, one_caller_at_a_time_holds_a_lock,
	callers_that_do_not_wait_enter_or_are_turned_away)

#include "volume/locks.h"

#include <pthread.h>
#include <semaphore.h>

#include "base/clock.h"
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

static int inside;

static void *enter_often(void *user)
{
	(void)user;
	for (int i = 0; i < N_ROUNDS; i++) {
		struct volume_lock *l = NULL;
		struct error *err = NULL;

		ck_assert_int_eq(volume_lock(locks, "v1", LONG_MS, &l, &err), 0);
		ck_assert_int_eq(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED), 1);
		__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
		volume_unlock(l);
	}
	return NULL;
}

START_TEST(one_caller_at_a_time_holds_a_lock)
{
	pthread_t threads[N_THREADS];

	locks = volume_locks_new();
	for (size_t i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, enter_often, NULL), 0);
	for (size_t i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	volume_locks_free(locks);
}
END_TEST

UNIT_MAIN("locks", second_caller_is_turned_away_at_once, volumes_do_not_block_each_other,
	waiting_ends_when_its_time_is_over, waiting_caller_gets_the_lock_when_it_is_released,
	one_caller_at_a_time_holds_a_lock)

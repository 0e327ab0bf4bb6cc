/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/concurrency_limit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "unit/unit.h"

#define LONG_MS     60000
#define MAX_INSIDE  2
#define MAX_WAITING 3
#define N_THREADS   (MAX_INSIDE + MAX_WAITING)
#define N_ROUNDS    2000

static struct concurrency_limit *limit;
static struct concurrency_limit *inside[MAX_INSIDE];

static void fill(void)
{
	struct error *err = NULL;

	limit = concurrency_limit_new(MAX_INSIDE, MAX_WAITING);
	for (unsigned i = 0; i < MAX_INSIDE; i++)
		ASSERT_OK(concurrency_limit_enter(limit, 0, &inside[i], &err));
}

START_TEST(who_finds_it_full_is_sent_away_when_the_time_is_over)
{
	struct concurrency_limit *more = NULL;
	struct error *err = NULL;

	fill();
	for (int wait_ms = 0; wait_ms < 2; wait_ms++)
		ASSERT_FAILS(concurrency_limit_enter(limit, wait_ms, &more, &err), ERR_UNAVAILABLE,
			"2 calls are being served");
	ck_assert_ptr_null(more);
	concurrency_limit_leave(inside[0]);
	ASSERT_OK(concurrency_limit_enter(limit, 0, &more, &err));
	concurrency_limit_leave(more);
	concurrency_limit_leave(inside[1]);
	concurrency_limit_leave(NULL);
	concurrency_limit_free(limit);
}
END_TEST

static void *wait_long(void *user)
{
	CLEANUP(concurrency_limit_leavep) struct concurrency_limit *mine = NULL;

	return concurrency_limit_enter(limit, LONG_MS, &mine, user) < 0 ? user : NULL;
}

static void start_waiting(pthread_t *threads, struct error **errors)
{
	for (unsigned i = 0; i < MAX_WAITING; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_long, &errors[i]), 0);
}

static void await_full(void)
{
	struct concurrency_limit *more = NULL;
	struct error *err = NULL;
	bool full = false;

	while (!full) {
		ck_assert_int_lt(concurrency_limit_enter(limit, 0, &more, &err), 0);
		full = strstr(err->msg, "3 are queued") != NULL;
		error_clear(&err);
	}
}

START_TEST(who_waits_comes_in_when_another_leaves)
{
	pthread_t threads[MAX_WAITING];
	struct error *errors[MAX_WAITING] = {NULL};
	struct concurrency_limit *more = NULL;
	struct error *err = NULL;
	void *failed;

	fill();
	start_waiting(threads, errors);
	await_full();
	ASSERT_FAILS(concurrency_limit_enter(limit, LONG_MS, &more, &err), ERR_UNAVAILABLE, "3 are queued");
	concurrency_limit_leave(inside[0]);
	for (unsigned i = 0; i < MAX_WAITING; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	concurrency_limit_leave(inside[1]);
	concurrency_limit_free(limit);
}
END_TEST

START_TEST(closing_sends_away_who_waits_and_who_comes)
{
	pthread_t threads[MAX_WAITING];
	struct error *errors[MAX_WAITING] = {NULL};
	struct concurrency_limit *more = NULL;
	struct error *err = NULL;

	fill();
	start_waiting(threads, errors);
	await_full();
	concurrency_limit_close(limit);
	for (unsigned i = 0; i < MAX_WAITING; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_ptr_nonnull(errors[i]);
		ck_assert_str_eq(errors[i]->msg, "the driver is stopping");
		error_free(errors[i]);
	}
	concurrency_limit_leave(inside[0]);
	ASSERT_FAILS(concurrency_limit_enter(limit, LONG_MS, &more, &err), ERR_UNAVAILABLE, "stopping");
	concurrency_limit_leave(inside[1]);
	concurrency_limit_free(limit);
}
END_TEST

static atomic_uint n_inside;

static void *come_and_go(void *user)
{
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(concurrency_limit_leavep) struct concurrency_limit *mine = NULL;
		struct error *err = NULL;

		ASSERT_OK(concurrency_limit_enter(limit, LONG_MS, &mine, &err));
		ck_assert_uint_le(atomic_fetch_add(&n_inside, 1) + 1, MAX_INSIDE);
		atomic_fetch_sub(&n_inside, 1);
	}
	return user;
}

START_TEST(never_more_than_allowed_are_inside)
{
	pthread_t threads[N_THREADS];

	limit = concurrency_limit_new(MAX_INSIDE, MAX_WAITING);
	for (unsigned i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	concurrency_limit_free(limit);
}
END_TEST

UNIT_MAIN("volume/concurrency_limit", who_finds_it_full_is_sent_away_when_the_time_is_over,
	who_waits_comes_in_when_another_leaves, closing_sends_away_who_waits_and_who_comes,
	never_more_than_allowed_are_inside)

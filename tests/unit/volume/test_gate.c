/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "unit/unit.h"

#define LONG_MS     60000
#define MAX_INSIDE  2
#define MAX_WAITING 3
#define N_THREADS   (MAX_INSIDE + MAX_WAITING)
#define N_ROUNDS    2000

static struct gate *gate;
static struct gate *inside[MAX_INSIDE];

static void fill(void)
{
	struct error *err = NULL;

	gate = gate_new(MAX_INSIDE, MAX_WAITING);
	for (unsigned i = 0; i < MAX_INSIDE; i++)
		ASSERT_OK(gate_enter(gate, 0, &inside[i], &err));
}

START_TEST(who_finds_it_full_is_sent_away_when_the_time_is_over)
{
	struct gate *more = NULL;
	struct error *err = NULL;

	fill();
	for (int wait_ms = 0; wait_ms < 2; wait_ms++)
		ASSERT_FAILS(
			gate_enter(gate, wait_ms, &more, &err), ERR_UNAVAILABLE, "2 calls are being served");
	ck_assert_ptr_null(more);
	gate_leave(inside[0]);
	ASSERT_OK(gate_enter(gate, 0, &more, &err));
	gate_leave(more);
	gate_leave(inside[1]);
	gate_leave(NULL);
	gate_free(gate);
}
END_TEST

static void *wait_long(void *user)
{
	CLEANUP(gate_leavep) struct gate *mine = NULL;

	return gate_enter(gate, LONG_MS, &mine, user) < 0 ? user : NULL;
}

static void start_waiting(pthread_t *threads, struct error **errors)
{
	for (unsigned i = 0; i < MAX_WAITING; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_long, &errors[i]), 0);
}

static void await_full(void)
{
	struct gate *more = NULL;
	struct error *err = NULL;
	bool full = false;

	while (!full) {
		ck_assert_int_lt(gate_enter(gate, 0, &more, &err), 0);
		full = strstr(err->msg, "3 are queued") != NULL;
		error_clear(&err);
	}
}

START_TEST(who_waits_comes_in_when_another_leaves)
{
	pthread_t threads[MAX_WAITING];
	struct error *errors[MAX_WAITING] = {NULL};
	struct gate *more = NULL;
	struct error *err = NULL;
	void *failed;

	fill();
	start_waiting(threads, errors);
	await_full();
	ASSERT_FAILS(gate_enter(gate, LONG_MS, &more, &err), ERR_UNAVAILABLE, "3 are queued");
	gate_leave(inside[0]);
	for (unsigned i = 0; i < MAX_WAITING; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	gate_leave(inside[1]);
	gate_free(gate);
}
END_TEST

START_TEST(closing_sends_away_who_waits_and_who_comes)
{
	pthread_t threads[MAX_WAITING];
	struct error *errors[MAX_WAITING] = {NULL};
	struct gate *more = NULL;
	struct error *err = NULL;

	fill();
	start_waiting(threads, errors);
	await_full();
	gate_close(gate);
	for (unsigned i = 0; i < MAX_WAITING; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_ptr_nonnull(errors[i]);
		ck_assert_str_eq(errors[i]->msg, "the driver is stopping");
		error_free(errors[i]);
	}
	gate_leave(inside[0]);
	ASSERT_FAILS(gate_enter(gate, LONG_MS, &more, &err), ERR_UNAVAILABLE, "stopping");
	gate_leave(inside[1]);
	gate_free(gate);
}
END_TEST

static atomic_uint n_inside;

static void *come_and_go(void *user)
{
	for (unsigned i = 0; i < N_ROUNDS; i++) {
		CLEANUP(gate_leavep) struct gate *mine = NULL;
		struct error *err = NULL;

		ASSERT_OK(gate_enter(gate, LONG_MS, &mine, &err));
		ck_assert_uint_le(atomic_fetch_add(&n_inside, 1) + 1, MAX_INSIDE);
		atomic_fetch_sub(&n_inside, 1);
	}
	return user;
}

START_TEST(never_more_than_allowed_are_inside)
{
	pthread_t threads[N_THREADS];

	gate = gate_new(MAX_INSIDE, MAX_WAITING);
	for (unsigned i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	gate_free(gate);
}
END_TEST

UNIT_MAIN("volume/gate", who_finds_it_full_is_sent_away_when_the_time_is_over,
	who_waits_comes_in_when_another_leaves, closing_sends_away_who_waits_and_who_comes,
	never_more_than_allowed_are_inside)

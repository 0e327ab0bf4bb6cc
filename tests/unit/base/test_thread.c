/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>

#include "base/clock.h"
#include "unit/unit.h"

#define LONG_NS (60 * NS_PER_S)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended;
static bool has_ended;
static sigset_t mask;
static size_t stack_bytes;

static void *look(void *user)
{
	pthread_attr_t attr;

	ck_assert_ptr_eq(user, &mask);
	pthread_mutex_lock(&mutex);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attr), 0);
	pthread_attr_getstacksize(&attr, &stack_bytes);
	pthread_attr_destroy(&attr);
	has_ended = true;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void run_look(size_t wanted_bytes)
{
	uint64_t deadline_ns = clock_ns() + LONG_NS;

	thread_cond_init(&ended);
	ck_assert_int_eq(thread_start(look, &mask, wanted_bytes), 0);
	pthread_mutex_lock(&mutex);
	while (!has_ended)
		ck_assert(thread_wait_until(&ended, &mutex, deadline_ns));
	pthread_mutex_unlock(&mutex);
}

START_TEST(no_signal_interrupts_such_a_thread_and_the_starter_keeps_its_mask)
{
	sigset_t own;

	run_look(0);
	ck_assert(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGCHLD) && sigismember(&mask, SIGPIPE));
	pthread_sigmask(SIG_SETMASK, NULL, &own);
	ck_assert(!sigismember(&own, SIGTERM));
}
END_TEST

START_TEST(stack_has_the_size_that_is_asked_for)
{
	run_look(256U << 10);
	ck_assert_uint_eq(stack_bytes, 256U << 10);
}
END_TEST

START_TEST(wait_ends_with_the_time)
{
	pthread_cond_t never;

	thread_cond_init(&never);
	pthread_mutex_lock(&mutex);
	uint64_t deadline_ns = clock_ns() + NS_PER_MS;
	/* it may end without a reason before */
	while (thread_wait_until(&never, &mutex, deadline_ns))
		;
	ck_assert_uint_ge(clock_ns(), deadline_ns);
	ck_assert(!thread_wait_until(&never, &mutex, 0));
	pthread_mutex_unlock(&mutex);
	pthread_cond_destroy(&never);
}
END_TEST

START_TEST(thread_that_cannot_be_started_is_reported)
{
	ck_assert_int_ne(thread_start(look, &mask, SIZE_MAX / 2), 0);
}
END_TEST

UNIT_MAIN("base/thread", no_signal_interrupts_such_a_thread_and_the_starter_keeps_its_mask,
	stack_has_the_size_that_is_asked_for, wait_ends_with_the_time,
	thread_that_cannot_be_started_is_reported)

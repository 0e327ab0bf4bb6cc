/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

int thread_start(void *(*run)(void *user), void *user, size_t stack_bytes)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack_bytes > 0)
		pthread_attr_setstacksize(&attr, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int why = pthread_create(&thread, &attr, run, user);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return why;
}

void thread_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

bool thread_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline_ns)
{
	const struct timespec end = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S), .tv_nsec = (long)(deadline_ns % NS_PER_S)};

	return pthread_cond_timedwait(c, m, &end) == 0;
}

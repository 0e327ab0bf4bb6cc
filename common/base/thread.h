/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - detached threads, and waiting by the monotonic clock (clock.h).
 *
 * Signals are for the main thread: none interrupts the system calls of the others. Threads: safe.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/**
 * thread_start() - run @run(@user) on a detached thread with all signals blocked.
 * @stack_bytes: 0: the default
 *
 * Return: 0, or the errno that says why there is none.
 */
int thread_start(void *(*run)(void *user), void *user, size_t stack_bytes) MUST_CHECK;

/** thread_cond_init() - a condition for thread_wait_until(); pthread_cond_destroy(). */
void thread_cond_init(pthread_cond_t *c);

/** thread_wait_until() - pthread_cond_wait() until @deadline_ns at most. Return: whether there is time left.
 */
bool thread_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounded_lock.h - a lock for operations that may hang in the kernel: waiting is bounded, and a caller that
 * does not get it learns what its holder is doing and for how long. Threads: safe.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define BOUNDED_LOCK_STEP_MAX 96

struct bounded_lock {
	pthread_mutex_t mutex; /* for what follows; held for moments */
	pthread_cond_t ended;
	bool busy;
	char current_step[BOUNDED_LOCK_STEP_MAX];
	uint64_t since_ns;
};

/** bounded_lock_init() - no operation holds it. bounded_lock_done(). */
void bounded_lock_init(struct bounded_lock *l);

/** bounded_lock_done() - release @l, which no operation holds or waits for. */
void bounded_lock_done(struct bounded_lock *l);

/**
 * bounded_lock_take() - wait until the lock is free, and take it.
 * @step:    what will be done, for others; cut off after BOUNDED_LOCK_STEP_MAX - 1 bytes
 * @wait_ms: how long at most. Nor is what has been going on for that long waited for: it hangs, and each
 * caller that waits holds a thread
 * @ret:     @l, for bounded_lock_release()
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE that says what is being done and since when.
 */
int bounded_lock_take(struct bounded_lock *l, const char *step, int wait_ms, struct bounded_lock **ret,
	struct error **err) MUST_CHECK;

/** bounded_lock_release() - let the next operation begin. NULL is allowed. */
void bounded_lock_release(struct bounded_lock *l);
DEFINE_CLEANUP(struct bounded_lock *, bounded_lock_release);

/** bounded_lock_current_step() - what is being done. @ret_step: "" when nothing is. Return: since when, as
 * clock_ns(). Never waits. */
uint64_t bounded_lock_current_step(struct bounded_lock *l, char ret_step[static BOUNDED_LOCK_STEP_MAX]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * concurrency_limit.h - how many may do something slow at once. How many threads wait is bounded, too, in
 * number and in time, since each that waits holds a thread. Threads: safe.
 */
#pragma once

#include "base/error.h"

struct concurrency_limit;

/** concurrency_limit_new() - nobody is inside yet. @max_inside: at once; @max_waiting: before it. Return:
 * never NULL; concurrency_limit_free(). */
struct concurrency_limit *concurrency_limit_new(unsigned max_inside, unsigned max_waiting);

/** concurrency_limit_free() - release @g, in and before which nobody is. NULL is allowed. */
void concurrency_limit_free(struct concurrency_limit *g);

/** concurrency_limit_close() - who waits is sent away, and nobody gets in any more. Idempotent. */
void concurrency_limit_close(struct concurrency_limit *g);

/**
 * concurrency_limit_enter() - get in, after waiting if it must be.
 * @wait_ms: how long at most; 0: not at all
 * @ret:     @g, for concurrency_limit_leave()
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (too many are inside and wait; the time is over; closed).
 */
int concurrency_limit_enter(struct concurrency_limit *g, int wait_ms, struct concurrency_limit **ret,
	struct error **err) MUST_CHECK;

/** concurrency_limit_leave() - let the next one in. NULL is allowed. */
void concurrency_limit_leave(struct concurrency_limit *g);
DEFINE_CLEANUP(struct concurrency_limit *, concurrency_limit_leave);

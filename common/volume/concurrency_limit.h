/* SPDX-License-Identifier: Apache-2.0 */
/*
 * concurrency_limit.h - limits how many threads do something slow at the same time. The number of threads
 * that wait and the time for which they wait are limited, too, since each of them is a worker. Threads: safe.
 */
#pragma once

#include "base/error.h"

struct concurrency_limit;

/** concurrency_limit_new() - make a limit of at most @max_inside threads at once, and @max_waiting that wait.
 * Return: never NULL; concurrency_limit_free(). */
struct concurrency_limit *concurrency_limit_new(unsigned max_inside, unsigned max_waiting);

/** concurrency_limit_free() - release @limit, when no thread is inside or waits. NULL is allowed. */
void concurrency_limit_free(struct concurrency_limit *limit);

/** concurrency_limit_close() - refuse all threads that wait or enter later. Idempotent. */
void concurrency_limit_close(struct concurrency_limit *limit);

/**
 * concurrency_limit_enter() - take one of the places, and wait for one if all are taken.
 * @wait_ms: how long at most; 0: not at all
 * @ret:     @limit, for concurrency_limit_leave()
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (too many threads wait already; no place became free in time;
 * closed).
 */
int concurrency_limit_enter(struct concurrency_limit *limit, int wait_ms, struct concurrency_limit **ret,
	struct error **err) MUST_CHECK;

/** concurrency_limit_leave() - give the place to the next thread. NULL is allowed. */
void concurrency_limit_leave(struct concurrency_limit *limit);
DEFINE_CLEANUP(struct concurrency_limit *, concurrency_limit_leave);

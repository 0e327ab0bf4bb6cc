/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.h - a bounded pool of threads for work that may block: started on demand, up to a fixed number,
 * without a queue.
 *
 * When no thread is free, the work is refused at once, and the caller answers UNAVAILABLE. Idle threads end
 * after 60 s. Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

#define WORKERS_DEFAULT_MAX 32

struct workers;

/** workers_new() - a pool of at most @max threads; none is started yet. Return: never NULL; workers_free().
 */
struct workers *workers_new(unsigned max);

/** workers_free() - wait for running work, end all threads. NULL is allowed. Blocks. */
void workers_free(struct workers *w);
DEFINE_CLEANUP(struct workers *, workers_free);

struct workers_usage {
	unsigned busy;
	unsigned max;
};

/** workers_usage() - how many threads have work now. Never waits for work. */
void workers_usage(struct workers *w, struct workers_usage *ret);

/**
 * workers_run() - run @work(@user) and then @done(@user) on some thread.
 * @done: must not wait; its thread counts as free already
 * Return: false when all threads are busy; nothing happens then.
 */
bool workers_run(
	struct workers *w, void (*work)(void *user), void (*done)(void *user), void *user) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_queue.h - a queue of the keys of objects that have to be brought to their desired state. Each key is
 * worked on at most once at a time.
 *
 * A key that is added waits for its turn; the key that was added or worked on longest ago comes first. Adding
 * it again before that changes nothing; adding it while it is worked on gives it another turn. A key whose
 * work has failed waits for its back-off (backoff.h), while others are worked on. Threads: the loop's.
 * Nothing blocks, and memory is held only for keys that wait, are worked on, or may not be worked on again
 * yet. Source: client-go util/workqueue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct work_queue;

enum work_result {
	WORK_DONE,
	WORK_FAILED, /* to be repeated after the back-off */
};

struct work_queue_config {
	/* Works on @key: compares the desired state with the actual one, and starts a request if they differ.
	 * It calls work_queue_end() exactly once, before or after it returns, except for keys that
	 * work_queue_clear() drops. @key is borrowed until then. It may add keys, but not clear or free the
	 * queue. */
	void (*work)(void *user, const char *key);
	void *user;
	unsigned max_running;
	uint64_t interval_ns; /* shortest time between two beginnings of work on one key; 0: no limit */
	uint64_t (*now_ns)(void *user); /* gets .user; NULL: clock_ns() */
};

/** work_queue_new() - an empty queue. Return: never NULL; work_queue_free(). */
struct work_queue *work_queue_new(const struct work_queue_config *config);

/** work_queue_free() - call work_queue_clear() and release @q. NULL is allowed. */
void work_queue_free(struct work_queue *q);
DEFINE_CLEANUP(struct work_queue *, work_queue_free);

/** work_queue_add() - add @key (copied). Work on it begins when work_queue_run() is called. */
void work_queue_add(struct work_queue *q, const char *key);

/** work_queue_end() - report the result of the work on @key. A key that was dropped meanwhile is ignored. */
void work_queue_end(struct work_queue *q, const char *key, enum work_result result);

/** work_queue_run() - begin work on as many keys as may be worked on now. To be called after keys were added
 * or work has ended, and every second for those that wait for a time. Calls from inside of work() are
 * ignored. */
void work_queue_run(struct work_queue *q);

/** work_queue_clear() - drop all keys, also those that are worked on, whose requests the caller cancels
 * first. */
void work_queue_clear(struct work_queue *q);

/** work_queue_failing() - count the keys whose last work has failed. */
size_t work_queue_failing(const struct work_queue *q);

/** work_queue_pending() - count the keys that wait or are worked on, for metrics; keys that are remembered
 * only because they may not be worked on again yet do not count. */
size_t work_queue_pending(const struct work_queue *q);

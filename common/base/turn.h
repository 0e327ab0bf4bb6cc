/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn.h - one at a time, where the one at work may hang in the kernel: waiting is bounded, and those who
 * waited in vain learn what is being done and for how long. Threads: safe.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TURN_TEXT_MAX 96

struct turn {
	pthread_mutex_t mutex; /* for what follows; held for moments */
	pthread_cond_t ended;
	bool busy;
	char current_step[TURN_TEXT_MAX];
	uint64_t since_ns;
};

/** turn_init() - nobody is at work yet. turn_done(). */
void turn_init(struct turn *t);

/** turn_done() - release @t, at which nobody is. */
void turn_done(struct turn *t);

/**
 * turn_take() - wait until it is our turn.
 * @step:    what will be done, for others; cut off after TURN_TEXT_MAX - 1 bytes
 * @wait_ms: how long at most. Nor is what has been going on for that long waited for: it hangs, and each
 * caller that waits holds a thread
 * @ret:     @t, for turn_end()
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE that says what is being done and since when.
 */
int turn_take(
	struct turn *t, const char *step, int wait_ms, struct turn **ret, struct error **err) MUST_CHECK;

/** turn_end() - let the next one go on. NULL is allowed. */
void turn_end(struct turn *t);
DEFINE_CLEANUP(struct turn *, turn_end);

/** turn_look() - what is being done. @ret_step: "" when nothing is. Return: since when, as clock_ns(). Never
 * waits. */
uint64_t turn_look(struct turn *t, char ret_step[static TURN_TEXT_MAX]);

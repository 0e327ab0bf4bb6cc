/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_waits.h - counts the calls that wait for the lock of a volume because they copy it, so that a crowd
 * of clones of one volume does not hold the threads of all other calls.
 *
 * Threads: the caller guards the list with its mutex. Nothing blocks.
 */
#pragma once

#include <stdbool.h>

/* A call that waits; in the frame of its caller. */
struct source_wait {
	const char *source; /* handle; borrowed */
	struct source_wait *next;
};

/* Calls that wait; zeroed: none. */
struct source_waits {
	struct source_wait *first;
};

/** source_waits_enter() - a call is going to wait for @w->source. Return: true: source_waits_leave() when it
 * has waited; false: four others do that already. */
bool source_waits_enter(struct source_waits *waits, struct source_wait *w);

/** source_waits_leave() - it waits no more. @w: of a source_waits_enter() that returned true */
void source_waits_leave(struct source_waits *waits, const struct source_wait *w);

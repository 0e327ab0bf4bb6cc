/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - one call, tried again and again, with the n-th of the calls that it makes failing, for every n.
 *
 * A failure has to be a clean one: an error that names its cause and has a code that lets the caller try
 * again, and nothing held on to. The same call then has to succeed, and to end where it would have ended
 * without. After what a caller has to try again by itself (EINTR, short reads and writes) it succeeds at
 * once.
 */
#pragma once

#include <stdbool.h>

#include "unit/inject/inject.h"
#include "unit/unit.h"

struct sweep {
	const char *name;
	const char *folder;  /* as for held_now() */
	unsigned kinds;      /* 0: all */
	unsigned min_points; /* so that it cannot become empty unseen */
	unsigned codes;      /* 1 << ERR_x: further ones to fail with than those that any call may have */
	bool brief;          /* each n fails in one way, in turn, not in all; every fifth n lastingly */
	bool once;           /* not with failures that last, after which the call alone cannot tidy up */
	bool keeps;          /* what a failed call holds belongs to an object that undo() destroys */
	void (*prepare)(void);
	int (*call)(struct error **err);
	const char *(*wrong_after_failure)(void); /* NULL: right; not asked when the failure lasts */
	const char *(*wrong_at_end)(void);        /* NULL: right */
	void (*undo)(void);                       /* back to before prepare() */
};

/** RIGHT_IF() - in a function that returns what is wrong: go on if so. */
#define RIGHT_IF(condition)                                                                                  \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			return "not so: " #condition;                                                        \
	} while (0)

/** sweep_find() - run @s. Return: what is wrong, caller frees, or NULL. */
char *sweep_find(const struct sweep *s);

/** sweep_run() - run @s; the test fails when something is wrong. Says how many calls were tried. */
void sweep_run(const struct sweep *s);

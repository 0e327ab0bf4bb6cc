/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_turns.h - shares a token bucket among parties, of which some may want more than all the others.
 *
 * Each party has a bucket of its own besides, which limits how much of the common one it can use up. Keys for
 * which there is no token wait for their turn: parties take turns, and the keys of one party have theirs in
 * the order in which they began to wait. A key waits once, however often it is asked for, so that its
 * owner does only what is necessary when the turn comes. While parties wait for the common bucket, no
 * other overtakes them. Pure: callers say what time it is. Threads: one owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pacing/bucket.h"

/* A turn that is not used for so long, because nothing is to be done any more, is over. */
#define FAIR_TURNS_UNUSED_NS 60000000000ULL

struct fair_turns;

struct fair_turns_config {
	struct bucket *common;     /* borrowed */
	unsigned share_per_second; /* of one party */
	unsigned share_burst;
	/* @key, which has waited, has its turn: the next fair_turns_take() for it succeeds. It must not call
	 * functions of fair_turns. @key is borrowed for the call. */
	void (*due)(void *user, const char *key);
	void *user;
};

/** fair_turns_new() - no key waits. Return: never NULL; fair_turns_free(). */
struct fair_turns *fair_turns_new(const struct fair_turns_config *config);

/** fair_turns_free() - what waits has no turn any more. NULL is allowed. */
void fair_turns_free(struct fair_turns *t);
DEFINE_CLEANUP(struct fair_turns *, fair_turns_free);

/** fair_turns_take() - a token for @key at the expense of @party; both are copied. Return: false: the key
 * waits, and due() is called in its turn. */
bool fair_turns_take(struct fair_turns *t, const char *party, const char *key, uint64_t now_ns);

/** fair_turns_forget() - @key needs no turn any more; it need not have one, or wait. */
void fair_turns_forget(struct fair_turns *t, const char *key);

/** fair_turns_busier() - whether party @a has used up more of its share than @b. */
bool fair_turns_busier(const struct fair_turns *t, const char *a, const char *b, uint64_t now_ns);

/** fair_turns_run() - give turns to keys that wait, as far as there are tokens. To be called each second. */
void fair_turns_run(struct fair_turns *t, uint64_t now_ns);

/** fair_turns_waiting() - how many keys wait, for metrics. */
size_t fair_turns_waiting(const struct fair_turns *t);

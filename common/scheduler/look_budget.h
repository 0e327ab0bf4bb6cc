/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_budget.h - how many look-ups may find nothing, for each party that asks for them: an address, or a
 * namespace. A look-up is charged when it begins, and given back if it has found something, so that parties
 * with bogus names have a share of the requests, and others keep theirs. It knows a limited number of
 * parties; the one that has not asked for the longest time is forgotten. Threads: one owner. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pacing/bucket.h"

#define LOOK_BUDGET_PARTIES 256

struct look_budget {
	unsigned per_second; /* for each party; 0: no limit */
	unsigned burst;
	struct look_party {
		char *name; /* NULL: none */
		uint64_t asked_ns;
		struct bucket bucket;
	} parties[LOOK_BUDGET_PARTIES];
};

/** look_budget_done() - release the names. */
void look_budget_done(struct look_budget *b);

/** look_budget_take() - charge one look-up to @party. @now_ns: of clock_ns(). Return: whether it may begin;
 * nothing is charged otherwise. */
bool look_budget_take(struct look_budget *b, const char *party, uint64_t now_ns);

/** look_budget_give_back() - undo one look_budget_take() of @party, which may be forgotten. */
void look_budget_give_back(struct look_budget *b, const char *party);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_waits.h - when to report a claim that waits. Pure; no clock. Threads: none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIM_WAIT_NS   (10 * 1000000000ULL)
#define CLAIM_CHANGE_NS (180 * 1000000000ULL)
#define CLAIM_REPEAT_NS (1800 * 1000000000ULL)

/* Further claims are not reported before another one has gone. */
#define CLAIM_WAITS_MAX 256

struct claim_wait {
	char *uid;
	uint64_t since_ns;
	uint64_t reported_ns;
	char *reported; /* message of the last Event; NULL: none yet */
	bool seen;      /* in this round */
};

struct claim_waits {
	struct claim_wait *list;
	size_t n;
};

/** claim_waits_done() - release what @w owns; safe on a zeroed one. */
void claim_waits_done(struct claim_waits *w);

/** claim_waits_see() - in this round the claim @uid waits because of @message. Return: whether an Event is
 * due now, which then counts as written. */
bool claim_waits_see(struct claim_waits *w, const char *uid, const char *message, uint64_t now_ns);

/** claim_waits_end() - the round is over: drop the claims that no longer wait. */
void claim_waits_end(struct claim_waits *w);

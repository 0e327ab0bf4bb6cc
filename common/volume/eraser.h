/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eraser.h - when deleted volumes are erased, by whom and how fast; what erasing is, the caller says.
 *
 * A queue of volume IDs, worked off by a few threads that exist only while there is work, so that an erasure
 * of minutes holds nobody's call. What fails is tried again, later each time, and told once per reason. All
 * erasures share one limit of bytes per second. What is left when the eraser ends is in the state folder.
 * Threads: safe. Blocks: only where it is said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "volume/locks.h"

#define ERASER_THREADS 4

struct eraser;
struct erasure; /* of one volume */

/* What is held already of a volume that is to be erased, so that nobody comes between. */
struct erase_claim {
	struct volume_lock *lock; /* NULL: not held */
	int fd;                   /* exclusive descriptor of the device; -1: none */
};
#define ERASE_CLAIM_NONE ((struct erase_claim){.fd = -1})

/** erase_claim_done() - let go of @c; safe on ERASE_CLAIM_NONE and twice. */
void erase_claim_done(struct erase_claim *c);

struct eraser_config {
	/* Erases volume @id and makes it go. @claim: what it takes over it clears there. Any thread. Return:
	 * 0, or -1: it is called again. */
	int (*erase)(
		void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err);
	void *user;
	uint64_t bytes_per_s; /* 0: no limit */
	uint64_t retry_ms;    /* until the first retry, doubled for each further one; 0: a second */
	bool in_call;         /* no threads: eraser_add() itself erases, and says how that ended */
};

/** eraser_new() - nothing to do yet. @config: copied. Return: never NULL; eraser_free(). */
struct eraser *eraser_new(const struct eraser_config *config);

/** eraser_stop() - begin nothing more and end what is running at its next turn. Idempotent. Never waits. */
void eraser_stop(struct eraser *e);

/** eraser_free() - eraser_stop(), wait until nothing runs, forget what is left. NULL is allowed. */
void eraser_free(struct eraser *e);

/**
 * eraser_add() - have a volume erased now, or, if that failed before, now again.
 * @id:    copied
 * @claim: taken over; NULL: nothing is held yet. Idempotent without one
 *
 * Return: 0; with eraser_config.in_call as erase().
 */
int eraser_add(struct eraser *e, const char *id, struct erase_claim *claim, struct error **err) MUST_CHECK;

/**
 * erasure_turn() - for erase(): wait until the next piece may be written.
 * @left_bytes: what there is to write
 * @ret_bytes:  how much of it may be written now: a multiple of 64 KiB, or all
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE: the eraser is to stop.
 */
int erasure_turn(struct erasure *e, uint64_t left_bytes, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/** erasure_note() - for erase(): so much is done. @done_bytes: from the start of the device; @written_bytes:
 * since the last note */
void erasure_note(struct erasure *e, uint64_t done_bytes, uint64_t written_bytes);

/** erasure_is_retry() - for erase(): it has failed before, so what is done has been told. */
bool erasure_is_retry(const struct erasure *e);

/** eraser_is_stopping() - eraser_stop() was called. */
bool eraser_is_stopping(struct eraser *e);

struct eraser_counts {
	unsigned n_running;
	uint64_t erased_bytes; /* by all erasures so far */
};

/** eraser_count() - Never waits. */
void eraser_count(struct eraser *e, struct eraser_counts *ret);

/** eraser_done_bytes() - as noted last for @id; 0: nothing is known of it. Never waits. */
uint64_t eraser_done_bytes(struct eraser *e, const char *id);

struct erase_limit {
	uint64_t bytes_per_s; /* 0: none */
	uint64_t next_ns;     /* when the next piece may begin */
};

/** erase_limit_reserve() - put a piece of @bytes (at most 64 MiB) behind those that were reserved before.
 * Return: when it may begin, on the clock of @now_ns. Pure but for @l. */
uint64_t erase_limit_reserve(struct erase_limit *l, uint64_t now_ns, uint64_t bytes);

/** erase_limit_piece() - how much to write at once: short enough to stop soon and to share evenly. Pure. */
uint64_t erase_limit_piece(const struct erase_limit *l, uint64_t left_bytes);

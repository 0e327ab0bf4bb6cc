/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erase_queue.h - a queue with a rate limit: when deleted volumes are erased, by which thread and how fast.
 *
 * A few threads, which exist only while there is work, erase the volumes in the queue, so that an erasure
 * that takes minutes blocks no call. A failed erasure is retried after a growing back-off, and each reason is
 * logged once. All erasures share one limit of bytes per second. Volumes that are not erased when the queue
 * is freed are still recorded in the state folder. Threads: safe. Blocks only where a comment says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "volume/locks.h"

#define ERASE_QUEUE_THREADS 4

struct erase_queue;
struct erasure; /* of one volume */

/* The lock and the device of a volume that is to be erased, if the caller holds them already, so that no
 * other operation can come in between. */
struct erase_claim {
	struct volume_lock *lock; /* NULL: not held */
	int fd;                   /* exclusive descriptor of the device; -1: none */
};
#define ERASE_CLAIM_NONE ((struct erase_claim){.fd = -1})

/** erase_claim_done() - release what @c holds; safe on ERASE_CLAIM_NONE and twice. */
void erase_claim_done(struct erase_claim *c);

struct erase_queue_config {
	/* Erases volume @id and removes it. @claim: the callee clears there what it takes over. Called from
	 * any thread. Return: 0, or -1: it is called again. */
	int (*erase)(
		void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err);
	void *user;
	uint64_t bytes_per_s; /* 0: no limit */
	uint64_t retry_ms;    /* until the first retry, doubled for each further one; 0: a second */
	bool in_call;         /* no threads: erase_queue_add() itself erases, and returns the result */
};

/** erase_queue_new() - make an empty queue. @config: copied. Return: never NULL; erase_queue_free(). */
struct erase_queue *erase_queue_new(const struct erase_queue_config *config);

/** erase_queue_stop() - begin no further erasure, and end those that run at their next erasure_turn().
 * Idempotent. Never waits. */
void erase_queue_stop(struct erase_queue *e);

/** erase_queue_free() - erase_queue_stop(), wait until no erasure runs, and release @e. NULL is allowed. */
void erase_queue_free(struct erase_queue *e);

/**
 * erase_queue_add() - have a volume erased at once, even if an earlier erasure of it failed and waits for its
 * back-off.
 * @id:    copied
 * @claim: taken over; NULL: nothing is held yet. Idempotent without one
 *
 * Return: 0; with erase_queue_config.in_call as erase().
 */
int erase_queue_add(
	struct erase_queue *e, const char *id, struct erase_claim *claim, struct error **err) MUST_CHECK;

/**
 * erasure_turn() - for erase(): wait until the next piece may be written.
 * @left_bytes: what there is to write
 * @ret_bytes:  how much of it may be written now: a multiple of 64 KiB, or all
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE: the queue is stopping.
 */
int erasure_turn(struct erasure *e, uint64_t left_bytes, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/** erasure_limit() - for erase(): the volume has a limit of its own from now on, beside that of the queue.
 * @bytes_per_s: 0: none */
void erasure_limit(struct erasure *e, uint64_t bytes_per_s);

/** erasure_note() - for erase(): record progress. @done_bytes: from the start of the device; @written_bytes:
 * since the last note */
void erasure_note(struct erasure *e, uint64_t done_bytes, uint64_t written_bytes);

/** erasure_is_retry() - for erase(): whether this erasure has failed before, so that its start has been
 * logged. */
bool erasure_is_retry(const struct erasure *e);

/** erase_queue_is_stopping() - whether erase_queue_stop() was called. */
bool erase_queue_is_stopping(struct erase_queue *e);

struct erase_queue_counts {
	unsigned n_running;
	uint64_t erased_bytes; /* by all erasures so far */
};

/** erase_queue_count() - get the counts. Never waits. */
void erase_queue_count(struct erase_queue *e, struct erase_queue_counts *ret);

/** erase_queue_done_bytes() - get what erasure_note() recorded last for @id; 0: nothing. Never waits. */
uint64_t erase_queue_done_bytes(struct erase_queue *e, const char *id);

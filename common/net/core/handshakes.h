/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handshakes.h - TLS handshakes on threads of their own, so that signatures do not hold up the loop.
 *
 * At most LIMIT_HANDSHAKE_THREADS steps run at a time, others wait in the order they came, handshakes that
 * have begun before those that have not. While a step runs, the loop touches neither the tls nor the buffers
 * of its job. Threads: the loop's; @done is called there.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/core/loop.h"
#include "net/tls/tls.h"

struct handshakes;

struct handshake {
	struct tls *tls; /* owned by the job while it runs or waits */
	struct buf in;   /* bytes of the peer that were not processed yet */
	struct buf out;  /* bytes for the peer */
	bool complete;
	struct error *error;
	void (*done)(void *user); /* the step has ended */
	void *user;
	struct handshake *next;   /* private to handshakes.c */
	struct handshakes *owner; /* NULL before the first step */
};

/** handshakes_new() - no thread is started yet. Return: never NULL; handshakes_free(). */
struct handshakes *handshakes_new(struct loop *loop);

/** handshakes_free() - wait for running steps, and call @done of all jobs that are left; @done must not start
 * another step. To be called when the loop no longer runs, after everything that uses these handshakes was
 * freed. Blocks. NULL is allowed. */
void handshakes_free(struct handshakes *h);
DEFINE_CLEANUP(struct handshakes *, handshakes_free);

/** handshakes_step() - run one tls_handshake() on @job, which stays where it is until @job->done. The loop
 * does not end before that (loop_hold()). */
void handshakes_step(struct handshakes *h, struct handshake *job);

/** handshakes_waiting() - the number of steps that wait for a thread. */
unsigned handshakes_waiting(const struct handshakes *h);

/** handshakes_cancel() - the result of @job's step is no longer needed. Return: true when the step had not
 * begun: @job belongs to the caller again, and @job->done is not called; false when it is running:
 * @job->done will be called. */
bool handshakes_cancel(struct handshake *job);

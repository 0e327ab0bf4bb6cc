/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - how many may do something slow at once. How many threads wait is bounded, too, in number and in
 * time, since each that waits holds a thread. Threads: safe.
 */
#pragma once

#include "base/error.h"

struct gate;

/** gate_new() - nobody is inside yet. @max_inside: at once; @max_waiting: before it. Return: never NULL;
 * gate_free(). */
struct gate *gate_new(unsigned max_inside, unsigned max_waiting);

/** gate_free() - release @g, in and before which nobody is. NULL is allowed. */
void gate_free(struct gate *g);

/** gate_close() - who waits is sent away, and nobody gets in any more. Idempotent. */
void gate_close(struct gate *g);

/**
 * gate_enter() - get in, after waiting if it must be.
 * @wait_ms: how long at most; 0: not at all
 * @ret:     @g, for gate_leave()
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (too many are inside and wait; the time is over; closed).
 */
int gate_enter(struct gate *g, int wait_ms, struct gate **ret, struct error **err) MUST_CHECK;

/** gate_leave() - let the next one in. NULL is allowed. */
void gate_leave(struct gate *g);
DEFINE_CLEANUP(struct gate *, gate_leave);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_pause.h - estimates, before anything is stopped, how long the writers of volumes would have to stand
 * still for a copy of them.
 *
 * The estimate is of what was measured a short time ago, so that one slow copy does not refuse those that
 * come later. Threads: as the caller guards it. Nothing blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Copies of fewer bytes say nothing about the speed. */
#define COPY_PACE_LEAST_BYTES (16ULL << 20)

/* Copies of at most so many bytes are not refused because of a speed that was measured: they measure it. */
#define COPY_SMALL_BYTES (64ULL << 20)

/* How fast volumes are copied; zeroed: not known. */
struct copy_pace {
	uint64_t bytes_per_s;
	uint64_t measured_ns; /* as clock_ns() */
};

/**
 * copy_pace_note() - a copy has ended, or was cut off.
 * @bytes:             that it has copied
 * @ns:                how long it took
 * @limit_bytes_per_s: its own limit, if that may have decided how fast it was; 0: none
 * @now_ns:            of clock_ns()
 *
 * A copy that its own limit has slowed down says nothing about others.
 */
void copy_pace_note(
	struct copy_pace *p, uint64_t bytes, uint64_t ns, uint64_t limit_bytes_per_s, uint64_t now_ns);

/** copy_pace_get() - the last measured speed, in bytes per second; 0: not known, or older than three minutes
 * at @now_ns. */
uint64_t copy_pace_get(const struct copy_pace *p, uint64_t now_ns);

/* The work that writers of one volume would have to wait for. */
struct copy_work {
	const char *id; /* of the volume; borrowed */
	uint64_t files;
	uint64_t walk_ns; /* in which these were flushed a moment ago */
	uint64_t bytes;
	uint64_t bytes_per_s;       /* as measured; 0: not known */
	uint64_t limit_bytes_per_s; /* that is kept in any case; 0: none */
};

/* The same of all volumes that are copied together; zeroed: none. */
struct copy_estimate {
	const char *first; /* ID of the volume that was added first; borrowed */
	size_t n;
	uint64_t files;
	uint64_t walk_ns;
	uint64_t bytes;
	uint64_t copy_ms;  /* by what was measured and by limits */
	uint64_t limit_ms; /* by limits only */
};

/** copy_estimate_add() - add the work for one more volume. */
void copy_estimate_add(struct copy_estimate *p, const struct copy_work *w);

/** copy_estimate_check() - whether all fits into @max_pause_ms. Return: 0, or -1 with ERR_PRECONDITION and
 * the figures. */
int copy_estimate_check(const struct copy_estimate *p, uint64_t max_pause_ms, struct error **err) MUST_CHECK;

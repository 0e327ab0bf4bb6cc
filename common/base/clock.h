/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the one clock of the project: CLOCK_MONOTONIC in nanoseconds. Threads: safe.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000ULL
#define NS_PER_S  1000000000ULL

/** deadline that never comes */
#define DEADLINE_NONE UINT64_MAX

/** clock_ns() - now, in nanoseconds since an arbitrary start. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/** clock_left_ms() - milliseconds until @deadline_ns, at least 0, at most @cap_ms. */
static inline int clock_left_ms(uint64_t deadline_ns, int cap_ms)
{
	uint64_t now = clock_ns();

	if (deadline_ns <= now)
		return 0;
	uint64_t left = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return left > (uint64_t)cap_ms ? cap_ms : (int)left;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing.h - pools in which devices could not be made, and for how long they are avoided: a region that
 * fails every write would otherwise be the best fit for each new volume, again and again. Threads: the caller
 * has a lock. Pure: time is a parameter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define FAILING_FIRST_S 10
#define FAILING_MAX_S   300

struct failing;

/** failing_new() - no pool has failed yet. Return: never NULL; failing_free(). */
struct failing *failing_new(void);

/** failing_free() - release @f; NULL is allowed. */
void failing_free(struct failing *f);

/** failing_note() - a device could not be made in @pool (uuid) at @now_ns. It is avoided for FAILING_FIRST_S,
 * after each further failure for twice as long, up to FAILING_MAX_S. Return: seconds. */
unsigned failing_note(struct failing *f, const char *pool, uint64_t now_ns);

/** failing_clear() - a device was made in @pool. Return: whether it had failed before. */
bool failing_clear(struct failing *f, const char *pool);

/** failing_avoids() - whether @pool is to be avoided at @now_ns. */
bool failing_avoids(const struct failing *f, const char *pool, uint64_t now_ns);

/** failing_has() - whether the last device that was to be made in @pool could not be made there, however long
 * ago. */
bool failing_has(const struct failing *f, const char *pool);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing_pools.h - pools in which devices could not be created, and for how long they are avoided. Otherwise
 * a region where every write fails could be chosen for each new volume, because it stays the best fit.
 * Threads: the caller has a lock. Pure: time is a parameter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define FAILING_FIRST_S 10
#define FAILING_MAX_S   300

struct failing_pools;

/** failing_pools_new() - no pool has failed yet. Return: never NULL; failing_pools_free(). */
struct failing_pools *failing_pools_new(void);

/** failing_pools_free() - release @f; NULL is allowed. */
void failing_pools_free(struct failing_pools *f);

/** failing_pools_note() - record that a device could not be created in @pool (uuid) at @now_ns. It is avoided
 * for FAILING_FIRST_S, after each further failure for twice as long, up to FAILING_MAX_S. Return: seconds. */
unsigned failing_pools_note(struct failing_pools *f, const char *pool, uint64_t now_ns);

/** failing_pools_clear() - record that a device was created in @pool. Return: whether it had failed before.
 */
bool failing_pools_clear(struct failing_pools *f, const char *pool);

/** failing_pools_avoids() - whether @pool is to be avoided at @now_ns. */
bool failing_pools_avoids(const struct failing_pools *f, const char *pool, uint64_t now_ns);

/** failing_pools_has() - whether the last attempt to create a device in @pool failed, however long ago. */
bool failing_pools_has(const struct failing_pools *f, const char *pool);

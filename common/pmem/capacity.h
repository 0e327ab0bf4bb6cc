/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.h - the capacity of a pool, of a node, or of a StorageClass on a node: one set of names from the
 * devices to the scheduler. Pure. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pmem/durability.h"

struct capacity {
	uint64_t total_bytes;
	uint64_t available_bytes;
	uint64_t max_volume_bytes;        /* the largest volume that can be made, to the byte; 0: none */
	uint64_t max_sector_volume_bytes; /* the same for usage=FileIO */
};

/** capacity_max_bytes() - the largest volume that can be made. @sector: for usage=FileIO */
static inline uint64_t capacity_max_bytes(const struct capacity *c, bool sector)
{
	return sector ? c->max_sector_volume_bytes : c->max_volume_bytes;
}

/** capacity_for() - what volumes can use of the capacity @c of a pool on memory with @durability. @sync: they
 * need MAP_SYNC (durability_needs_sync()), and then they can use nothing where it is refused. */
static inline struct capacity capacity_for(const struct capacity *c, enum durability durability, bool sync)
{
	struct capacity usable = *c;

	if (sync && durability == DURABILITY_FSYNC)
		usable.available_bytes = usable.max_volume_bytes = 0;
	return usable;
}

/** bytes_add() - @a + @b, at most INT64_MAX: sums are shown as signed numbers, and what they consist of comes
 * from others. */
static inline uint64_t bytes_add(uint64_t a, uint64_t b)
{
	return a > INT64_MAX || b > INT64_MAX - a ? INT64_MAX : a + b;
}

/** capacity_add() - add a further pool or node to @sum. The largest volumes are not added up: no volume is in
 * two pools. */
static inline void capacity_add(struct capacity *sum, const struct capacity *c)
{
	sum->total_bytes = bytes_add(sum->total_bytes, c->total_bytes);
	sum->available_bytes = bytes_add(sum->available_bytes, c->available_bytes);
	if (c->max_volume_bytes > sum->max_volume_bytes)
		sum->max_volume_bytes = c->max_volume_bytes;
	if (c->max_sector_volume_bytes > sum->max_sector_volume_bytes)
		sum->max_sector_volume_bytes = c->max_sector_volume_bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * best_fit.h - which pool a device is made in, and which of its extents it takes: pure.
 *
 * Of the pools that hold the device the one whose largest extent is smallest, and there the smallest extent
 * that holds it, so that large extents stay whole for large volumes (docs/decisions 003). A node chooses by
 * this, and the scheduler extender predicts by it what the node will choose. Threads: safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct best_fit_extent {
	uint64_t bytes;
	size_t pool;
};

/** best_fit_compare() - two pools that both hold a device, by the sizes of their largest extents. Return:
 * less than 0 when the first one is taken, 0 when they are equal. */
static inline int best_fit_compare(uint64_t a_largest_bytes, uint64_t b_largest_bytes)
{
	return (a_largest_bytes > b_largest_bytes) - (a_largest_bytes < b_largest_bytes);
}

/**
 * best_fit_find() - the extent that a device takes; among equals the first.
 * @extents: of all pools, those of one pool one after the other
 * @takes:   what the device takes from an extent of pool p: [p]; UINT64_MAX: it is not made there
 *
 * Return: its index; @n: none holds the device.
 */
size_t best_fit_find(const struct best_fit_extent *extents, size_t n, const uint64_t *takes);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * best_fit.h - predicts the pool and the extent of a new device. Pure.
 *
 * The predicted pool is the one whose largest extent is smallest among the pools in which the device fits.
 * The predicted extent is the smallest one in that pool that is large enough. So large extents stay whole for
 * large volumes (docs/decisions 003). A node uses best_fit_compare() only, for the order in which it tries
 * its pools (volume/pool_choice.h); best_fit_find() is the scheduler extender's prediction of pool and
 * extent. Threads: safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct best_fit_extent {
	uint64_t bytes;
	size_t pool;
};

/** best_fit_compare() - compare two pools in which a device fits, by the sizes of their largest extents.
 * Return: less than 0 when the first one is preferred, 0 when they are equal. */
static inline int best_fit_compare(uint64_t a_largest_bytes, uint64_t b_largest_bytes)
{
	return (a_largest_bytes > b_largest_bytes) - (a_largest_bytes < b_largest_bytes);
}

/**
 * best_fit_find() - find the extent that a device will take on a node; among equal ones the first.
 * @extents: of all pools, those of one pool one after the other
 * @takes:   the bytes that the device takes from an extent of pool p: [p]; UINT64_MAX: it cannot be made
 *           there
 *
 * Return: its index; @n: the device fits into none.
 */
size_t best_fit_find(const struct best_fit_extent *extents, size_t n, const uint64_t *takes);

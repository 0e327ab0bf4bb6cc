/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - whether volumes find a place in whatever order they are made: pure.
 *
 * A node makes one volume after the other, each by best_fit.h, in the order in which they are asked for,
 * which nobody knows. Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmem/best_fit.h"

/* So many are tried in all orders, more of them the smallest and the largest first. */
#define ORDER_ALL_MAX 4

struct order {
	const struct best_fit_extent *bins; /* what is free */
	size_t n_bins;
	const uint64_t *takes; /* of item i in a bin of pool p: [i * n_pools + p]; UINT64_MAX: it fits none */
	size_t n_pools;
	size_t n_items; /* the largest first */
};

/** order_steps() - what order_always_fits() takes for so many items, bins and pools of these, at most. */
size_t order_steps(size_t n_items, size_t n_bins, size_t n_pools);

/** order_always_fits() - whether all items of @o find a place. @work: room for as many bins */
bool order_always_fits(const struct order *o, struct best_fit_extent *work);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_order.h - checks whether volumes fit in any order in which they may be made. Pure.
 *
 * A node makes one volume after the other, each by the rules of best_fit.h, in the order of the requests,
 * which is not known in advance. Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmem/best_fit.h"

/* Up to this number all orders are tried; of more volumes, smallest first and largest first. */
#define ANY_ORDER_ALL_MAX 4

struct any_order {
	const struct best_fit_extent *bins; /* what is free */
	size_t n_bins;
	const uint64_t *takes; /* of item i in a bin of pool p: [i * n_pools + p]; UINT64_MAX: it fits none */
	size_t n_pools;
	size_t n_items; /* the largest first */
};

/** any_order_steps() - an upper limit of the steps of any_order_fits() for so many items, bins and pools. */
size_t any_order_steps(size_t n_items, size_t n_bins, size_t n_pools);

/** any_order_fits() - whether all items of @o fit in every order that is tried. @work: array of n_bins
 * elements */
bool any_order_fits(const struct any_order *o, struct best_fit_extent *work);

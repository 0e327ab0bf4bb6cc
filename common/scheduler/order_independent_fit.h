/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_independent_fit.h - checks whether volumes fit in whatever order they are made. Pure.
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
#define ORDER_INDEPENDENT_FIT_ALL_MAX 4

struct order_independent_fit {
	const struct best_fit_extent *bins; /* what is free */
	size_t n_bins;
	const uint64_t *takes; /* of item i in a bin of pool p: [i * n_pools + p]; UINT64_MAX: it fits none */
	size_t n_pools;
	size_t n_items; /* the largest first */
};

/** order_independent_fit_steps() - an upper limit of the steps of order_independent_fit_is_possible() for so
 * many items, bins and pools. */
size_t order_independent_fit_steps(size_t n_items, size_t n_bins, size_t n_pools);

/** order_independent_fit_is_possible() - whether all items of @f fit in every order that is tried. @work:
 * array of n_bins elements */
bool order_independent_fit_is_possible(const struct order_independent_fit *f, struct best_fit_extent *work);

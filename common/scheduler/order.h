/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - whether volumes find a place in whatever order they are made: pure.
 *
 * A node makes one volume after the other, in the order in which they are asked for, which nobody knows. It
 * takes the pool whose largest piece is smallest among those that hold it, and there the smallest piece
 * (docs/decisions 003). Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many are tried in all orders, more of them the smallest and the largest first. */
#define ORDER_ALL_MAX 4

/* A piece of free space. */
struct order_bin {
	uint64_t rest_bytes;
	size_t kind; /* of the pool */
};

struct order {
	const struct order_bin *bins; /* those of a pool one after the other */
	size_t n_bins;
	const uint64_t *takes; /* of item i in a bin of kind k: [i * n_kinds + k]; UINT64_MAX: it fits none */
	size_t n_kinds;
	size_t n_items; /* the largest first */
};

/** order_steps() - what order_fits_any() takes for so many items, bins and kinds of these, at most. */
size_t order_steps(size_t n_items, size_t n_bins, size_t n_kinds);

/** order_fits_any() - whether all items of @o find a place. @work: room for as many bins */
bool order_fits_any(const struct order *o, struct order_bin *work);

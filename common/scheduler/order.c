/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/order.h"

#include <string.h>

static uint64_t largest_of(const struct order_bin *bins, size_t n_bins, size_t kind)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < n_bins; i++) {
		if (bins[i].kind == kind && bins[i].rest_bytes > largest)
			largest = bins[i].rest_bytes;
	}
	return largest;
}

/* Source: volume/volumes_create.c, find_candidates(); pmem/layout.h, layout_find_gap(). */
static bool make_one(const struct order *o, size_t item, struct order_bin *bins)
{
	const uint64_t *takes = &o->takes[item * o->n_kinds];
	struct order_bin *best = NULL;
	uint64_t best_largest = 0;
	uint64_t largest = 0;

	for (size_t i = 0; i < o->n_bins; i++) {
		struct order_bin *bin = &bins[i];

		if (i == 0 || bin->kind != bins[i - 1].kind)
			largest = largest_of(bins, o->n_bins, bin->kind);
		if (takes[bin->kind] > bin->rest_bytes)
			continue;
		if (best && (bin->kind == best->kind ? bin->rest_bytes >= best->rest_bytes
						     : largest >= best_largest))
			continue;
		best = bin;
		best_largest = largest;
	}
	if (best)
		best->rest_bytes -= takes[best->kind];
	return best != NULL;
}

/* The next one of all orders of @n numbers, the rising one being the first. Return: false after the last. */
static bool next_order(size_t *order, size_t n)
{
	size_t i = n - 1;
	size_t k = n - 1;

	while (i > 0 && order[i - 1] > order[i])
		i--;
	if (i == 0)
		return false;
	while (order[k] < order[i - 1])
		k--;
	size_t swapped = order[k];
	order[k] = order[i - 1];
	order[i - 1] = swapped;
	for (k = n - 1; i < k; i++, k--) {
		swapped = order[k];
		order[k] = order[i];
		order[i] = swapped;
	}
	return true;
}

static bool fits_in_order(const struct order *o, const size_t *order, struct order_bin *work)
{
	memcpy(work, o->bins, o->n_bins * sizeof(*work));
	for (size_t i = 0; i < o->n_items; i++) {
		if (!make_one(o, order[i], work))
			return false;
	}
	return true;
}

static bool fits_both_ways(const struct order *o, struct order_bin *work)
{
	memcpy(work, o->bins, o->n_bins * sizeof(*work));
	for (size_t i = 0; i < o->n_items; i++) {
		if (!make_one(o, i, work))
			return false;
	}
	memcpy(work, o->bins, o->n_bins * sizeof(*work));
	for (size_t i = o->n_items; i > 0; i--) {
		if (!make_one(o, i - 1, work))
			return false;
	}
	return true;
}

size_t order_steps(size_t n_items, size_t n_bins, size_t n_kinds)
{
	static const size_t n_orders[ORDER_ALL_MAX + 1] = {1, 1, 2, 6, 24};

	return (n_items > ORDER_ALL_MAX ? 2 : n_orders[n_items]) * n_items * n_bins * (1 + n_kinds);
}

bool order_fits_any(const struct order *o, struct order_bin *work)
{
	size_t order[ORDER_ALL_MAX] = {0, 1, 2, 3};

	if (o->n_items > ORDER_ALL_MAX)
		return fits_both_ways(o, work);
	do {
		if (!fits_in_order(o, order, work))
			return false;
	} while (o->n_items > 1 && next_order(order, o->n_items));
	return true;
}

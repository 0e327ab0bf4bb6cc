/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/order_independent_fit.h"

#include <string.h>

static bool make_one(const struct order_independent_fit *f, size_t item, struct best_fit_extent *bins)
{
	const uint64_t *takes = &f->takes[item * f->n_pools];
	size_t at = best_fit_find(bins, f->n_bins, takes);

	if (at == f->n_bins)
		return false;
	bins[at].bytes -= takes[bins[at].pool];
	return true;
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

static bool fits_in_order(
	const struct order_independent_fit *f, const size_t *order, struct best_fit_extent *work)
{
	memcpy(work, f->bins, f->n_bins * sizeof(*work));
	for (size_t i = 0; i < f->n_items; i++) {
		if (!make_one(f, order[i], work))
			return false;
	}
	return true;
}

static bool fits_both_ways(const struct order_independent_fit *f, struct best_fit_extent *work)
{
	memcpy(work, f->bins, f->n_bins * sizeof(*work));
	for (size_t i = 0; i < f->n_items; i++) {
		if (!make_one(f, i, work))
			return false;
	}
	memcpy(work, f->bins, f->n_bins * sizeof(*work));
	for (size_t i = f->n_items; i > 0; i--) {
		if (!make_one(f, i - 1, work))
			return false;
	}
	return true;
}

size_t order_independent_fit_steps(size_t n_items, size_t n_bins, size_t n_pools)
{
	static const size_t n_orders[ORDER_INDEPENDENT_FIT_ALL_MAX + 1] = {1, 1, 2, 6, 24};

	return (n_items > ORDER_INDEPENDENT_FIT_ALL_MAX ? 2 : n_orders[n_items]) * n_items * n_bins *
	       (1 + n_pools);
}

bool order_independent_fit_is_possible(const struct order_independent_fit *f, struct best_fit_extent *work)
{
	size_t order[ORDER_INDEPENDENT_FIT_ALL_MAX] = {0, 1, 2, 3};

	if (f->n_items > ORDER_INDEPENDENT_FIT_ALL_MAX)
		return fits_both_ways(f, work);
	do {
		if (!fits_in_order(f, order, work))
			return false;
	} while (f->n_items > 1 && next_order(order, f->n_items));
	return true;
}

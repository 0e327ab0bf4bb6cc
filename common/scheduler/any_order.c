/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/any_order.h"

#include <string.h>

static bool make_one(const struct any_order *o, size_t item, struct best_fit_extent *bins)
{
	const uint64_t *takes = &o->takes[item * o->n_pools];
	size_t at = best_fit_find(bins, o->n_bins, takes);

	if (at == o->n_bins)
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

static bool fits_in_order(const struct any_order *o, const size_t *order, struct best_fit_extent *work)
{
	memcpy(work, o->bins, o->n_bins * sizeof(*work));
	for (size_t i = 0; i < o->n_items; i++) {
		if (!make_one(o, order[i], work))
			return false;
	}
	return true;
}

static bool fits_both_ways(const struct any_order *o, struct best_fit_extent *work)
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

size_t any_order_steps(size_t n_items, size_t n_bins, size_t n_pools)
{
	static const size_t n_orders[ANY_ORDER_ALL_MAX + 1] = {1, 1, 2, 6, 24};

	return (n_items > ANY_ORDER_ALL_MAX ? 2 : n_orders[n_items]) * n_items * n_bins * (1 + n_pools);
}

bool any_order_fits(const struct any_order *o, struct best_fit_extent *work)
{
	size_t order[ANY_ORDER_ALL_MAX] = {0, 1, 2, 3};

	if (o->n_items > ANY_ORDER_ALL_MAX)
		return fits_both_ways(o, work);
	do {
		if (!fits_in_order(o, order, work))
			return false;
	} while (o->n_items > 1 && next_order(order, o->n_items));
	return true;
}

#include "cluster/sched/order.h"

#include <string.h>

static uint64_t largest_of(const struct pack_bin *bins, size_t n_bins, size_t kind)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < n_bins; i++) {
		if (bins[i].kind == kind && bins[i].rest_bytes > largest)
			largest = bins[i].rest_bytes;
	}
	return largest;
}

/* Source: volume/volumes_create.c, find_candidates(); pmem/layout.h, layout_find_gap(). */
static bool make_one(const struct pack *p, size_t item, struct pack_bin *bins)
{
	const uint64_t *takes = &p->takes[item * p->n_kinds];
	struct pack_bin *best = NULL;
	uint64_t best_largest = 0;

	for (size_t i = 0; i < p->n_bins; i++) {
		struct pack_bin *bin = &bins[i];
		uint64_t largest;

		if (takes[bin->kind] > bin->rest_bytes)
			continue;
		largest = largest_of(bins, p->n_bins, bin->kind);
		if (best && (largest > best_largest ||
				    (bin->kind == best->kind && bin->rest_bytes >= best->rest_bytes)))
			continue;
		best = bin;
		best_largest = largest;
	}
	if (best)
		best->rest_bytes -= takes[best->kind];
	return best != NULL;
}

/* Those that are there already. */
static bool begin(const struct pack *p, size_t n_first, struct pack_bin *work)
{
	memcpy(work, p->bins, p->n_bins * sizeof(*work));
	for (size_t i = 0; i < n_first; i++) {
		if (!make_one(p, i, work))
			return false;
	}
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

static bool fits_in_order(const struct pack *p, size_t n_first, const size_t *order, struct pack_bin *work)
{
	if (!begin(p, n_first, work))
		return false;
	for (size_t i = n_first; i < p->n_items; i++) {
		if (!make_one(p, order[i - n_first], work))
			return false;
	}
	return true;
}

/* As they stand, and the other way round. */
static bool fits_both_ways(const struct pack *p, size_t n_first, struct pack_bin *work)
{
	if (!begin(p, n_first, work))
		return false;
	for (size_t i = n_first; i < p->n_items; i++) {
		if (!make_one(p, i, work))
			return false;
	}
	if (!begin(p, n_first, work))
		return false;
	for (size_t i = p->n_items; i > n_first; i--) {
		if (!make_one(p, i - 1, work))
			return false;
	}
	return true;
}

bool order_fits_any(const struct pack *p, size_t n_first, struct pack_bin *work)
{
	size_t n = p->n_items - n_first;
	size_t order[ORDER_ALL_MAX] = {0};

	if (n > ORDER_ALL_MAX)
		return fits_both_ways(p, n_first, work);
	for (size_t i = 0; i < n; i++)
		order[i] = n_first + i;
	do {
		if (!fits_in_order(p, n_first, order, work))
			return false;
	} while (n > 1 && next_order(order, n));
	return true;
}

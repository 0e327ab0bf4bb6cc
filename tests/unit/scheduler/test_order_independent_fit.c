/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "scheduler/order_independent_fit.h"
#include "unit/unit.h"

#define MAX_BINS  4
#define MAX_ITEMS ORDER_INDEPENDENT_FIT_ALL_MAX
#define N_POOLS   2
#define N_CASES   20000
#define SEED      20251

struct problem {
	struct best_fit_extent bins[MAX_BINS];
	size_t n_bins;
	uint64_t takes[MAX_ITEMS * N_POOLS];
	size_t n_items;
};

/* Places an item as a node does, written independently of the code under test: in the region whose largest
 * extent is smallest among those that hold the item, and there in the smallest extent that is large
 * enough. */
static bool make_on_node(struct best_fit_extent *bins, size_t n_bins, const uint64_t *takes)
{
	uint64_t best_largest = UINT64_MAX;
	size_t region = N_POOLS;
	struct best_fit_extent *best = NULL;

	for (size_t kind = 0; kind < N_POOLS; kind++) {
		uint64_t largest = 0;

		for (size_t i = 0; i < n_bins; i++) {
			if (bins[i].pool == kind && bins[i].bytes > largest)
				largest = bins[i].bytes;
		}
		if (takes[kind] > largest || largest >= best_largest)
			continue;
		best_largest = largest;
		region = kind;
	}
	for (size_t i = 0; i < n_bins; i++) {
		if (bins[i].pool == region && bins[i].bytes >= takes[region] &&
			(!best || bins[i].bytes < best->bytes))
			best = &bins[i];
	}
	if (best)
		best->bytes -= takes[region];
	return best != NULL;
}

/* The digits of @number are the items in the order in which they are made. Return: true, too, if it is not an
 * order.
 */
static bool holds(const struct problem *q, size_t number)
{
	struct best_fit_extent bins[MAX_BINS];
	unsigned made = 0;
	size_t order[MAX_ITEMS];

	for (size_t i = 0; i < q->n_items; i++, number /= q->n_items) {
		order[i] = number % q->n_items;
		made |= 1u << order[i];
	}
	if (made != (1u << q->n_items) - 1)
		return true;
	memcpy(bins, q->bins, sizeof(bins));
	for (size_t i = 0; i < q->n_items; i++) {
		if (!make_on_node(bins, q->n_bins, &q->takes[order[i] * N_POOLS]))
			return false;
	}
	return true;
}

static bool oracle(const struct problem *q)
{
	size_t n_orders = 1;

	for (size_t i = 0; i < q->n_items; i++)
		n_orders *= q->n_items;
	for (size_t order = 0; order < n_orders; order++) {
		if (!holds(q, order))
			return false;
	}
	return true;
}

static uint64_t below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

static int compare_pools(const void *a, const void *b)
{
	return (int)((const struct best_fit_extent *)a)->pool -
	       (int)((const struct best_fit_extent *)b)->pool;
}

static void make(struct problem *q, unsigned *seed)
{
	uint64_t size = 12;

	*q = (struct problem){.n_bins = 1 + below(seed, MAX_BINS), .n_items = 1 + below(seed, MAX_ITEMS)};
	for (size_t i = 0; i < q->n_bins; i++)
		q->bins[i] = (struct best_fit_extent){below(seed, 16), below(seed, N_POOLS)};
	qsort(q->bins, q->n_bins, sizeof(*q->bins), compare_pools);
	for (size_t i = 0; i < q->n_items; i++) {
		size = 1 + below(seed, (unsigned)size);
		q->takes[i * N_POOLS] = size;
		q->takes[i * N_POOLS + 1] = below(seed, 10) == 0 ? UINT64_MAX : (size + 2) / 3 * 3;
	}
}

static bool solve(const struct problem *q)
{
	const struct order_independent_fit fit = {q->bins, q->n_bins, q->takes, N_POOLS, q->n_items};
	struct best_fit_extent work[MAX_BINS];

	return order_independent_fit_is_possible(&fit, work);
}

START_TEST(few_items_fit_when_they_do_in_each_order)
{
	unsigned seed = SEED;
	size_t n_fit = 0;

	for (int i = 0; i < N_CASES; i++) {
		struct problem q;
		bool fits;

		make(&q, &seed);
		fits = oracle(&q);
		ck_assert_msg(solve(&q) == fits, "case %d", i);
		n_fit += fits;
	}
	ck_assert_uint_gt(n_fit, N_CASES / 10);
	ck_assert_uint_lt(n_fit, N_CASES - N_CASES / 10);
}
END_TEST

/* Largest first they fit. */
START_TEST(more_items_are_tried_the_smallest_first_too)
{
	const uint64_t takes[] = {5, 4, 1, 1, 1};
	const struct best_fit_extent bins[] = {{5, 0}, {7, 1}};
	uint64_t both[2 * ARRAY_SIZE(takes)];
	struct best_fit_extent work[2];
	struct order_independent_fit fit = {bins, 2, both, N_POOLS, ARRAY_SIZE(takes)};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		both[i] = takes[i / 2];
	ck_assert(!order_independent_fit_is_possible(&fit, work));
	for (size_t i = 0; i < 4; i++)
		both[i] = 3;
	ck_assert(order_independent_fit_is_possible(&fit, work));
}
END_TEST

UNIT_MAIN("order_independent_fit", few_items_fit_when_they_do_in_each_order,
	more_items_are_tried_the_smallest_first_too)

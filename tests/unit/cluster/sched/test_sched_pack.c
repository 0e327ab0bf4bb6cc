#include <stdlib.h>

#include "cluster/sched/pack.h"
#include "unit/unit.h"

#define MAX_BINS  4
#define MAX_ITEMS 5
#define N_KINDS   2
#define BUDGET    20000
#define N_CASES   20000
#define SEED      20251

struct problem {
	struct pack_bin bins[MAX_BINS];
	size_t n_bins;
	uint64_t takes[MAX_ITEMS * N_KINDS];
	size_t n_items;
};

/* Whether the way with that @number, whose digits are the bins of the items, holds them. */
static bool holds(const struct problem *q, size_t number)
{
	uint64_t used[MAX_BINS] = {0};

	for (size_t i = 0; i < q->n_items; i++, number /= q->n_bins) {
		size_t bin = number % q->n_bins;
		uint64_t takes = q->takes[i * N_KINDS + q->bins[bin].kind];

		if (takes == UINT64_MAX)
			return false;
		used[bin] += takes;
	}
	for (size_t i = 0; i < q->n_bins; i++) {
		if (used[i] > q->bins[i].rest_bytes)
			return false;
	}
	return true;
}

static bool oracle(const struct problem *q)
{
	size_t n_ways = 1;

	for (size_t i = 0; i < q->n_items; i++)
		n_ways *= q->n_bins;
	for (size_t way = 0; way < n_ways; way++) {
		if (holds(q, way))
			return true;
	}
	return false;
}

static uint64_t below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

static void make(struct problem *q, unsigned *seed)
{
	uint64_t size = 12;

	*q = (struct problem){.n_bins = 1 + below(seed, MAX_BINS), .n_items = 1 + below(seed, MAX_ITEMS)};
	for (size_t i = 0; i < q->n_bins; i++)
		q->bins[i] = (struct pack_bin){below(seed, 16), below(seed, N_KINDS)};
	for (size_t i = 0; i < q->n_items; i++) {
		size = 1 + below(seed, (unsigned)size);
		q->takes[i * N_KINDS] = size;
		q->takes[i * N_KINDS + 1] = below(seed, 10) == 0 ? UINT64_MAX : (size + 2) / 3 * 3;
	}
}

static bool solve(const struct problem *q, size_t budget, struct pack_bin *bins, size_t *place)
{
	struct pack p = {bins, q->n_bins, q->takes, N_KINDS, q->n_items, place};

	memcpy(bins, q->bins, sizeof(q->bins));
	return pack_items(&p, &budget);
}

START_TEST(packer_says_what_trying_all_ways_says)
{
	unsigned seed = SEED;
	size_t n_fit = 0;
	size_t n_searched = 0;

	for (int i = 0; i < N_CASES; i++) {
		struct pack_bin bins[MAX_BINS];
		size_t place[MAX_ITEMS];
		struct problem q;
		bool fits;

		make(&q, &seed);
		fits = oracle(&q);
		ck_assert_msg(solve(&q, BUDGET, bins, place) == fits, "case %d", i);
		n_fit += fits;
		n_searched += fits && !solve(&q, 0, bins, place);
	}
	ck_assert_uint_gt(n_fit, N_CASES / 10);
	ck_assert_uint_lt(n_fit, N_CASES - N_CASES / 10);
	ck_assert_uint_gt(n_searched, 10);
}
END_TEST

START_TEST(what_is_left_is_told)
{
	struct problem q = {.bins = {{10, 0}, {4, 0}}, .n_bins = 2, .takes = {4, 4, 3, 3}, .n_items = 2};
	struct pack_bin bins[MAX_BINS];
	size_t place[MAX_ITEMS];

	ck_assert(solve(&q, BUDGET, bins, place));
	ck_assert_uint_eq(place[0], 1);
	ck_assert_uint_eq(place[1], 0);
	ck_assert_uint_eq(bins[0].rest_bytes, 7);
	ck_assert_uint_eq(bins[1].rest_bytes, 0);
}
END_TEST

START_TEST(search_ends_with_its_budget)
{
	struct problem q = {
		.bins = {{6, 0}, {7, 0}}, .n_bins = 2, .takes = {4, 4, 3, 3, 2, 2, 2, 2, 2, 2}, .n_items = 5};
	struct pack_bin bins[MAX_BINS];
	size_t place[MAX_ITEMS];

	ck_assert(oracle(&q));
	ck_assert(solve(&q, BUDGET, bins, place));
	q.takes[0] = q.takes[1] = 5;
	ck_assert(!solve(&q, BUDGET, bins, place));
	ck_assert(!solve(&q, 1, bins, place));
}
END_TEST

UNIT_MAIN("sched_pack", packer_says_what_trying_all_ways_says, what_is_left_is_told,
	search_ends_with_its_budget)

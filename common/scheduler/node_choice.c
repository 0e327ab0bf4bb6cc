/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/node_choice.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/node_fit.h"

/* Nodes; as long as memory takes to answer. */
#define FETCH_AHEAD 8

/* How good a node is by the policy of the request, in the order in which the members are compared. */
struct rank {
	size_t n_needed;     /* volumes to be made: fewer are better */
	uint64_t rest_bytes; /* of the extent that the largest one is cut from: less is better */
	uint64_t left_bytes; /* free on the node after all */
};

static enum sched_fit fit_of(struct node_fit *f, const struct node_candidate *c)
{
	if (pod_needs_away(f->q->needs, c->name))
		return SCHED_ELSEWHERE;
	if (f->q->needs->n == 0)
		return SCHED_FITS;
	if (!c->node)
		return SCHED_UNKNOWN_NODE;
	if (c->node->stale)
		return SCHED_STALE;
	if (node_fit_on(f, c->node, NODE_FIT_WITH_ALL) == NODE_FIT_YES)
		return SCHED_FITS;
	if (node_fit_on(f, c->node, NODE_FIT_WITH_DECIDED) == NODE_FIT_YES)
		return SCHED_FITS_WITHOUT_UNDECIDED;
	if (node_fit_on(f, c->node, NODE_FIT_WITHOUT_RESERVATIONS) == NODE_FIT_NO)
		return SCHED_NEVER;
	return SCHED_FITS_WITHOUT_RESERVATIONS;
}

/* The bytes that remain in the best-fitting extent after @item. Return: UINT64_MAX: it fits into none. */
static uint64_t rest_after(const struct sched_node *node, const struct sched_item *item)
{
	uint64_t rest = UINT64_MAX;

	for (size_t i = 0; i < node->n_extents; i++) {
		const struct best_fit_extent *extent = &node->extents[i];
		uint64_t takes = sched_node_raw_bytes(node, extent->pool, item);

		if (takes <= extent->bytes && extent->bytes - takes < rest)
			rest = extent->bytes - takes;
	}
	return rest;
}

static struct rank rank_of(const struct node_fit *f, const struct sched_node *node)
{
	struct sched_load load = reservations_load(f->q->reservations, node, /* undecided= */ true);
	struct sched_item largest = {0};
	struct rank r = {0};

	for (size_t i = 0; i < node->n_extents; i++)
		r.left_bytes += node->extents[i].bytes;
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (!node_fit_is_needed(f, node, i))
			continue;
		r.n_needed++;
		load.size_bytes += f->needs[i].item.size_bytes;
		if (f->needs[i].item.size_bytes >= largest.size_bytes)
			largest = f->needs[i].item;
	}
	r.rest_bytes = r.n_needed > 0 ? rest_after(node, &largest) : 0;
	r.left_bytes -= r.left_bytes < load.size_bytes ? r.left_bytes : load.size_bytes;
	return r;
}

static bool is_better(enum sched_policy policy, const struct rank *a, const struct rank *b)
{
	if (a->n_needed != b->n_needed)
		return a->n_needed < b->n_needed;
	if (policy == SCHED_SPREAD)
		return a->left_bytes > b->left_bytes;
	if (a->rest_bytes != b->rest_bytes)
		return a->rest_bytes < b->rest_bytes;
	return a->left_bytes < b->left_bytes;
}

/* The best node so far. */
struct best {
	size_t at;
	struct rank rank;
	bool any;
};

static void keep_better(struct best *best, const struct node_fit *f, size_t i)
{
	struct rank rank = rank_of(f, f->q->candidates[i].node);

	if (best->any && !is_better(f->q->policy, &rank, &best->rank))
		return;
	*best = (struct best){i, rank, true};
}

/* The nodes are scattered over the heap, so the next ones are prefetched. */
static void fetch_ahead(const struct node_choice *q, size_t i)
{
	const struct sched_node *node;

	if (i + 2 * FETCH_AHEAD < q->n)
		__builtin_prefetch(q->candidates[i + 2 * FETCH_AHEAD].node);
	if (i + FETCH_AHEAD >= q->n)
		return;
	node = q->candidates[i + FETCH_AHEAD].node;
	if (node)
		reservations_fetch(q->reservations, node);
}

/* If the best node has no capacity for another such pod, it is the only one. Otherwise nodes without it have
 * already been left out. */
static void keep_best_alone(enum sched_fit *fits, size_t n, size_t best)
{
	for (size_t i = 0; i < n; i++) {
		if (fits[i] == SCHED_FITS)
			fits[i] = SCHED_HELD_BACK;
	}
	fits[best] = SCHED_FITS;
}

enum sched_outcome node_choice_filter(const struct node_choice *q, enum sched_fit *ret_fits)
{
	enum sched_outcome outcome = SCHED_REFUSE;
	struct best best = {0};
	struct node_fit f;
	size_t copies;

	node_fit_init(&f, q);
	/* Such a pod and a second one, and one more for each pod on its way: about as many come before the
	 * decision of this one shows, and until then it takes room on each node that it may go to. */
	copies = 2 + reservations_count(q->reservations).pods;
	for (size_t i = 0; i < q->n; i++) {
		fetch_ahead(q, i);
		ret_fits[i] = fit_of(&f, &q->candidates[i]);
		if (ret_fits[i] == SCHED_FITS_WITHOUT_UNDECIDED && outcome == SCHED_REFUSE)
			outcome = SCHED_WAIT;
		if (ret_fits[i] != SCHED_FITS)
			continue;
		outcome = SCHED_PASS;
		if (q->needs->n == 0)
			continue;
		keep_better(&best, &f, i);
		if (!q->all && !node_fit_has_room(&f, q->candidates[i].node, copies))
			ret_fits[i] = SCHED_HELD_BACK;
	}
	if (best.any && ret_fits[best.at] == SCHED_HELD_BACK)
		keep_best_alone(ret_fits, q->n, best.at);
	node_fit_done(&f);
	return outcome;
}

/* @part of @whole in steps from 0 to @steps. */
static int share(uint64_t part, uint64_t whole, int steps)
{
	double ratio = whole > 0 ? (double)part / (double)whole : 0;

	return ratio < 1 ? (int)(ratio * steps + 0.5) : steps;
}

static int score_of(struct node_fit *f, const struct node_candidate *c)
{
	uint64_t total_bytes = 0;
	uint64_t largest_bytes = 0;
	struct rank r;

	if (f->q->needs->n == 0 || !c->node || c->node->stale || pod_needs_away(f->q->needs, c->name))
		return 0;
	r = rank_of(f, c->node);
	if (r.n_needed == 0)
		return SCHED_SCORE_MAX;
	if (r.rest_bytes == UINT64_MAX)
		return 0;
	if (r.n_needed < f->q->needs->n)
		return SCHED_SCORE_MAX - 1;
	for (size_t i = 0; i < c->node->n_pools; i++) {
		uint64_t bytes = c->node->pools[i].capacity.total_bytes;

		total_bytes += bytes;
		if (bytes > largest_bytes)
			largest_bytes = bytes;
	}
	if (f->q->policy == SCHED_SPREAD)
		return 1 + share(r.left_bytes, total_bytes, SCHED_SCORE_MAX - 3);
	return SCHED_SCORE_MAX - 2 - share(r.rest_bytes, largest_bytes, SCHED_SCORE_MAX - 3);
}

void node_choice_score(const struct node_choice *q, int *ret_scores)
{
	struct node_fit f;

	node_fit_init(&f, q);
	for (size_t i = 0; i < q->n; i++) {
		fetch_ahead(q, i);
		ret_scores[i] = score_of(&f, &q->candidates[i]);
	}
	node_fit_done(&f);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/node_fit.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

/* Steps of all searches for one request: some milliseconds. One search may take so many. */
#define BUDGET        2000000
#define SEARCH_BUDGET 100000

/* More than a node has on its way at a time. */
#define ITEMS_MAX 512

void node_fit_init(struct node_fit *f, const struct node_choice *q)
{
	*f = (struct node_fit){.q = q, .budget = BUDGET};
	f->needs = x_calloc(q->needs->n, sizeof(*f->needs));
	for (size_t i = 0; i < q->needs->n; i++) {
		const struct pod_need *need = &q->needs->v[i];
		struct node_fit_need *to = &f->needs[i];

		to->item.size_bytes = need->size_bytes < SCHED_SIZE_MAX ? need->size_bytes : SCHED_SIZE_MAX;
		to->item.sector = need->sector;
		to->item.sync = need->sync;
		to->decided =
			reservations_node(q->reservations, need->name, &to->decided_node, &to->decided_item);
	}
}

void node_fit_done(struct node_fit *f)
{
	free(f->needs);
	free(f->items);
	free(f->takes);
	free(f->work);
}

bool node_fit_is_needed(const struct node_fit *f, const struct sched_node *node, size_t i)
{
	return !strv_contains(f->q->needs->v[i].nodes, node->name);
}

static bool is_reserved_here(const struct node_fit_need *need, const struct sched_node *node)
{
	return need->decided && need->decided_node == node->index;
}

/* Whether some extent holds @item. */
static bool has_extent(const struct sched_node *node, const struct sched_item *item)
{
	for (size_t i = 0; i < node->n_extents; i++) {
		if (sched_node_raw_bytes(node, node->extents[i].pool, item) <= node->extents[i].bytes)
			return true;
	}
	return false;
}

/* Whether there is room for as many as the largest. */
static bool has_slots(const struct sched_node *node, const struct sched_load *load)
{
	uint64_t slots = 0;

	for (size_t i = 0; i < node->n_extents && load->max_raw_bytes > 0; i++)
		slots += node->extents[i].bytes / load->max_raw_bytes;
	return load->n <= slots;
}

static enum node_fit_answer by_sums(const struct sched_node *node, const struct sched_load *load)
{
	uint64_t all = 0;
	uint64_t sure = 0;

	for (size_t i = 0; i < node->n_extents; i++) {
		uint64_t bytes = node->extents[i].bytes;

		all += bytes;
		if (bytes > load->max_raw_bytes)
			sure += bytes - load->max_raw_bytes;
	}
	if (load->size_bytes > all)
		return NODE_FIT_NO;
	/* sums do not say which of the extents a volume may go to */
	if (node->differs_in_sync)
		return NODE_FIT_MAYBE;
	/* A volume finds no place only when less than the largest one is left in each extent. */
	return load->raw_bytes <= sure || has_slots(node, load) ? NODE_FIT_YES : NODE_FIT_MAYBE;
}

static void *grown(void *p, size_t *room, size_t n, size_t size)
{
	if (n <= *room)
		return p;
	*room = n;
	return x_realloc(p, n, size);
}

static int compare_items(const void *a, const void *b)
{
	const struct sched_item *x = a;
	const struct sched_item *y = b;

	if (x->size_bytes != y->size_bytes)
		return x->size_bytes > y->size_bytes ? -1 : 1;
	return x->sector != y->sector ? (int)y->sector - (int)x->sector : (int)y->sync - (int)x->sync;
}

/* Removes the pod's own reservation, which was made in an earlier attempt to schedule it, from those that are
 * counted. */
static size_t leave_out(struct sched_item *items, size_t n, const struct sched_item *own)
{
	for (size_t i = 0; i < n; i++) {
		if (compare_items(&items[i], own) != 0)
			continue;
		items[i] = items[n - 1];
		return n - 1;
	}
	return n;
}

/* The first @n items of @f, and what is free on @node. */
static struct order_independent_fit set_out(struct node_fit *f, const struct sched_node *node, size_t n)
{
	size_t n_pools = node->n_pools;

	f->takes = grown(f->takes, &f->takes_room, n * n_pools, sizeof(*f->takes));
	f->work = grown(f->work, &f->work_room, node->n_extents, sizeof(*f->work));
	for (size_t i = 0; i < n; i++) {
		const struct sched_item *item = &f->items[i];

		for (size_t k = 0; k < n_pools; k++)
			f->takes[i * n_pools + k] = sched_node_raw_bytes(node, k, item);
	}
	return (struct order_independent_fit){node->extents, node->n_extents, f->takes, n_pools, n};
}

/* The reservations, without those of the pod itself. Return: how many. */
static size_t reserved_items(struct node_fit *f, const struct sched_node *node, enum node_fit_level level)
{
	size_t n = 0;

	if (level == NODE_FIT_WITHOUT_RESERVATIONS)
		return 0;
	n = reservations_items(f->q->reservations, node, level == NODE_FIT_WITH_ALL, f->items);
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (is_reserved_here(&f->needs[i], node))
			n = leave_out(f->items, n, &f->needs[i].decided_item);
	}
	return n;
}

/* Volumes on their way are made in no order that is known. */
static enum node_fit_answer by_search(
	struct node_fit *f, const struct sched_node *node, enum node_fit_level level, size_t n_reserved)
{
	size_t n, steps;

	/* so many that the pod's own among them make no difference */
	if (n_reserved > ITEMS_MAX + f->q->needs->n)
		return NODE_FIT_MAYBE;
	f->items = grown(f->items, &f->items_room, n_reserved + f->q->needs->n, sizeof(*f->items));
	n = reserved_items(f, node, level);
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (node_fit_is_needed(f, node, i))
			f->items[n++] = f->needs[i].item;
	}
	steps = order_independent_fit_steps(n, node->n_extents, node->n_pools);
	if (n > ITEMS_MAX || steps > SEARCH_BUDGET || steps > f->budget)
		return NODE_FIT_MAYBE;
	f->budget -= steps;
	qsort(f->items, n, sizeof(*f->items), compare_items);

	const struct order_independent_fit fit = set_out(f, node, n);
	return order_independent_fit_is_possible(&fit, f->work) ? NODE_FIT_YES : NODE_FIT_NO;
}

/* Return: how many volumes of the pod are to be made there; they are added to @load, @copies times. */
static size_t add_needs(const struct node_fit *f, const struct sched_node *node, size_t copies,
	struct sched_load *load, bool *ret_reserved)
{
	size_t n = 0;

	for (size_t i = 0; i < f->q->needs->n; i++) {
		const struct sched_item *item = &f->needs[i].item;
		uint64_t raw_bytes;

		if (!node_fit_is_needed(f, node, i))
			continue;
		raw_bytes = sched_node_most_bytes(node, item->size_bytes, item->sector);
		load->n += copies;
		load->size_bytes += copies * item->size_bytes;
		load->raw_bytes += copies * raw_bytes;
		if (raw_bytes > load->max_raw_bytes)
			load->max_raw_bytes = raw_bytes;
		*ret_reserved |= is_reserved_here(&f->needs[i], node);
		n++;
	}
	return n;
}

static bool each_has_extent(const struct node_fit *f, const struct sched_node *node)
{
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (node_fit_is_needed(f, node, i) && !has_extent(node, &f->needs[i].item))
			return false;
	}
	return true;
}

enum node_fit_answer node_fit_on(struct node_fit *f, const struct sched_node *node, enum node_fit_level level)
{
	struct sched_load load = {0};
	enum node_fit_answer answer;
	bool reserved = false;
	size_t n_reserved;

	if (level != NODE_FIT_WITHOUT_RESERVATIONS)
		load = reservations_load(f->q->reservations, node, level == NODE_FIT_WITH_ALL);
	n_reserved = load.n;
	if (add_needs(f, node, 1, &load, &reserved) == 0)
		return NODE_FIT_YES;
	if (!each_has_extent(f, node))
		return NODE_FIT_NO;
	if (load.n == 1)
		return NODE_FIT_YES;
	/* sums count the reservations of the pod itself twice */
	answer = reserved ? NODE_FIT_MAYBE : by_sums(node, &load);
	return answer == NODE_FIT_MAYBE ? by_search(f, node, level, n_reserved) : answer;
}

bool node_fit_has_room(const struct node_fit *f, const struct sched_node *node, size_t copies)
{
	struct sched_load load = reservations_load(f->q->reservations, node, /* undecided= */ true);
	bool reserved = false;

	return add_needs(f, node, copies, &load, &reserved) == 0 || by_sums(node, &load) == NODE_FIT_YES;
}

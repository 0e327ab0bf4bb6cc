/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/node_fit.h"

#include <stdlib.h>

#include "base/mem.h"

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
		to->anywhere = sched_nodes_have_volume(q->nodes, need->name);
		to->decided =
			sched_charges_node(q->charges, need->name, &to->decided_node, &to->decided_item);
	}
}

void node_fit_done(struct node_fit *f)
{
	free(f->needs);
	free(f->items);
	free(f->takes);
	free(f->bins);
}

bool node_fit_is_needed(const struct node_fit *f, const struct sched_node *node, size_t i)
{
	return !f->needs[i].anywhere || !sched_node_volume(f->q->nodes, node, f->q->needs->v[i].name);
}

static bool is_charged_here(const struct node_fit_need *need, const struct sched_node *node)
{
	return need->decided && need->decided_node == node->index;
}

/* Some piece holds @item. */
static bool has_piece(const struct sched_node *node, const struct sched_item *item)
{
	for (size_t i = 0; i < node->n_bins; i++) {
		uint64_t takes =
			sched_node_raw_bytes(node, node->bins[i].pool, item->size_bytes, item->sector);

		if (takes <= node->bins[i].bytes)
			return true;
	}
	return false;
}

enum answer { YES, NO, MAYBE };

/* Whether there is room for as many as the largest. */
static bool has_slots(const struct sched_node *node, const struct sched_load *load)
{
	uint64_t slots = 0;

	for (size_t i = 0; i < node->n_bins && load->max_raw_bytes > 0; i++)
		slots += node->bins[i].bytes / load->max_raw_bytes;
	return load->n <= slots;
}

static enum answer by_sums(const struct sched_node *node, const struct sched_load *load)
{
	uint64_t all = 0;
	uint64_t sure = 0;

	for (size_t i = 0; i < node->n_bins; i++) {
		uint64_t bytes = node->bins[i].bytes;

		all += bytes;
		if (bytes > load->max_raw_bytes)
			sure += bytes - load->max_raw_bytes;
	}
	if (load->size_bytes > all)
		return NO;
	/* A volume finds no place only when less than the largest one is left in each piece. */
	return load->raw_bytes <= sure || has_slots(node, load) ? YES : MAYBE;
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
	return (int)y->sector - (int)x->sector;
}

/* One of the charges is the pod's own, decided in an earlier round. */
static size_t leave_out(struct sched_item *items, size_t n, const struct sched_item *own)
{
	for (size_t i = 0; i < n; i++) {
		if (items[i].size_bytes != own->size_bytes || items[i].sector != own->sector)
			continue;
		items[i] = items[n - 1];
		return n - 1;
	}
	return n;
}

/* The first @n items of @f, and what is free on @node. */
static struct order set_out(struct node_fit *f, const struct sched_node *node, size_t n)
{
	size_t n_pools = node->n_pools;

	f->takes = grown(f->takes, &f->takes_room, n * n_pools, sizeof(*f->takes));
	f->bins = grown(f->bins, &f->bins_room, node->n_bins, sizeof(*f->bins));
	for (size_t i = 0; i < n; i++) {
		const struct sched_item *item = &f->items[i];

		for (size_t k = 0; k < n_pools; k++)
			f->takes[i * n_pools + k] =
				sched_node_raw_bytes(node, k, item->size_bytes, item->sector);
	}
	return (struct order){node->bins, node->n_bins, f->takes, n_pools, n};
}

/* What is charged, less what of it is the pod's own. Return: how many. */
static size_t charged_items(struct node_fit *f, const struct sched_node *node, enum node_fit_level level)
{
	size_t n = 0;

	if (level == NODE_FIT_WITHOUT_CHARGES)
		return 0;
	n = sched_charges_items(f->q->charges, node, level == NODE_FIT_WITH_ALL, f->items);
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (is_charged_here(&f->needs[i], node))
			n = leave_out(f->items, n, &f->needs[i].decided_item);
	}
	return n;
}

/* Volumes on their way are made in no order that is known. */
static bool by_search(
	struct node_fit *f, const struct sched_node *node, enum node_fit_level level, size_t n_charged)
{
	size_t n, steps;

	f->gave_up = true;
	/* so many that the pod's own among them make no difference */
	if (n_charged > ITEMS_MAX + f->q->needs->n)
		return false;
	f->items = grown(f->items, &f->items_room, n_charged + f->q->needs->n, sizeof(*f->items));
	n = charged_items(f, node, level);
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (node_fit_is_needed(f, node, i))
			f->items[n++] = f->needs[i].item;
	}
	steps = order_steps(n, node->n_bins, node->n_pools);
	if (n > ITEMS_MAX || steps > SEARCH_BUDGET || steps > f->budget)
		return false;
	f->gave_up = false;
	f->budget -= steps;
	qsort(f->items, n, sizeof(*f->items), compare_items);

	const struct order o = set_out(f, node, n);
	return order_always_fits(&o, f->bins);
}

/* Return: how many volumes of the pod are to be made there; they are added to @load, @copies times. */
static size_t add_needs(const struct node_fit *f, const struct sched_node *node, size_t copies,
	struct sched_load *load, bool *ret_charged)
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
		*ret_charged |= is_charged_here(&f->needs[i], node);
		n++;
	}
	return n;
}

static bool each_has_piece(const struct node_fit *f, const struct sched_node *node)
{
	for (size_t i = 0; i < f->q->needs->n; i++) {
		if (node_fit_is_needed(f, node, i) && !has_piece(node, &f->needs[i].item))
			return false;
	}
	return true;
}

bool node_fit_on(struct node_fit *f, const struct sched_node *node, enum node_fit_level level)
{
	struct sched_load load = {0};
	bool charged = false;
	size_t n_charged;

	f->gave_up = false;
	if (level != NODE_FIT_WITHOUT_CHARGES)
		load = sched_charges_load(f->q->charges, node, level == NODE_FIT_WITH_ALL);
	n_charged = load.n;
	if (add_needs(f, node, 1, &load, &charged) == 0)
		return true;
	if (!each_has_piece(f, node))
		return false;
	if (load.n == 1)
		return true;
	if (!charged) {
		switch (by_sums(node, &load)) {
		case YES:
			return true;
		case NO:
			return false;
		case MAYBE:
			break;
		}
	}
	return by_search(f, node, level, n_charged);
}

bool node_fit_has_room(const struct node_fit *f, const struct sched_node *node, size_t copies)
{
	struct sched_load load = sched_charges_load(f->q->charges, node, /* undecided= */ true);
	bool charged = false;

	return add_needs(f, node, copies, &load, &charged) == 0 || by_sums(node, &load) == YES;
}

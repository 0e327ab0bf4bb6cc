/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_fit.h - whether the volumes of a pod fit on one node. Private to node_choice.c. Threads: one owner.
 */
#pragma once

#include "scheduler/node_choice.h"
#include "scheduler/order_independent_fit.h"

/* The reservations that are counted in addition to the volumes of the pod itself. */
enum node_fit_level {
	NODE_FIT_WITH_ALL,
	NODE_FIT_WITH_DECIDED,
	NODE_FIT_WITHOUT_RESERVATIONS,
};

enum node_fit_answer {
	NODE_FIT_YES,
	NODE_FIT_NO,
	NODE_FIT_MAYBE, /* finding out would take too long */
};

struct node_fit_need {
	struct sched_item item;
	bool decided;        /* its volume counts on the node with the index */
	size_t decided_node; /* only with decided */
	struct sched_item decided_item;
};

struct node_fit {
	const struct node_choice *q;
	struct node_fit_need *needs; /* as the question's */
	size_t budget;               /* of all searches */
	/* Arrays for the search on one node, grown as needed. */
	struct sched_item *items;
	size_t items_room;
	uint64_t *takes;
	size_t takes_room;
	struct best_fit_extent *work;
	size_t work_room;
};

/** node_fit_init() - for a question. @q: borrowed. node_fit_done(): release. */
void node_fit_init(struct node_fit *f, const struct node_choice *q);
void node_fit_done(struct node_fit *f);

/** node_fit_is_needed() - whether the volume of need @i is yet to be made on @node. */
bool node_fit_is_needed(const struct node_fit *f, const struct sched_node *node, size_t i);

/** node_fit_on() - whether the pod fits on @node together with the reservations of @level. */
enum node_fit_answer node_fit_on(
	struct node_fit *f, const struct sched_node *node, enum node_fit_level level);

/** node_fit_has_room() - whether @copies such pods fit on @node beside all reservations, in whatever order.
 * By sums alone: an answer of false does not prove that there is no room. */
bool node_fit_has_room(const struct node_fit *f, const struct sched_node *node, size_t copies);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - whether the volumes of a pod fit on one node. Private to decide.c and explain.c. Threads: one
 * owner.
 */
#pragma once

#include "cluster/sched/decide.h"
#include "cluster/sched/order.h"

/* What is counted besides the pod itself. */
enum fit_level {
	FIT_WITH_ALL,
	FIT_WITH_DECIDED,
	FIT_WITHOUT_CHARGES,
};

struct fit_need {
	struct sched_item item;
	bool anywhere;       /* some node has a volume of that name */
	bool decided;        /* its volume counts on the node with the index */
	size_t decided_node; /* only with decided */
	struct sched_item decided_item;
};

struct fit {
	const struct sched_question *q;
	struct fit_need *needs; /* as the question's */
	size_t budget;          /* of all searches */
	bool gave_up;           /* the last look took too long: the node may have room */
	/* Room for what one node takes, grown as needed. */
	struct sched_item *items;
	size_t items_room;
	uint64_t *takes;
	size_t takes_room;
	struct order_bin *bins;
	size_t bins_room;
};

/** fit_init() - for a question. @q: borrowed. fit_done(): release. */
void fit_init(struct fit *f, const struct sched_question *q);
void fit_done(struct fit *f);

/** fit_is_needed() - whether the volume of need @i is yet to be made on @node. */
bool fit_is_needed(const struct fit *f, const struct sched_node *node, size_t i);

/** fit_on() - whether the pod fits on @node beside what @level says. */
bool fit_on(struct fit *f, const struct sched_node *node, enum fit_level level);

/** fit_has_room() - whether @copies such pods fit on @node beside all charges, in whatever order. By sums
 * alone: there may be room where it says that there is none. */
bool fit_has_room(const struct fit *f, const struct sched_node *node, size_t copies);

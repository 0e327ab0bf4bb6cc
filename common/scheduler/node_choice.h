/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_choice.h - on which nodes the volumes of a pod fit, with those that are on their way (charges.h), and
 * which of them are best.
 *
 * The volumes of a pod and those on their way must find a place in whatever order they are made (order.h).
 * Threads: one owner. Nothing blocks.
 */
#pragma once

#include "base/buf.h"
#include "scheduler/charges.h"

enum sched_fit {
	SCHED_FITS,
	SCHED_HELD_BACK,              /* it fits, but with little room beside it, and others have more */
	SCHED_FITS_WITHOUT_UNDECIDED, /* worth waiting for decisions */
	SCHED_FITS_WITHOUT_CHARGES,   /* pods on their way take it, which may come to nothing */
	SCHED_NEVER,                  /* as the node is */
	SCHED_ELSEWHERE,              /* a volume that the pod has is on other nodes only */
	SCHED_UNKNOWN_NODE,
	SCHED_STALE,
};

enum sched_policy {
	SCHED_BINPACK, /* what is left over is small: large extents stay whole */
	SCHED_SPREAD,  /* what is left over is large */
};

enum sched_outcome {
	SCHED_PASS, /* the nodes marked SCHED_FITS */
	SCHED_WAIT, /* no node now, but maybe when more is decided */
	SCHED_REFUSE,
};

#define SCHED_SCORE_MAX 10

struct node_candidate {
	struct span name;
	const struct sched_node *node; /* NULL: not known */
};

struct node_choice {
	const struct sched_nodes *nodes;
	const struct sched_charges *charges; /* without those of the pod itself (sched_charges_drop()) */
	const struct pod_needs *needs;
	const struct node_candidate *candidates;
	size_t n;
	enum sched_policy policy;
	bool all; /* no node is held back */
};

/**
 * node_choice_filter() - which of the candidates the pod may go to.
 * @ret_fits: one per candidate
 *
 * Where the best node could not take a second such pod, and one more for each pod that waits for its decision
 * for long (sched_charges_late()), it is the only one: its charge is decided at once. Otherwise nodes that
 * could not are held back. A pod that needs no new volume is only kept to the nodes of those it has.
 */
enum sched_outcome node_choice_filter(const struct node_choice *q, enum sched_fit *ret_fits);

/** node_choice_explain() - add to @out why candidate @i is not among the nodes, which is @fit: one sentence.
 */
void node_choice_explain(const struct node_choice *q, size_t i, enum sched_fit fit, struct buf *out);

/** node_choice_score() - of each candidate, 0 (worst) to SCHED_SCORE_MAX, by policy; nodes that have the
 * volumes first, stale and unknown ones and those without room 0. @ret_scores: one per candidate */
void node_choice_score(const struct node_choice *q, int *ret_scores);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_choice.h - on which nodes the volumes of a pod fit beside those that are on their way
 * (reservations.h), and which of these nodes are best.
 *
 * The volumes of a pod and those on their way must find a place in whatever order they are made
 * (order_independent_fit.h). Threads: one owner. Nothing blocks.
 */
#pragma once

#include "base/buf.h"
#include "scheduler/reservations.h"

enum sched_fit {
	SCHED_FITS,
	SCHED_HELD_BACK,                 /* it fits, but leaves less capacity than other nodes do */
	SCHED_FITS_WITHOUT_UNDECIDED,    /* it may fit when more pods are decided */
	SCHED_FITS_WITHOUT_RESERVATIONS, /* pods on their way need the capacity, but may fail */
	SCHED_NEVER,                     /* it does not fit on the node, whatever happens to other pods */
	SCHED_ELSEWHERE,                 /* the pod has to be on other nodes because of a volume */
	SCHED_UNKNOWN_NODE,
	SCHED_STALE,
};

enum sched_policy {
	SCHED_BINPACK, /* what is left over is small: large extents stay whole */
	SCHED_SPREAD,  /* what is left over is large */
};

enum sched_outcome {
	SCHED_PASS, /* the nodes marked SCHED_FITS */
	SCHED_WAIT, /* no node now, but perhaps one when more pods are decided */
	SCHED_REFUSE,
};

#define SCHED_SCORE_MAX 10

struct node_candidate {
	struct span name;
	const struct sched_node *node; /* NULL: not known */
};

struct node_choice {
	const struct reservations
		*reservations; /* without those of the pod itself (reservations_drop_pod()) */
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
 * Where the best node could not take a second such pod, and one more for each pod that passed and whose
 * volumes no object has placed (reservations_count()), it is the only one: its reservation is decided at
 * once. Otherwise nodes that could not are held back. A pod that needs no new volume may go to the nodes that
 * have its volumes.
 */
enum sched_outcome node_choice_filter(const struct node_choice *q, enum sched_fit *ret_fits);

/** node_choice_explain() - add to @out why candidate @i was not chosen, as @fit says: one sentence. */
void node_choice_explain(const struct node_choice *q, size_t i, enum sched_fit fit, struct buf *out);

/** node_choice_score() - the score of each candidate by policy, 0 (worst) to SCHED_SCORE_MAX. Nodes that have
 * the volumes get the highest scores; stale and unknown nodes and those on which the pod does not fit get 0.
 * @ret_scores: one per candidate */
void node_choice_score(const struct node_choice *q, int *ret_scores);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement.h - which node a volume goes to: pure.
 *
 * In that order: a node that has the volume already, one that may have begun it, those that report enough
 * capacity, the others, whose reports may be old. Among equals the caller's order counts, if it gave one;
 * otherwise the node that can take the largest volume comes first, so that nodes fill evenly, and equal nodes
 * take turns by volume (docs/decisions). Threads: none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nodes/node_table.h"

/* How many nodes that report too little capacity are asked all the same. */
#define PLACEMENT_DOUBTFUL_MAX 8

enum placement_claim {
	PLACEMENT_IN_USE, /* it has the volume, which was staged or given out there */
	PLACEMENT_HAS,
	PLACEMENT_BEGUN,
	PLACEMENT_ROOM,
	PLACEMENT_DOUBTFUL,
	PLACEMENT_ASKED, /* not to be chosen again */
};

struct candidate {
	const char *node_id; /* borrowed */
	enum placement_claim claim;
	uint64_t max_volume_bytes; /* the largest volume that it can take; not looked at when the caller gave
				an order */
	uint64_t turn;
};

/** placement_max_volume_bytes() - the largest volume that @node can take, less the volumes that were made
 * there since its report.
 * @sector: for usage=FileIO; @sync: it needs MAP_SYNC */
uint64_t placement_max_volume_bytes(const struct node *node, bool sector, bool sync);

/** placement_seed() - of the volume with that @key, for placement_turn(): spreads volumes over nodes that are
 * equal otherwise. */
uint64_t placement_seed(const char *key);

/** placement_turn() - of @node, for candidate.turn. */
uint64_t placement_turn(uint64_t seed, const struct node *node);

/** placement_next() - the best of @n candidates that was not chosen yet. Return: NULL: none is left. */
struct candidate *placement_next(struct candidate *list, size_t n);

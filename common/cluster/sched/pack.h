/*
 * pack.h - whether volumes fit into pieces of free space, each into one: pure.
 *
 * Best fit, largest first, finds a way nearly always; where it does not, a search goes over all ways, until
 * its budget is used up. Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_bin {
	uint64_t rest_bytes; /* changed */
	size_t kind;
};

struct pack {
	struct pack_bin *bins;
	size_t n_bins;
	const uint64_t *takes; /* of item i in a bin of kind k: [i * n_kinds + k]; UINT64_MAX: it fits none */
	size_t n_kinds;
	size_t n_items; /* the largest first */
	size_t *place;  /* room for one number per item */
};

/** pack_items() - pack all items. @budget: steps that the search may take; those that it took are taken off.
 * Return: whether it succeeded: @p->place has the bin of each then, and the bins what is left. */
bool pack_items(struct pack *p, size_t *budget);

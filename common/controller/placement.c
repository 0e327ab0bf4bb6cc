/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/placement.h"
#include "pmem/capacity.h"

/* FNV-1a, 64 bits, of both parts. */
#define FNV_START 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

static uint64_t add_text(uint64_t hash, const char *text)
{
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * FNV_PRIME;
	return hash;
}

uint64_t placement_max_volume_bytes(const struct node *node, bool sector, bool sync)
{
	const struct capacity c = node_capacity(node, sync);
	uint64_t left = capacity_max_bytes(&c, sector);
	uint64_t noted = 0;

	for (size_t i = 0; i < node->n_notes; i++) {
		const struct node_note *note = &node->notes[i];

		/* of a volume that has grown, the report shows a part */
		if (!note->deleted && note->volume.size_bytes > note->reported_bytes)
			noted += note->volume.size_bytes - note->reported_bytes;
	}
	return left > noted ? left - noted : 0;
}

uint64_t placement_seed(const char *key)
{
	return add_text(FNV_START, key);
}

uint64_t placement_turn(uint64_t seed, const struct node *node)
{
	return add_text(seed, node->hash);
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (a->claim != b->claim)
		return a->claim < b->claim;
	if (a->max_volume_bytes != b->max_volume_bytes)
		return a->max_volume_bytes > b->max_volume_bytes;
	return a->turn < b->turn;
}

struct candidate *placement_next(struct candidate *list, size_t n)
{
	struct candidate *best = NULL;

	for (size_t i = 0; i < n; i++) {
		struct candidate *c = &list[i];

		if (c->claim != PLACEMENT_ASKED && (!best || is_better(c, best)))
			best = c;
	}
	return best;
}

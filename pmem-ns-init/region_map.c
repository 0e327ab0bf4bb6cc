/* SPDX-License-Identifier: Apache-2.0 */
#include "region_map.h"

#include <string.h>

#include "base/mem.h"

static void add(struct region_map *m, struct map_extent e)
{
	m->extents = x_realloc(m->extents, m->n + 1, sizeof(*m->extents));
	m->extents[m->n++] = e;
}

static void add_free(struct region_map *m, struct extent e)
{
	if (e.size_bytes > 0)
		add(m, (struct map_extent){MAP_FREE, e.start_bytes, e.size_bytes, NULL});
}

static void add_namespace(struct region_map *m, const struct nd_namespace *ns)
{
	bool own = nd_is_own(ns);

	add(m, (struct map_extent){own ? MAP_OWN : MAP_FOREIGN, ns->offset_bytes, ns->raw_bytes, ns});
	if (own)
		m->own_bytes += ns->raw_bytes;
	else
		m->foreign_bytes += ns->raw_bytes;
}

void region_map_build(const struct nd_region *r, struct region_map *ret)
{
	struct region_map m = {0};
	bool mapped = nd_has_offsets(r) && !r->refused;

	for (size_t i = 0; i < r->n_namespaces; i++) {
		if (mapped)
			add_free(&m, nd_free_extent(r, i));
		add_namespace(&m, &r->namespaces[i]);
	}
	if (mapped)
		add_free(&m, nd_free_extent(r, r->n_namespaces));
	else if (r->available_bytes)
		add(&m, (struct map_extent){MAP_FREE, ND_OFFSET_UNKNOWN, r->available_bytes, NULL});
	*ret = m;
}

void region_map_done(struct region_map *m)
{
	free(m->extents);
	*m = (struct region_map){0};
}

static char letter_at(const struct region_map *m, uint64_t at_bytes)
{
	static const char letters[] = {[MAP_OWN] = 'O', [MAP_FOREIGN] = 'F', [MAP_FREE] = '.'};

	for (size_t i = 0; i < m->n; i++) {
		const struct map_extent *e = &m->extents[i];
		if (e->offset_bytes <= at_bytes && at_bytes - e->offset_bytes < e->size_bytes)
			return letters[e->kind];
	}
	return '?';
}

void region_map_bar(const struct region_map *m, uint64_t region_bytes, char *out, size_t width)
{
	for (size_t i = 0; i < width; i++) {
		/* the middle of the part */
		unsigned __int128 at = (unsigned __int128)region_bytes * (2 * i + 1) / (2 * width);
		out[i] = letter_at(m, (uint64_t)at);
	}
	out[width] = '\0';
}

const char *map_kind_name(enum map_kind kind)
{
	switch (kind) {
	case MAP_OWN:
		return "own";
	case MAP_FOREIGN:
		return "foreign";
	case MAP_FREE:
		break;
	}
	return "free";
}

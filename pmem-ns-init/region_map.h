/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_map.h - a region as a row of extents: pool namespaces of ours, namespaces of others, free space.
 */
#pragma once

#include "pmem/nd/nd.h"

enum map_kind { MAP_OWN, MAP_FOREIGN, MAP_FREE };

struct map_extent {
	enum map_kind kind;
	uint64_t offset_bytes; /* ND_OFFSET_UNKNOWN where the kernel does not show it */
	uint64_t size_bytes;
	const struct nd_namespace *ns; /* borrowed; NULL for free space */
};

struct region_map {
	struct map_extent *extents; /* by offset; those of unknown offset last */
	size_t n;
	uint64_t own_bytes;
	uint64_t foreign_bytes;
};

/**
 * region_map_build() - the map of a region.
 * @r:   outlives the map
 * @ret: region_map_done()
 *
 * If the offset of a namespace is unknown, the free extents are unknown, too: all free space is then shown as
 * one extent of unknown offset.
 */
void region_map_build(const struct nd_region *r, struct region_map *ret);
void region_map_done(struct region_map *m);

/** region_map_bar() - draw the map with one letter per part: O own, F foreign, . free, ? unknown.
 * @out: @width letters and a NUL */
void region_map_bar(const struct region_map *m, uint64_t region_bytes, char *out, size_t width);

/** map_kind_name() - "own", "foreign" or "free". */
const char *map_kind_name(enum map_kind kind);

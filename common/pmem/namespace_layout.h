/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namespace_layout.h - computes sizes and positions in a region, as pure functions.
 *
 * One rule for alignment, lcm(pfn_align x interleave_ways, region_align), rounds requests up and offers down,
 * so that a reported maximum can always be created. Threads: safe; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFN_ALIGN_BYTES            (2ULL << 20)
#define REGION_ALIGN_DEFAULT_BYTES (96ULL << 20) /* if the kernel does not report a region's alignment */
#define BTT_START_OLD_BYTES        4096 /* BTT 1.1; 2.0, made with labels of 1.2 and later, begins at 0 */
#define POOL_MIN_BYTES             (64ULL << 20) /* smallest pool namespace, unless one unit is larger */

/** layout_alignment() - unit in bytes for namespaces of a region.
 * @pfn_align_bytes: 0 means PFN_ALIGN_BYTES; @ways: 0 means 1; @region_align_bytes: 0, 1 or unknown
 * (UINT64_MAX) means REGION_ALIGN_DEFAULT_BYTES. Return: the unit, never 0; UINT64_MAX when it does not fit
 * 64 bits. */
uint64_t layout_alignment(uint64_t pfn_align_bytes, unsigned ways, uint64_t region_align_bytes);

/** layout_fsdax_usable() - the size of the block device of an fsdax namespace of @raw_bytes whose page map is
 * on the medium. @align_bytes: of the map, 0 means PFN_ALIGN_BYTES. Return: 0 when it is too small for one.
 * Source: drivers/nvdimm/pfn_devs.c, nd_pfn_init(). */
uint64_t layout_fsdax_usable(uint64_t raw_bytes, uint64_t align_bytes);

/** layout_btt_usable() - the size of the block device of a sector namespace of @raw_bytes with sectors of
 * 4096 bytes. @start_bytes: where its arenas begin, BTT_START_OLD_BYTES or 0. Return: 0 when it is too small
 * for one. Source: drivers/nvdimm/btt.c, create_arenas() and alloc_arena(); drivers/nvdimm/btt_devs.c,
 * nd_btt_version(). */
uint64_t layout_btt_usable(uint64_t raw_bytes, uint64_t start_bytes);

/* The rules for namespaces of a region. */
struct layout_rules {
	uint64_t unit_bytes;      /* > 0 */
	uint64_t map_align_bytes; /* as layout_fsdax_usable() */
	uint64_t btt_start_bytes; /* as layout_btt_usable() */
};

/** layout_usable() - the usable size of a namespace of @raw_bytes, fsdax or with @sector a BTT; 0: too small.
 */
uint64_t layout_usable(const struct layout_rules *r, bool sector, uint64_t raw_bytes);

/**
 * layout_raw_bytes() - the smallest namespace that has @size_bytes of usable space. There must be one.
 *
 * If a BTT needs a further arena, the result may be one unit larger than necessary.
 */
uint64_t layout_raw_bytes(const struct layout_rules *r, bool sector, uint64_t size_bytes);

/** layout_round_up() - @bytes rounded up to @unit (> 0). Return: UINT64_MAX when that does not fit. */
uint64_t layout_round_up(uint64_t bytes, uint64_t unit);

/** layout_round_down() - @bytes rounded down to @unit (> 0). */
uint64_t layout_round_down(uint64_t bytes, uint64_t unit);

struct extent {
	uint64_t start_bytes; /* relative to the region */
	uint64_t size_bytes;
};

/**
 * layout_find_extent() - best-fit place: the smallest free extent that holds the size, lowest address among
 * equals.
 * @used: extents in use, sorted by start, not overlapping
 * @region_bytes: size of the region
 * @size_bytes: multiple of @unit
 * @unit: alignment of start and size
 *
 * Return: whether there is one.
 */
bool layout_find_extent(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t size_bytes,
	uint64_t unit, uint64_t *ret_start);

/** layout_largest_extent() - the largest multiple of @unit that layout_find_extent() can place; 0 if none. */
uint64_t layout_largest_extent(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t unit);

#define LAYOUT_EXTENTS_MAX 32

/** layout_free_extents() - what layout_find_extent() can fill: multiples of @unit, largest first, the
 * LAYOUT_EXTENTS_MAX largest of them. Return: how many. */
size_t layout_free_extents(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t unit,
	uint64_t ret_bytes[static LAYOUT_EXTENTS_MAX]);

/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/namespace_layout.h"

/* drivers/nvdimm/pfn_devs.c, nd_pfn_init(): the info block, then one page structure per page */
#define PFN_INFO_BYTES    (8ULL << 10)
#define PFN_PAGE_BYTES    4096
#define PAGE_STRUCT_BYTES 64

/* drivers/nvdimm/btt.h */
#define ARENA_MIN_BYTES  (1ULL << 24)
#define ARENA_MAX_BYTES  (1ULL << 39)
#define BTT_PAGE_BYTES   4096
#define BTT_FREE_BLOCKS  256
#define BTT_LOG_BYTES    (BTT_FREE_BLOCKS * 64ULL)
#define BTT_SECTOR_BYTES 4096
#define BTT_ENTRY_BYTES  4

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

uint64_t layout_alignment(uint64_t pfn_align_bytes, unsigned ways, uint64_t region_align_bytes)
{
	uint64_t pfn = pfn_align_bytes ? pfn_align_bytes : PFN_ALIGN_BYTES;
	uint64_t region = region_align_bytes <= 1 || region_align_bytes == UINT64_MAX
				  ? REGION_ALIGN_DEFAULT_BYTES
				  : region_align_bytes;
	uint64_t all_ways = 0;
	uint64_t unit = 0;

	if (__builtin_mul_overflow(pfn, (uint64_t)(ways ? ways : 1), &all_ways))
		return UINT64_MAX;
	if (__builtin_mul_overflow(all_ways / greatest_divisor(all_ways, region), region, &unit))
		return UINT64_MAX;
	return unit;
}

/* Units are usually powers of two, and the sizes of thousands of nodes are rounded for one pod, so divisions
 * are avoided where possible. */
static uint64_t rest_of(uint64_t bytes, uint64_t unit)
{
	return (unit & (unit - 1)) == 0 ? bytes & (unit - 1) : bytes % unit;
}

uint64_t layout_round_up(uint64_t bytes, uint64_t unit)
{
	uint64_t rest = rest_of(bytes, unit);
	uint64_t rounded = bytes;

	if (rest && __builtin_add_overflow(bytes, unit - rest, &rounded))
		return UINT64_MAX;
	return rounded;
}

uint64_t layout_round_down(uint64_t bytes, uint64_t unit)
{
	return bytes - rest_of(bytes, unit);
}

uint64_t layout_fsdax_usable(uint64_t raw_bytes, uint64_t align_bytes)
{
	/* memremap_compat_align() keeps the kernel from less, whatever is set */
	uint64_t align = align_bytes > PFN_ALIGN_BYTES ? align_bytes : PFN_ALIGN_BYTES;

	if (raw_bytes <= PFN_INFO_BYTES)
		return 0;
	uint64_t map_bytes = (raw_bytes - PFN_INFO_BYTES) / PFN_PAGE_BYTES * PAGE_STRUCT_BYTES;
	uint64_t data_bytes = layout_round_up(PFN_INFO_BYTES + map_bytes, align);
	uint64_t end_bytes = layout_round_down(raw_bytes, align);
	return data_bytes < end_bytes ? end_bytes - data_bytes : 0;
}

/* The map has an entry per sector; two pages hold the info block and its copy, and some blocks are spare. */
static uint64_t arena_usable(uint64_t arena_bytes)
{
	uint64_t bytes =
		layout_round_down(arena_bytes, BTT_PAGE_BYTES) - 2ULL * BTT_PAGE_BYTES - BTT_LOG_BYTES;
	uint64_t blocks = (bytes - BTT_PAGE_BYTES) / (BTT_SECTOR_BYTES + BTT_ENTRY_BYTES);

	return (blocks - BTT_FREE_BLOCKS) * BTT_SECTOR_BYTES;
}

uint64_t layout_btt_usable(uint64_t raw_bytes, uint64_t start_bytes)
{
	uint64_t rest = raw_bytes > start_bytes ? raw_bytes - start_bytes : 0;
	uint64_t usable = rest / ARENA_MAX_BYTES * arena_usable(ARENA_MAX_BYTES);

	rest %= ARENA_MAX_BYTES;
	return rest < ARENA_MIN_BYTES ? usable : usable + arena_usable(rest);
}

uint64_t layout_usable(const struct layout_rules *r, bool sector, uint64_t raw_bytes)
{
	return sector ? layout_btt_usable(raw_bytes, r->btt_start_bytes)
		      : layout_fsdax_usable(raw_bytes, r->map_align_bytes);
}

/* Adds the missing bytes until the usable size suffices, because a larger namespace needs more bytes for its
 * page map or BTT. Then takes away the units that are not needed. */
uint64_t layout_raw_bytes(const struct layout_rules *r, bool sector, uint64_t size_bytes)
{
	uint64_t wanted = size_bytes ? size_bytes : 1;
	uint64_t raw = layout_round_up(wanted, r->unit_bytes);
	uint64_t usable;

	while ((usable = layout_usable(r, sector, raw)) < wanted)
		raw = layout_round_up(raw + wanted - usable, r->unit_bytes);
	while (raw > r->unit_bytes && layout_usable(r, sector, raw - r->unit_bytes) >= wanted)
		raw -= r->unit_bytes;
	return raw;
}

struct free_extent {
	uint64_t start_bytes; /* rounded up to the unit */
	uint64_t usable_bytes;
	uint64_t raw_bytes;
};

/* Free extent number @i of the n + 1 before, between and after the extents in use. */
static struct free_extent free_extent_at(
	const struct extent *used, size_t n, size_t i, uint64_t region_bytes, uint64_t unit)
{
	uint64_t low = i ? used[i - 1].start_bytes + used[i - 1].size_bytes : 0;
	uint64_t high = i < n && used[i].start_bytes < region_bytes ? used[i].start_bytes : region_bytes;
	struct free_extent e = {.start_bytes = layout_round_up(low, unit)};

	if (low < high)
		e.raw_bytes = high - low;
	if (e.start_bytes < high)
		e.usable_bytes = layout_round_down(high - e.start_bytes, unit);
	return e;
}

bool layout_find_extent(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t size_bytes,
	uint64_t unit, uint64_t *ret_start)
{
	uint64_t best_bytes = 0;
	uint64_t start = 0;

	for (size_t i = 0; size_bytes && i <= n; i++) {
		struct free_extent e = free_extent_at(used, n, i, region_bytes, unit);
		if (e.usable_bytes >= size_bytes && (!best_bytes || e.raw_bytes < best_bytes)) {
			best_bytes = e.raw_bytes;
			start = e.start_bytes;
		}
	}
	if (best_bytes)
		*ret_start = start;
	return best_bytes > 0;
}

uint64_t layout_largest_extent(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t unit)
{
	uint64_t largest = 0;

	for (size_t i = 0; i <= n; i++) {
		struct free_extent e = free_extent_at(used, n, i, region_bytes, unit);
		if (e.usable_bytes > largest)
			largest = e.usable_bytes;
	}
	return largest;
}

size_t layout_free_extents(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t unit,
	uint64_t ret_bytes[static LAYOUT_EXTENTS_MAX])
{
	size_t n_extents = 0;

	for (size_t i = 0; i <= n; i++) {
		uint64_t bytes = free_extent_at(used, n, i, region_bytes, unit).usable_bytes;
		size_t at = n_extents < LAYOUT_EXTENTS_MAX ? n_extents : LAYOUT_EXTENTS_MAX - 1;

		if (bytes == 0 || (n_extents == LAYOUT_EXTENTS_MAX && ret_bytes[at] >= bytes))
			continue;
		for (; at > 0 && ret_bytes[at - 1] < bytes; at--)
			ret_bytes[at] = ret_bytes[at - 1];
		ret_bytes[at] = bytes;
		if (n_extents < LAYOUT_EXTENTS_MAX)
			n_extents++;
	}
	return n_extents;
}

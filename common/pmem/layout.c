#include "pmem/layout.h"

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

uint64_t layout_round_up(uint64_t bytes, uint64_t unit)
{
	uint64_t rest = bytes % unit;
	uint64_t rounded = bytes;

	if (rest && __builtin_add_overflow(bytes, unit - rest, &rounded))
		return UINT64_MAX;
	return rounded;
}

uint64_t layout_round_down(uint64_t bytes, uint64_t unit)
{
	return bytes - bytes % unit;
}

struct gap {
	uint64_t start_bytes; /* rounded up to the unit */
	uint64_t usable_bytes;
	uint64_t raw_bytes;
};

/* Gap number @i of the n + 1 that lie before, between and behind the extents in use. */
static struct gap gap_at(const struct extent *used, size_t n, size_t i, uint64_t region_bytes, uint64_t unit)
{
	uint64_t low = i ? used[i - 1].start_bytes + used[i - 1].size_bytes : 0;
	uint64_t high = i < n && used[i].start_bytes < region_bytes ? used[i].start_bytes : region_bytes;
	struct gap g = {.start_bytes = layout_round_up(low, unit)};

	if (low < high)
		g.raw_bytes = high - low;
	if (g.start_bytes < high)
		g.usable_bytes = layout_round_down(high - g.start_bytes, unit);
	return g;
}

bool layout_find_gap(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t size_bytes,
	uint64_t unit, uint64_t *ret_start)
{
	uint64_t best_bytes = 0;
	uint64_t start = 0;

	for (size_t i = 0; size_bytes && i <= n; i++) {
		struct gap g = gap_at(used, n, i, region_bytes, unit);
		if (g.usable_bytes >= size_bytes && (!best_bytes || g.raw_bytes < best_bytes)) {
			best_bytes = g.raw_bytes;
			start = g.start_bytes;
		}
	}
	if (best_bytes)
		*ret_start = start;
	return best_bytes > 0;
}

uint64_t layout_largest_gap(const struct extent *used, size_t n, uint64_t region_bytes, uint64_t unit)
{
	uint64_t largest = 0;

	for (size_t i = 0; i <= n; i++) {
		struct gap g = gap_at(used, n, i, region_bytes, unit);
		if (g.usable_bytes > largest)
			largest = g.usable_bytes;
	}
	return largest;
}

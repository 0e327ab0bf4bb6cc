/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/best_fit.h"

size_t best_fit_find(const struct best_fit_extent *extents, size_t n, const uint64_t *takes)
{
	size_t best = n;
	uint64_t best_largest = 0;

	for (size_t i = 0, end; i < n; i = end) {
		size_t pool = extents[i].pool;
		size_t smallest = n;
		uint64_t largest = 0;

		for (end = i; end < n && extents[end].pool == pool; end++) {
			uint64_t bytes = extents[end].bytes;

			if (bytes > largest)
				largest = bytes;
			if (takes[pool] <= bytes && (smallest == n || bytes < extents[smallest].bytes))
				smallest = end;
		}
		if (smallest < n && (best == n || best_fit_compare(largest, best_largest) < 0)) {
			best = smallest;
			best_largest = largest;
		}
	}
	return best;
}

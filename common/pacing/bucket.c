/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/bucket.h"

#include "base/clock.h"

void bucket_init(struct bucket *b, unsigned per_second, unsigned burst)
{
	*b = (struct bucket){0};
	if (per_second == 0)
		return;
	b->interval_ns = NS_PER_S / per_second;
	b->burst_ns = b->interval_ns * (burst > 0 ? burst : 1);
}

uint64_t bucket_take(struct bucket *b, uint64_t now_ns)
{
	uint64_t full_ns = b->full_ns > now_ns ? b->full_ns : now_ns;

	full_ns += b->interval_ns;
	if (full_ns - now_ns > b->burst_ns)
		return full_ns - now_ns - b->burst_ns;
	b->full_ns = full_ns;
	return 0;
}

void bucket_give_back(struct bucket *b)
{
	b->full_ns -= b->full_ns > b->interval_ns ? b->interval_ns : b->full_ns;
}

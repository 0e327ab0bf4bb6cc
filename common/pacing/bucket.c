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

static uint64_t full_after_one_ns(const struct bucket *b, uint64_t now_ns)
{
	return (b->full_ns > now_ns ? b->full_ns : now_ns) + b->interval_ns;
}

uint64_t bucket_wait(const struct bucket *b, uint64_t now_ns)
{
	uint64_t ahead_ns = full_after_one_ns(b, now_ns) - now_ns;

	return ahead_ns > b->burst_ns ? ahead_ns - b->burst_ns : 0;
}

void bucket_charge(struct bucket *b, uint64_t now_ns)
{
	b->full_ns = full_after_one_ns(b, now_ns);
}

uint64_t bucket_take(struct bucket *b, uint64_t now_ns)
{
	uint64_t wait_ns = bucket_wait(b, now_ns);

	if (wait_ns == 0)
		bucket_charge(b, now_ns);
	return wait_ns;
}

void bucket_give_back(struct bucket *b)
{
	b->full_ns -= b->full_ns > b->interval_ns ? b->interval_ns : b->full_ns;
}

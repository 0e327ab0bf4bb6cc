/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/backoff.h"

#include "base/clock.h"
#include "base/random.h"

#define MAX_NS (BACKOFF_MAX_MS * NS_PER_MS)

void backoff_init(struct backoff *b, uint64_t first_ms)
{
	uint64_t ms = first_ms ? first_ms : BACKOFF_FIRST_MS;

	*b = (struct backoff){.first_ns = ms < BACKOFF_MAX_MS ? ms * NS_PER_MS : MAX_NS};
	backoff_reset(b);
}

void backoff_reset(struct backoff *b)
{
	b->next_ns = b->first_ns;
	b->until_ns = 0;
}

void backoff_fail(struct backoff *b, uint64_t now_ns)
{
	uint64_t jitter_ns = b->next_ns / 5;

	b->until_ns = now_ns + b->next_ns - jitter_ns + random_u64() % (2 * jitter_ns + 1);
	b->next_ns = b->next_ns * 8 / 5;
	if (b->next_ns > MAX_NS)
		b->next_ns = MAX_NS;
}

bool backoff_is_over(const struct backoff *b, uint64_t now_ns)
{
	return now_ns >= b->until_ns;
}

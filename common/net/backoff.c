#include "net/backoff.h"

#include "base/clock.h"
#include "base/random.h"

void backoff_init(struct backoff *b, uint64_t first_ms)
{
	*b = (struct backoff){.first_ms = first_ms ? first_ms : BACKOFF_FIRST_MS};
	backoff_reset(b);
}

void backoff_reset(struct backoff *b)
{
	b->next_ms = b->first_ms < BACKOFF_MAX_MS ? b->first_ms : BACKOFF_MAX_MS;
	b->until_ns = 0;
}

void backoff_fail(struct backoff *b, uint64_t now_ns)
{
	uint64_t wait_ns = b->next_ms * NS_PER_MS;
	uint64_t jitter_ns = wait_ns / 5;

	b->until_ns = now_ns + wait_ns - jitter_ns + random_u64() % (2 * jitter_ns + 1);
	b->next_ms = b->next_ms * 8 / 5;
	if (b->next_ms > BACKOFF_MAX_MS)
		b->next_ms = BACKOFF_MAX_MS;
}

bool backoff_is_over(const struct backoff *b, uint64_t now_ns)
{
	return now_ns >= b->until_ns;
}

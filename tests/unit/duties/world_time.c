/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "base/clock.h"
#include "base/mem.h"
#include "unit/duties/world.h"

struct world_event {
	struct world_event *next;
	uint64_t at_ns;
	void (*fn)(void *user);
	void *user;
};

void world_at(struct world *w, uint64_t delay_ns, void (*fn)(void *user), void *user)
{
	struct world_event *e = arena_alloc(w->memory, sizeof(*e));
	struct world_event **at = &w->events;

	*e = (struct world_event){.at_ns = w->now_ns + delay_ns, .fn = fn, .user = user};
	while (*at && (*at)->at_ns <= e->at_ns)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
}

void world_run(struct world *w, uint64_t duration_ns)
{
	uint64_t until_ns = w->now_ns + duration_ns;

	while (w->events && w->events->at_ns <= until_ns && (!w->broken || w->closing)) {
		struct world_event *e = w->events;

		w->events = e->next;
		w->now_ns = e->at_ns;
		w->n_events++;
		e->fn(e->user);
	}
	w->now_ns = until_ns;
}

/* xorshift64* (Marsaglia; Vigna). */
uint64_t world_random(struct world *w, uint64_t n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (w->random * 0x2545f4914f6cdd1dULL >> 16) % n;
}

bool world_chance(struct world *w, unsigned percent)
{
	return world_random(w, 100) < percent;
}

uint64_t world_delay_ms(struct world *w, uint64_t max_ms)
{
	return (1 + world_random(w, max_ms)) * NS_PER_MS;
}

void world_break(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->broken)
		return;
	va_start(ap, fmt);
	w->broken = x_vasprintf(fmt, ap);
	va_end(ap);
}

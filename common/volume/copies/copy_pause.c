/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/copy_pause.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"

/* Time for which a measured speed is used: the reason why a copy was slow may be gone later. */
#define PACE_VALID_NS (180 * NS_PER_S)

void copy_pace_note(
	struct copy_pace *p, uint64_t bytes, uint64_t ns, uint64_t limit_bytes_per_s, uint64_t now_ns)
{
	uint64_t speed = ns > 0 ? (uint64_t)((double)bytes * NS_PER_S / (double)ns) : 0;

	if (bytes < COPY_PACE_LEAST_BYTES || speed == 0)
		return;
	if (limit_bytes_per_s > 0 && speed >= limit_bytes_per_s - limit_bytes_per_s / 8)
		return;
	*p = (struct copy_pace){.bytes_per_s = speed, .measured_ns = now_ns};
}

uint64_t copy_pace_get(const struct copy_pace *p, uint64_t now_ns)
{
	return now_ns - p->measured_ns <= PACE_VALID_NS ? p->bytes_per_s : 0;
}

/* Return: how long it takes to copy @bytes, in ms; 0: not known */
static uint64_t time_ms(uint64_t bytes, uint64_t bytes_per_s)
{
	return bytes_per_s > 0 ? (uint64_t)((double)bytes * 1000 / (double)bytes_per_s) : 0;
}

void copy_estimate_add(struct copy_estimate *p, const struct copy_work *w)
{
	uint64_t limit_ms = time_ms(w->bytes, w->limit_bytes_per_s);
	uint64_t measured_ms = time_ms(w->bytes, w->bytes_per_s);

	p->first = p->first ? p->first : w->id;
	p->n++;
	p->files += w->files;
	p->walk_ns += w->walk_ns;
	p->bytes += w->bytes;
	p->limit_ms += limit_ms;
	p->copy_ms += measured_ms > limit_ms ? measured_ms : limit_ms;
}

int copy_estimate_check(const struct copy_estimate *p, uint64_t max_pause_ms, struct error **err)
{
	uint64_t copy_ms = p->bytes <= COPY_SMALL_BYTES ? p->limit_ms : p->copy_ms;
	uint64_t total_ms = p->walk_ns / NS_PER_MS + copy_ms;
	char used[24], more[64] = "";

	if (total_ms <= max_pause_ms)
		return 0;
	if (p->n > 1)
		snprintf(more, sizeof(more), " together with %zu other volume%s", p->n - 1,
			p->n > 2 ? "s" : "");
	return err_set(err, ERR_PRECONDITION,
		"volume %s is in use%s, and its writers would have to stand still for %ju ms while %ju files are "
		"flushed and %s are copied, but maxPause is %ju ms: nothing was stopped; set a larger maxPause in "
		"the class, or copy the volume while no pod uses it",
		p->first, more, (uintmax_t)total_ms, (uintmax_t)p->files,
		format_bytes_rounded(p->bytes, used), (uintmax_t)max_pause_ms);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/copy_reports.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sorted.h"
#include "base/str.h"

void copy_reports_done(struct copy_reports *c)
{
	for (size_t i = 0; i < c->n_pauses; i++)
		free(c->pauses[i].id);
	c->n_pauses = 0;
}

void copy_reports_begin(struct copy_reports *c, struct copy_progress *p, const char *id, uint64_t total_bytes,
	uint64_t now_ns)
{
	*p = (struct copy_progress){.id = id, .total_bytes = total_bytes, .shown_ns = now_ns};
	LIST_INSERT_HEAD(&c->under_way, p, all);
}

bool copy_reports_advance(struct copy_progress *p, uint64_t done_bytes, uint64_t now_ns)
{
	if (done_bytes > p->total_bytes)
		done_bytes = p->total_bytes;
	if (now_ns - p->shown_ns < COPY_REPORT_NS)
		return false;
	if (p->shown && (done_bytes <= p->shown_bytes || done_bytes - p->shown_bytes < p->total_bytes / 10))
		return false;
	p->shown = true;
	p->shown_bytes = done_bytes;
	p->shown_ns = now_ns;
	return true;
}

void copy_reports_end(struct copy_progress *p)
{
	LIST_REMOVE(p, all);
}

/* Makes room for another one. */
static void drop_pause(struct copy_reports *c, size_t at)
{
	free(c->pauses[at].id);
	c->n_pauses--;
	memmove(&c->pauses[at], &c->pauses[at + 1], (c->n_pauses - at) * sizeof(c->pauses[0]));
}

void copy_reports_pause(struct copy_reports *c, const char *id, uint64_t ns, uint64_t now_ms)
{
	size_t at = 0;

	/* by its end a pause is distinguished from the one before */
	c->last_ended_ms = now_ms > c->last_ended_ms ? now_ms : c->last_ended_ms + 1;
	while (at < c->n_pauses && !str_eq(c->pauses[at].id, id))
		at++;
	if (at < c->n_pauses)
		drop_pause(c, at);
	else if (c->n_pauses == COPY_PAUSES_MAX)
		drop_pause(c, 0);
	c->pauses[c->n_pauses++] = (struct copy_pause){.id = x_strdup(id),
		.pause = {.ms = (ns + NS_PER_MS - 1) / NS_PER_MS, .ended_ms = c->last_ended_ms}};
}

struct volume_filling copy_reports_progress(const struct copy_reports *c, const char *id)
{
	const struct copy_progress *p;

	LIST_FOREACH(p, &c->under_way, all)
	{
		if (p->shown && str_eq(p->id, id))
			return (struct volume_filling){p->shown_bytes, p->total_bytes};
	}
	return (struct volume_filling){0};
}

static int order_report(const void *element, const void *key)
{
	const struct volume_report *v = element;

	return strcmp(v->id, key);
}

void copy_reports_add_pauses(const struct copy_reports *c, struct volume_report *volumes, size_t n)
{
	for (size_t i = 0; i < c->n_pauses; i++) {
		bool found;
		size_t at = sorted_find(volumes, n, sizeof(*volumes), c->pauses[i].id, order_report, &found);

		if (found)
			volumes[at].pause = c->pauses[i].pause;
	}
}

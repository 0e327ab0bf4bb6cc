/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/source_waits.h"

#include "base/str.h"

#define MAX_FOR_ONE 4
/* Other calls need threads, too, when several volumes are cloned by crowds. */
#define MAX_FOR_ALL 12

bool source_waits_enter(struct source_waits *waits, struct source_wait *w)
{
	unsigned n = 0, all = 0;

	for (const struct source_wait *other = waits->first; other; other = other->next) {
		n += str_eq(other->source, w->source);
		all++;
	}
	if (n >= MAX_FOR_ONE || all >= MAX_FOR_ALL)
		return false;
	w->next = waits->first;
	waits->first = w;
	return true;
}

void source_waits_leave(struct source_waits *waits, const struct source_wait *w)
{
	struct source_wait **link = &waits->first;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
}

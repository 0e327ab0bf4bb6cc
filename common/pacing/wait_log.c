/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/wait_log.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

bool wait_log_due(struct wait_log *w, const char *why, uint64_t now_ns)
{
	bool first = !w->why;
	uint64_t pause_ms = !first && str_eq(w->why, why) ? WAIT_LOG_SAME_MS : WAIT_LOG_OTHER_MS;

	if (first)
		w->since_ns = now_ns;
	else if (now_ns - w->logged_ns < pause_ms * NS_PER_MS)
		return false;
	free(w->why);
	w->why = x_strdup(why);
	w->logged_ns = now_ns;
	return true;
}

bool wait_log_over(struct wait_log *w)
{
	bool waited = w->why != NULL;

	free(w->why);
	*w = (struct wait_log){0};
	return waited;
}

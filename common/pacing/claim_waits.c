/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/claim_waits.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static void wait_done(struct claim_wait *wait)
{
	free(wait->uid);
	free(wait->reported);
}

void claim_waits_done(struct claim_waits *w)
{
	for (size_t i = 0; i < w->n; i++)
		wait_done(&w->list[i]);
	free(w->list);
	*w = (struct claim_waits){0};
}

static struct claim_wait *get(struct claim_waits *w, const char *uid, uint64_t now_ns)
{
	for (size_t i = 0; i < w->n; i++) {
		if (str_eq(w->list[i].uid, uid))
			return &w->list[i];
	}
	if (w->n >= CLAIM_WAITS_MAX)
		return NULL;
	w->list = x_realloc(w->list, w->n + 1, sizeof(*w->list));
	w->list[w->n] = (struct claim_wait){.uid = x_strdup(uid), .since_ns = now_ns};
	return &w->list[w->n++];
}

static bool is_due(const struct claim_wait *wait, const char *message, uint64_t now_ns)
{
	if (!wait->reported)
		return now_ns - wait->since_ns >= CLAIM_WAIT_NS;
	return now_ns - wait->reported_ns >=
	       (str_eq(wait->reported, message) ? CLAIM_REPEAT_NS : CLAIM_CHANGE_NS);
}

bool claim_waits_see(struct claim_waits *w, const char *uid, const char *message, uint64_t now_ns)
{
	struct claim_wait *wait = get(w, uid, now_ns);

	if (!wait)
		return false;
	wait->seen = true;
	if (!is_due(wait, message, now_ns))
		return false;
	free(wait->reported);
	wait->reported = x_strdup(message);
	wait->reported_ns = now_ns;
	return true;
}

void claim_waits_end(struct claim_waits *w)
{
	for (size_t i = w->n; i > 0; i--) {
		bool seen = w->list[i - 1].seen;

		w->list[i - 1].seen = false;
		if (seen)
			continue;
		wait_done(&w->list[i - 1]);
		w->list[i - 1] = w->list[--w->n];
	}
}

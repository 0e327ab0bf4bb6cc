/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/pod_needs.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

void pod_need_done(struct pod_need *need)
{
	free(need->name);
	free(need->what);
	strv_free(need->nodes);
	free(need->source);
	free(need->snapshot);
}

void pod_needs_add_home(struct pod_needs *needs, const struct pod_home *home)
{
	needs->homes = x_realloc(needs->homes, needs->n_homes + 1, sizeof(*needs->homes));
	needs->homes[needs->n_homes++] = *home;
}

const struct pod_home *pod_needs_away(const struct pod_needs *needs, struct span node)
{
	for (size_t i = 0; i < needs->n_homes; i++) {
		char *const *home = needs->homes[i].nodes;

		while (home && *home && !span_eq(node, *home))
			home++;
		if (!home || !*home)
			return &needs->homes[i];
	}
	return NULL;
}

void pod_needs_done(struct pod_needs *needs)
{
	for (size_t i = 0; i < needs->n; i++)
		pod_need_done(&needs->v[i]);
	for (size_t i = 0; i < needs->n_homes; i++) {
		strv_free(needs->homes[i].nodes);
		free(needs->homes[i].why);
	}
	free(needs->v);
	free(needs->homes);
	*needs = (struct pod_needs){0};
}

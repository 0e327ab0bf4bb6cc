/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/sched/need.h"

#include <stdlib.h>

#include "base/str.h"

void sched_needs_done(struct sched_needs *needs)
{
	for (size_t i = 0; i < needs->n; i++) {
		free(needs->v[i].name);
		free(needs->v[i].what);
	}
	for (size_t i = 0; i < needs->n_homes; i++)
		strv_free(needs->homes[i]);
	free(needs->v);
	free(needs->homes);
	*needs = (struct sched_needs){0};
}

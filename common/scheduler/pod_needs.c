/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/pod_needs.h"

#include <stdlib.h>

#include "base/str.h"

void pod_need_done(struct pod_need *need)
{
	free(need->name);
	free(need->what);
	strv_free(need->nodes);
}

void pod_needs_done(struct pod_needs *needs)
{
	for (size_t i = 0; i < needs->n; i++)
		pod_need_done(&needs->v[i]);
	for (size_t i = 0; i < needs->n_homes; i++)
		strv_free(needs->homes[i]);
	free(needs->v);
	free(needs->homes);
	*needs = (struct pod_needs){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/absent_names.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/str.h"

void absent_names_done(struct absent_names *a)
{
	for (size_t i = 0; i < ABSENT_NAMES_MAX; i++)
		free(TAKE_PTR(a->entries[i].name));
}

void absent_names_add(struct absent_names *a, const char *name, uint64_t now_ns)
{
	free(a->entries[a->next].name);
	a->entries[a->next].name = x_strdup(name);
	a->entries[a->next].until_ns = now_ns + ABSENT_NAMES_NS;
	a->next = (a->next + 1) % ABSENT_NAMES_MAX;
}

bool absent_names_has(const struct absent_names *a, const char *name, uint64_t now_ns)
{
	for (size_t i = 0; i < ABSENT_NAMES_MAX; i++) {
		if (now_ns < a->entries[i].until_ns && str_eq(a->entries[i].name, name))
			return true;
	}
	return false;
}

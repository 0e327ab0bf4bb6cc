/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/failing_pools.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

struct entry {
	char *pool;
	unsigned seconds;
	uint64_t until_ns;
};

struct failing_pools {
	struct entry *entries;
	size_t n;
};

struct failing_pools *failing_pools_new(void)
{
	return x_calloc(1, sizeof(struct failing_pools));
}

void failing_pools_free(struct failing_pools *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->entries[i].pool);
	free(f->entries);
	free(f);
}

static struct entry *find(const struct failing_pools *f, const char *pool)
{
	for (size_t i = 0; i < f->n; i++) {
		if (str_eq(f->entries[i].pool, pool))
			return &f->entries[i];
	}
	return NULL;
}

unsigned failing_pools_note(struct failing_pools *f, const char *pool, uint64_t now_ns)
{
	struct entry *e = find(f, pool);

	if (!e) {
		f->entries = x_realloc(f->entries, f->n + 1, sizeof(*f->entries));
		e = &f->entries[f->n++];
		*e = (struct entry){.pool = x_strdup(pool)};
	}
	e->seconds = e->seconds ? e->seconds * 2 : FAILING_FIRST_S;
	if (e->seconds > FAILING_MAX_S)
		e->seconds = FAILING_MAX_S;
	e->until_ns = now_ns + e->seconds * NS_PER_S;
	return e->seconds;
}

bool failing_pools_clear(struct failing_pools *f, const char *pool)
{
	struct entry *e = find(f, pool);

	if (!e)
		return false;
	free(e->pool);
	*e = f->entries[--f->n];
	return true;
}

bool failing_pools_avoids(const struct failing_pools *f, const char *pool, uint64_t now_ns)
{
	const struct entry *e = find(f, pool);

	return e && now_ns < e->until_ns;
}

bool failing_pools_has(const struct failing_pools *f, const char *pool)
{
	return find(f, pool) != NULL;
}

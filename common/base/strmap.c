/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sorted.h"

void strmap_done(struct strmap *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->entries[i].key);
		free(m->entries[i].value);
	}
	free(m->entries);
	*m = (struct strmap){0};
}

static int order_entry(const void *element, const void *key)
{
	const struct strmap_entry *entry = element;

	return strcmp(entry->key, key);
}

/* Place of @key, or where it would have to be inserted. */
static size_t find(const struct strmap *m, const char *key, bool *ret_found)
{
	return sorted_find(m->entries, m->n, sizeof(*m->entries), key, order_entry, ret_found);
}

void strmap_set(struct strmap *m, const char *key, const char *value)
{
	bool found;
	size_t i = find(m, key, &found);
	char *copy = x_strdup(value);

	if (found) {
		free(m->entries[i].value);
		m->entries[i].value = copy;
		return;
	}
	char *key_copy = x_strdup(key);
	m->entries = x_realloc(m->entries, m->n + 1, sizeof(*m->entries));
	memmove(m->entries + i + 1, m->entries + i, (m->n - i) * sizeof(*m->entries));
	m->entries[i] = (struct strmap_entry){.key = key_copy, .value = copy};
	m->n++;
}

const char *strmap_get(const struct strmap *m, const char *key)
{
	bool found;
	size_t i = find(m, key, &found);

	return found ? m->entries[i].value : NULL;
}

void strmap_copy(struct strmap *to, const struct strmap *from)
{
	for (size_t i = 0; i < from->n; i++)
		strmap_set(to, from->entries[i].key, from->entries[i].value);
}

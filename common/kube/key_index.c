/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/key_index.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"

struct key_entry {
	struct name_link by_key;
	struct name_link by_name;
	LIST_ENTRY(key_entry) all;
	char *key; /* as kube_meta_key() */
	char *name;
};

struct key_index {
	struct name_index by_key;
	struct name_index by_name;
	LIST_HEAD(, key_entry) entries;
};

struct key_index *key_index_new(void)
{
	struct key_index *x = x_calloc(1, sizeof(*x));

	name_index_init(&x->by_key);
	name_index_init(&x->by_name);
	return x;
}

static void remove_entry(struct key_index *x, struct key_entry *e)
{
	name_index_remove(&x->by_key, &e->by_key);
	name_index_remove(&x->by_name, &e->by_name);
	LIST_REMOVE(e, all);
	free(e->key);
	free(e->name);
	free(e);
}

void key_index_free(struct key_index *x)
{
	if (!x)
		return;
	while (!LIST_EMPTY(&x->entries))
		remove_entry(x, LIST_FIRST(&x->entries));
	name_index_done(&x->by_key);
	name_index_done(&x->by_name);
	free(x);
}

void key_index_set(struct key_index *x, const char *key, const char *name)
{
	struct name_link *link = name_index_first(&x->by_key, key);
	struct key_entry *e = link ? OWNER_OF(link, struct key_entry, by_key) : NULL;

	if (e && str_eq(e->name, name))
		return;
	if (e)
		remove_entry(x, e);
	if (!name)
		return;
	e = x_calloc(1, sizeof(*e));
	e->key = x_strdup(key);
	e->name = x_strdup(name);
	name_index_add(&x->by_key, &e->by_key, e->key);
	name_index_add(&x->by_name, &e->by_name, e->name);
	LIST_INSERT_HEAD(&x->entries, e, all);
}

const char *key_index_get(const struct key_index *x, const char *name)
{
	struct name_link *link = name_index_first(&x->by_name, name);

	return link ? OWNER_OF(link, struct key_entry, by_name)->key : NULL;
}

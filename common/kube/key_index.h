/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_index.h - finds the keys of objects, of which an informer has the objects, by another name.
 *
 * Each key has at most one name at a time; several keys may have the same. Threads: one owner. Nothing
 * blocks.
 */
#pragma once

#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/name_index.h"

struct key_index;

struct key_entry {
	struct name_link by_key;
	struct name_link by_name;
	LIST_ENTRY(key_entry) all;
	char *key; /* as kube_meta_key() */
	char *name;
};

/** key_index_new() - without keys. Return: never NULL; key_index_free(). */
struct key_index *key_index_new(void);
void key_index_free(struct key_index *x);
DEFINE_CLEANUP(struct key_index *, key_index_free);

/** key_index_set() - the object with @key has the @name from now on. @name: copied; NULL: none. Idempotent.
 */
void key_index_set(struct key_index *x, const char *key, const char *name);

/** key_index_first() - an entry with @name, or NULL. key_index_next(): another one with the name of @e, or
 * NULL. Borrowed until the index is changed. */
const struct key_entry *key_index_first(const struct key_index *x, const char *name);
const struct key_entry *key_index_next(const struct key_entry *e);

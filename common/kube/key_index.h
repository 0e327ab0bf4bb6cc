/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_index.h - finds the keys of objects, of which an informer has the objects, by another name.
 *
 * Each key has at most one name at a time; several keys may have the same. Threads: one owner. Nothing
 * blocks.
 */
#pragma once

#include "base/cleanup.h"

struct key_index;

/** key_index_new() - without keys. Return: never NULL; key_index_free(). */
struct key_index *key_index_new(void);
void key_index_free(struct key_index *x);
DEFINE_CLEANUP(struct key_index *, key_index_free);

/** key_index_set() - the object with @key has the @name from now on. @name: copied; NULL: none. Idempotent.
 */
void key_index_set(struct key_index *x, const char *key, const char *name);

/** key_index_get() - find the key of an object with @name. Return: the key of any such object, borrowed until
 * the index is changed; NULL: there is none. */
const char *key_index_get(const struct key_index *x, const char *name);

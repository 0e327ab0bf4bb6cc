/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strmap.h - small map of strings, kept sorted by key so that equal maps have equal bytes when written.
 *
 * For volume parameters and topology segments: tens of entries. Threads: one owner at a time.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

struct strmap_entry {
	char *key;
	char *value;
};

struct strmap {
	struct strmap_entry *entries; /* sorted by key, bytewise */
	size_t n;
};

/** strmap_done() - release the content of @m; it is empty afterwards. */
void strmap_done(struct strmap *m);

/** strmap_set() - copy @key and @value in; an existing key gets the new value. */
void strmap_set(struct strmap *m, const char *key, const char *value);

/** strmap_get() - value of @key, borrowed, or NULL. */
const char *strmap_get(const struct strmap *m, const char *key);

/** strmap_copy() - add every entry of @from to @to. */
void strmap_copy(struct strmap *to, const struct strmap *from);

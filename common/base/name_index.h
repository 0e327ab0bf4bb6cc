/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_index.h - finds objects by name: links are members of their owners, in a hash table that grows with
 * their number. Several links may have the same name.
 *
 * The hash is SipHash-1-3 under a random key, since users choose names of volumes: no choice of names makes a
 * look-up slow. Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF". Threads: one owner. Nothing
 * blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct name_link {
	struct name_link *next;
	const char *name; /* borrowed from the owner, which removes the link before it frees it */
	size_t name_n;    /* its length */
	uint64_t hash;
};

/* The owner of a link: of a @type that has the link as @member. */
#define OWNER_OF(link, type, member) ((type *)(void *)((char *)(link) - offsetof(type, member)))

struct name_index {
	struct name_link **buckets;
	size_t n_buckets; /* a power of two, or 0 */
	size_t n;
	uint64_t key[2];
};

/** name_index_init() - without links. name_index_done(): release the table; the links are their owners'. */
void name_index_init(struct name_index *x);
void name_index_done(struct name_index *x);

/** name_index_add() - add @link, which is in no index, with @name. */
void name_index_add(struct name_index *x, struct name_link *link, const char *name);

/** name_index_remove() - take @link, which is in @x, out. */
void name_index_remove(struct name_index *x, struct name_link *link);

/** name_index_find() - as name_index_first(), of a @name that is not NUL-terminated. */
struct name_link *name_index_find(const struct name_index *x, struct span name);

#define NAME_INDEX_EACH_MAX 32

/** name_index_find_each() - name_index_find() for @n names, at most NAME_INDEX_EACH_MAX: what they lead to is
 * fetched from memory at the same time. A name that stands behind its link comes with it. @ret: a link or
 * NULL for each */
void name_index_find_each(
	const struct name_index *x, const struct span *names, size_t n, struct name_link **ret);

/** name_index_first() - a link with @name, or NULL. name_index_next(): another one with the name of @link, or
 * NULL. */
struct name_link *name_index_first(const struct name_index *x, const char *name);
struct name_link *name_index_next(const struct name_link *link);

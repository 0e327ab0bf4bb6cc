/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that lives as long as one request.
 *
 * arena_try_alloc() honours the limit and is for sizes that a peer controls (protobuf unpacking: 4 MiB of
 * input can become 149 MiB of objects); the other functions are for our own replies and ignore it. Nothing is
 * freed singly. Threads: one owner at a time.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

struct arena;

/** arena_new() - empty arena; @limit_bytes bounds arena_try_alloc(). Return: never NULL; arena_free(). */
struct arena *arena_new(size_t limit_bytes);

/** arena_free() - destroy @a and everything that was allocated from it; NULL is allowed. */
void arena_free(struct arena *a);

/** arena_try_alloc() - @n bytes (may be 0), aligned for any type. Return: NULL if over the limit. */
void *arena_try_alloc(struct arena *a, size_t n);

/** arena_alloc() - @n zeroed bytes outside the limit. Return: never NULL. */
void *arena_alloc(struct arena *a, size_t n);

/** arena_strdup() - copy of @s outside the limit; NULL gives NULL. */
char *arena_strdup(struct arena *a, const char *s);

DEFINE_CLEANUP(struct arena *, arena_free);

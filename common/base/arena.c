/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK_BYTES 4096

struct chunk {
	struct chunk *next;
	alignas(max_align_t) uint8_t bytes[];
};

struct arena {
	size_t limit_bytes;
	size_t counted_bytes; /* given out by arena_try_alloc() */
	struct chunk *chunks;
	uint8_t *at; /* free part of the chunk that small pieces come from */
	size_t left;
};

struct arena *arena_new(size_t limit_bytes)
{
	struct arena *a = x_calloc(1, sizeof(*a));

	a->limit_bytes = limit_bytes;
	return a;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	while (a->chunks) {
		struct chunk *next = a->chunks->next;

		free(a->chunks);
		a->chunks = next;
	}
	free(a);
}

static uint8_t *chunk_add(struct arena *a, size_t bytes)
{
	assert(bytes <= PTRDIFF_MAX);
	struct chunk *c = x_malloc(sizeof(*c) + bytes);

	c->next = a->chunks;
	a->chunks = c;
	return c->bytes;
}

/* Large pieces get a chunk of their own, so that at most a quarter of a shared chunk is lost. */
static void *take(struct arena *a, size_t n)
{
	const size_t align = alignof(max_align_t);

	assert(n <= PTRDIFF_MAX);
	size_t size = (n + align - 1) / align * align;
	if (size == 0)
		size = align;
	if (size > CHUNK_BYTES / 4 && size > a->left)
		return chunk_add(a, size);
	if (size > a->left) {
		a->at = chunk_add(a, CHUNK_BYTES);
		a->left = CHUNK_BYTES;
	}
	void *p = a->at;
	a->at += size;
	a->left -= size;
	return p;
}

void *arena_try_alloc(struct arena *a, size_t n)
{
	/* An empty piece takes room as well, so it counts too. */
	size_t cost = n ? n : 1;

	if (cost > a->limit_bytes - a->counted_bytes || cost > PTRDIFF_MAX)
		return NULL;
	a->counted_bytes += cost;
	return take(a, n);
}

void *arena_alloc(struct arena *a, size_t n)
{
	return memset(take(a, n), 0, n);
}

char *arena_strdup(struct arena *a, const char *s)
{
	if (!s)
		return NULL;
	size_t size = strlen(s) + 1;
	return memcpy(take(a, size), s, size);
}

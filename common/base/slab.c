/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slab.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"

#define SLAB_BYTES (2 * MEM_LARGE_BYTES - 64) /* with malloc's header whole pages */
#define STEP_BYTES 32
#define STEPS      32 /* larger blocks are malloc's */

struct block {
	struct slab *slab; /* NULL: malloc's */
	union {
		struct block *next; /* free one */
		uint64_t bytes[1];
	};
};

struct slab {
	LIST_ENTRY(slab) same_size; /* with a free block */
	struct block *free;
	size_t step;
	size_t n_used;
	uint64_t blocks[];
};

LIST_HEAD(slab_list, slab);

struct slabs {
	struct slab_list with_room[STEPS + 1]; /* by step */
	struct slab *spare;                    /* without used blocks, for what comes and goes alone */
};

struct slabs *slabs_new(void)
{
	return x_calloc(1, sizeof(struct slabs));
}

void slabs_free(struct slabs *s)
{
	for (size_t step = 0; s && step <= STEPS; step++)
		assert(LIST_EMPTY(&s->with_room[step]));
	if (s)
		free(s->spare);
	free(s);
}

static struct slab *slab_new(struct slabs *s, size_t step)
{
	size_t block_bytes = step * STEP_BYTES;
	struct slab *slab = s->spare ? TAKE_PTR(s->spare) : x_malloc(SLAB_BYTES);
	char *at = (char *)slab->blocks;

	*slab = (struct slab){.step = step};
	for (; at + block_bytes <= (char *)slab + SLAB_BYTES; at += block_bytes) {
		struct block *b = (struct block *)(void *)at;

		*b = (struct block){.slab = slab, .next = slab->free};
		slab->free = b;
	}
	LIST_INSERT_HEAD(&s->with_room[step], slab, same_size);
	return slab;
}

void *slabs_alloc(struct slabs *s, size_t n)
{
	size_t step = (offsetof(struct block, bytes) + n + STEP_BYTES - 1) / STEP_BYTES;
	struct slab *slab;
	struct block *b;

	if (step > STEPS) {
		b = x_calloc(1, offsetof(struct block, bytes) + n);
		return b->bytes;
	}
	slab = LIST_FIRST(&s->with_room[step]);
	if (!slab)
		slab = slab_new(s, step);
	b = slab->free;
	assert(b);
	slab->free = b->next;
	slab->n_used++;
	if (!slab->free)
		LIST_REMOVE(slab, same_size);
	return memset(b->bytes, 0, step * STEP_BYTES - offsetof(struct block, bytes));
}

void slabs_release(struct slabs *s, void *block)
{
	struct block *b =
		block ? (struct block *)(void *)((char *)block - offsetof(struct block, bytes)) : NULL;
	struct slab *slab = b ? b->slab : NULL;

	if (!slab) {
		free(b);
		return;
	}
	if (!slab->free)
		LIST_INSERT_HEAD(&s->with_room[slab->step], slab, same_size);
	b->next = slab->free;
	slab->free = b;
	if (--slab->n_used > 0)
		return;
	LIST_REMOVE(slab, same_size);
	free(s->spare);
	s->spare = slab;
}

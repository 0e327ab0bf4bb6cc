/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h - memory for what comes and goes by the ten thousands, such as the work on all volumes of a cluster.
 *
 * Blocks of similar size share slabs. A slab is freed when none of its blocks is in use, and is so large that
 * its pages return to the system (mem_tune()); malloc would leave holes between what stays. Threads: one
 * owner at a time.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

struct slabs;

/** slabs_new() - without blocks. Return: never NULL; slabs_free(). */
struct slabs *slabs_new(void);

/** slabs_free() - destroy @s, after all of its blocks have been released; NULL is allowed. */
void slabs_free(struct slabs *s);
DEFINE_CLEANUP(struct slabs *, slabs_free);

/** slabs_alloc() - @n zeroed bytes, aligned for pointers and 64-bit numbers. Return: never NULL;
 * slabs_release(). */
void *slabs_alloc(struct slabs *s, size_t n);

/** slabs_release() - give @block of @s back; NULL is allowed. */
void slabs_release(struct slabs *s, void *block);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.h - a file mapped so that stores reach the medium without a system call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct mapping {
	char *data; /* aligned to 2 MiB, as a huge page needs it */
	size_t size_bytes;
	void *reserved; /* address space around it */
	size_t reserved_bytes;
};

/** mapping_open() - map the first @size_bytes of @fd with MAP_SYNC. Return: 0, or -1 with ERR_UNIMPLEMENTED
 * (the kernel says EOPNOTSUPP: no DAX), ERR_INTERNAL. @ret: mapping_close(). */
int mapping_open(int fd, size_t size_bytes, struct mapping *ret, struct error **err) MUST_CHECK;

/** mapping_close() - unmap; safe on a zeroed one. */
void mapping_close(struct mapping *m);

/** mapping_flush() - make all stores durable, by flushing the processor's caches where that is known how,
 * else by msync. @ret_how: static text. Return: 0, or -1 with ERR_INTERNAL. */
int mapping_flush(const struct mapping *m, const char **ret_how, struct error **err) MUST_CHECK;

/** mapping_touch() - read a byte of every page, in order. Return: number of page faults that this took: one
 * per 4 KiB, or one per huge page. Pages that are resident already cause no page fault. */
unsigned long mapping_touch(const struct mapping *m);

/** mapping_store_lines() - store to each cache line, in order, and make each store durable before the next.
 * @value: what is stored. Return: 0, or -1 with ERR_UNIMPLEMENTED (how is not known for this processor). */
int mapping_store_lines(const struct mapping *m, uint64_t value, struct error **err) MUST_CHECK;

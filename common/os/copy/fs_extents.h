/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_extents.h - which parts of its device a file system uses, as the file system itself says.
 *
 * Threads: a list belongs to one owner at a time. fs_extents_read() blocks on the metadata of the file
 * system, no writer waits for it, and it works while the file system is frozen.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct fs_extent {
	uint64_t at_bytes;
	uint64_t length_bytes; /* not 0 */
};

struct fs_extents {
	struct fs_extent *list; /* sorted; they neither overlap nor touch each other */
	size_t n;
	size_t capacity;
	uint64_t total_bytes;   /* of all lengths */
	uint64_t min_gap_bytes; /* gaps that are smaller than this are part of the extents */
};

#define FS_EXTENTS_INIT ((struct fs_extents){0})

/* 16 MiB of memory. */
#define FS_EXTENTS_MAX (1U << 20)

/** fs_extents_done() - release what @x has; it is empty and usable afterwards. */
void fs_extents_done(struct fs_extents *x);

/**
 * fs_extents_add() - add the range from @at_bytes to @end_bytes.
 * @at_bytes: not before the beginning of the last one that was added
 * @max:      how many extents the list may have, at least 2
 *
 * A list that is full is made at most half full, by closing its gaps of less than 4 KiB, 8 KiB and so on:
 * a file system that is in so many pieces then costs the copying of small unused pieces, instead of memory or
 * a failure.
 */
void fs_extents_add(struct fs_extents *x, uint64_t at_bytes, uint64_t end_bytes, size_t max);

/**
 * fs_extents_read() - read which parts of its device a mounted ext4 or xfs uses.
 * @dir_fd:       directory in it, open for reading
 * @device_bytes: size of the device; no extent ends behind it
 * @ret:          filled on success; fs_extents_done()
 *
 * All up to its end that the file system does not report as free. Writers change it at any
 * time unless they are kept out. Other devices of an xfs, for its log or real-time data, are left out.
 * Source: linux/fsmap.h; fs/xfs/xfs_fsmap.c; fs/ext4/fsmap.c. Return: 0, or -1 with ERR_UNIMPLEMENTED (the
 * file system or this kernel has no such map), ERR_INTERNAL.
 */
int fs_extents_read(int dir_fd, uint64_t device_bytes, struct fs_extents *ret, struct error **err) MUST_CHECK;

/** fs_extents_whole() - one extent over a whole device of @device_bytes. @ret: fs_extents_done() */
void fs_extents_whole(uint64_t device_bytes, struct fs_extents *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_map.h - what a file system has on its device, from the beginning to the end, as it says itself.
 *
 * Threads: a reader belongs to one owner at a time. Blocks on the metadata of the file system; no writer
 * waits for it, and it works while the file system is frozen. Source: linux/fsmap.h; fs/xfs/xfs_fsmap.c;
 * fs/ext4/fsmap.c.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum fs_map_kind {
	FS_MAP_FREE,
	FS_MAP_METADATA, /* of the file system itself: inode tables, free-space trees, its log */
	FS_MAP_INODE,    /* of the inode that is named: only xfs with a reverse map knows */
	FS_MAP_UNKNOWN,  /* in use, by whatever the file system does not say */
};

struct fs_map_record {
	uint64_t at_bytes;
	uint64_t length_bytes;
	enum fs_map_kind kind;
	uint64_t inode; /* FS_MAP_INODE; otherwise 0 */
};

struct fs_map;

/**
 * fs_map_open() - begin to read the map of a mounted ext4 or xfs.
 * @dir_fd: directory in it, open for reading; borrowed until fs_map_close()
 * @ret:    fs_map_close()
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int fs_map_open(int dir_fd, struct fs_map **ret, struct error **err) MUST_CHECK;

/**
 * fs_map_next() - read the next record. Records are sorted by where they begin. The records of files that
 * share blocks overlap. The map of ext4 lacks the bytes before its superblock. Writers change the map at any
 * time. Return: 1: there is one; 0: all are read; or -1 with ERR_UNIMPLEMENTED (the file system or this
 * kernel has no such map), ERR_INTERNAL.
 */
int fs_map_next(struct fs_map *m, struct fs_map_record *ret, struct error **err) MUST_CHECK;

/** fs_map_close() - release @m; NULL is allowed. */
void fs_map_close(struct fs_map *m);
DEFINE_CLEANUP(struct fs_map *, fs_map_close);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_owners.h - finds to what of a mounted file system given parts of its device belong, such as the file
 * that has a bad block.
 *
 * Nothing but metadata is read, and nothing is changed: no content of a file, no device, no time of access.
 * Threads: safe. Blocks on the file system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How many owners are kept. */
#define FS_OWNERS_MAX 256

enum fs_owner_kind {
	FS_OWNER_FILE,
	FS_OWNER_DIRECTORY,
	FS_OWNER_INODE,    /* of a number that no file was found for: its name may be beyond the bound, or
			    * it is an attribute or part of the list of a file's blocks */
	FS_OWNER_METADATA, /* of the file system itself */
	FS_OWNER_FREE,     /* nothing uses it */
	FS_OWNER_UNKNOWN,  /* in use, and not found */
};

struct fs_owner {
	enum fs_owner_kind kind;
	uint64_t at_bytes; /* on the device */
	uint64_t length_bytes;
	char *path;           /* FS_OWNER_FILE, FS_OWNER_DIRECTORY: from the root on, without "/" before it;
			       * any bytes */
	uint64_t file_offset; /* FS_OWNER_FILE: where in the file that is, bytes */
	uint64_t inode;       /* FS_OWNER_INODE */
	bool unwritten; /* FS_OWNER_FILE: the file has it, and was never written there: it reads as zeros */
};

struct fs_owners {
	struct fs_owner *list; /* sorted by at_bytes */
	size_t n;
	bool is_cut;        /* there are more than are kept */
	uint64_t n_files;   /* files and directories that were looked at; 0: no walk was necessary */
	uint64_t n_skipped; /* those that could not be: they fail, or a process has a lease on them */
	const char *bound;  /* why the walk ended before it had seen all: a constant; NULL: it has */
};

struct fs_part {
	uint64_t at_bytes; /* on the device */
	uint64_t length_bytes;
};

struct fs_owners_bound {
	uint64_t max_files;   /* files and directories */
	uint64_t deadline_ns; /* as clock_ns() */
};

/**
 * fs_owners_find() - find what has the parts of a device.
 * @root_fd: root directory of an ext4 or xfs, open for reading, of a mount in the mount namespace of this
 *           process
 * @parts:   @n of them, sorted, which do not overlap
 * @ret:     fs_owners_done()
 *
 * The map of the file system (fs_map.h) shows which parts are free or metadata. For the rest, all directories
 * are walked until each part has an owner, or a bound is reached, with what each regular file has by FIEMAP;
 * the walk follows no links, and does not leave the file system. One name of a file that has several is
 * found. A file that is renamed during the walk may be missed, and deleted files that are still open have no
 * name. While the walk lasts, the file system stays mounted for the kernel. Source: linux/fiemap.h;
 * Documentation/filesystems/fiemap.rst. Return: 0, or -1 with ERR_INTERNAL (the root cannot be opened).
 */
int fs_owners_find(int root_fd, const struct fs_part *parts, size_t n, const struct fs_owners_bound *bound,
	struct fs_owners *ret, struct error **err) MUST_CHECK;

/** fs_owners_done() - release what @o owns; safe on a zeroed one. */
void fs_owners_done(struct fs_owners *o);

/** fs_owner_kind_name() - "file", "directory", "inode", "metadata", "free" or "unknown". */
const char *fs_owner_kind_name(enum fs_owner_kind kind);

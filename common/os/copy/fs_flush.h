/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_flush.h - flushes every file of a file system, which stops stores through mappings while it is frozen.
 *
 * Freezing an xfs does not stop stores through mappings that bypass the page cache (DAX with MAP_SYNC) and
 * are writable already; writing the file out and waiting for that makes their pages read-only, and the next
 * store waits for the thaw. That was tried on Linux 6.1; on ext4 freezing stops them. sync_file_range(2) does
 * it only with all three flags (fs/sync.c chooses WB_SYNC_ALL then, without which fs/dax.c,
 * dax_writeback_mapping_range(), does nothing). fsync(2) does the same, and then writes the log and flushes
 * the device, which syncing and freezing the file system do once for all files. Threads: safe. Blocks on the
 * file system.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* When a walk ends early. */
struct fs_flush_until {
	uint64_t deadline_ns; /* as clock_ns() */
	/* Asked before each file and directory. false: stop. NULL: never */
	bool (*go_on)(void *user);
	void *user;
};

/**
 * fs_flush_files() - write out what mappings and writers have changed in each regular file of a file system,
 * frozen or not. It is on stable storage after a syncfs(2).
 * @root_fd:     its root directory, open for reading, of a mount in the mount namespace of this process
 * @until:     borrowed
 * @ret_files:   how many files were flushed; NULL: not needed
 *
 * Files are found from directory to directory by file handles (open_by_handle_at(2)) and in a copy of the
 * mount that nothing is mounted on: the walk does not leave the file system, needs no paths, and misses
 * nothing when directories that it has found are renamed. Nothing is opened but directories and regular
 * files. What vanishes during the walk is skipped, and so is what is created or moved to directories that
 * were read before, unless the file system is frozen. Idempotent. Return: 0, or -1 with ERR_DEADLINE,
 * ERR_ABORTED (go_on() said so), ERR_EXHAUSTED (millions of directories on one level), ERR_PRECONDITION (no
 * CAP_DAC_READ_SEARCH), ERR_INTERNAL.
 */
int fs_flush_files(
	int root_fd, const struct fs_flush_until *until, uint64_t *ret_files, struct error **err) MUST_CHECK;

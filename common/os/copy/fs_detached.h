/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_detached.h - mounts a file system without a path: it ends with its descriptor, however the process ends,
 * and no other process can open a file in it.
 *
 * Threads: safe. Blocks on the device, and as long as the replay of the file system's log takes.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/**
 * fs_open_detached() - mount a file system that is mounted nowhere, and open its root.
 * @fstype:     "ext4" or "xfs"; an xfs may have the UUID of another one that is mounted
 * @device:     path of its block device
 * @readonly:   no file can be changed. The file system's log is replayed all the same, so that what is on the
 *              device is complete afterwards
 * @ret_dir_fd: its root, open for reading; fs_close_detached()
 *
 * While it is open, no other process can mount the device or open it exclusively. The end of another mount is
 * waited for for a second. Return: 0, or -1 with ERR_UNAVAILABLE (mounted or held by another program; this
 * kernel has no such mounts, which came with Linux 5.2), ERR_INTERNAL (damaged, or no such file system).
 */
int fs_open_detached(const char *fstype, const char *device, bool readonly, int *ret_dir_fd,
	struct error **err) MUST_CHECK;

/** fs_open_unchanged() - as fs_open_detached() for reading, and nothing is written to the device: the log of
 * the file system is not replayed, so it has to be empty. Even an empty one is written to by a mount of an
 * xfs that only reads (fs/xfs/xfs_log_recover.c, xlog_clear_stale_blocks()). */
int fs_open_unchanged(const char *fstype, const char *device, int *ret_dir_fd, struct error **err) MUST_CHECK;

/**
 * fs_close_detached() - unmount it: afterwards everything is on the device, which can be opened exclusively.
 * @dir_fd: of fs_open_detached(); always closed, also after failure
 * @device: as there
 *
 * The kernel unmounts before close(2) returns, when that was the last descriptor (fs/namespace.c,
 * mntput_no_expire(), which leaves the work to the return from the system call). Copies of it in children
 * that are being started are waited for for a second. Return: 0, or -1 with ERR_UNAVAILABLE (still in use),
 * ERR_INTERNAL.
 */
int fs_close_detached(int dir_fd, const char *device, struct error **err) MUST_CHECK;

/**
 * fs_open_further() - a further mount of a file system that may be mounted already, for writing or for
 * reading, in whatever mount namespace, or that stays in the kernel, since it was unmounted while it was
 * frozen.
 * @ret_dir_fd: its root, open for reading; the mount ends when the caller closes it
 *
 * Parameters and return as fs_open_detached(), but that a mounted file system is no error.
 */
int fs_open_further(const char *fstype, const char *device, int *ret_dir_fd, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_grow.h - makes a mounted file system as large as its device, by the kernel's ioctls: no program is
 * needed, and processes that use the file system go on meanwhile.
 *
 * Threads: safe. Blocks on the device.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct fs_growth {
	uint64_t from_bytes; /* size of the file system before */
	uint64_t to_bytes;   /* and after; the same: there was nothing to do */
};

/**
 * fs_grow() - grow a file system to the end of its device.
 * @fstype:       "ext4" or "xfs"
 * @device:       path of its block device
 * @dir_fd:       directory in it, open for reading, not with O_PATH, through a mount that is not read-only
 * @device_bytes: size of @device
 * @ret:          filled on success
 *
 * A rest at the end of the device that is too small for the file system's next group is left unused. The
 * kernel makes the change in its journal, so that a crash leaves a consistent file system: an xfs of the old
 * or the new size, and an ext4, which grows by one set of block groups after the other, of any size in
 * between. Idempotent: repeating it finishes the growth. Source: fs/ext4/resize.c, ext4_resize_fs();
 * fs/xfs/xfs_fsops.c, xfs_growfs_data_private(). Return: 0, or -1 with ERR_PRECONDITION (mounted read-only;
 * it has errors; no CAP_SYS_RESOURCE, which ext4 demands), ERR_UNAVAILABLE (another program is growing it),
 * ERR_INVALID_ARGUMENT (neither ext4 nor xfs), ERR_INTERNAL.
 */
int fs_grow(const char *fstype, const char *device, int dir_fd, uint64_t device_bytes, struct fs_growth *ret,
	struct error **err) MUST_CHECK;

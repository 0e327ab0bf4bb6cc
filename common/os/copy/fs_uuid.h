/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_uuid.h - gives a copy of a file system a UUID of its own, without which an xfs is not mounted beside the
 * original. Over tune2fs and e2fsck, or xfs_db.
 *
 * Threads: safe. Blocks on the device and as long as the programs run.
 */
#pragma once

#include "base/error.h"

/**
 * fs_set_uuid() - complete a file system that was copied from a frozen one, and change its UUID.
 * @fstype:     "ext4" or "xfs"
 * @device:     path of its block device, not mounted and not open exclusively
 * @uuid:       as text
 * @timeout_ms: bound for all programs together; replaying the log of an xfs is not bounded
 *
 * ext4 with checksums of its metadata that is clean: it gets the feature metadata_csum_seed (Linux 4.4),
 * after which these checksums do not depend on the UUID, so that only superblocks are written. Any other
 * ext4: e2fsck -p cleans up what deleted files that were still open have left, and tune2fs, which refuses
 * without that check, writes all checksums again; a cut meanwhile leaves a file system that has to be copied
 * again. xfs: a mount replays the log, which xfs_db cannot do. Idempotent. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (neither ext4 nor xfs), ERR_PRECONDITION (a program is missing; errors that need a
 * decision), ERR_UNAVAILABLE (the device is in use), ERR_DEADLINE, ERR_INTERNAL.
 */
int fs_set_uuid(const char *fstype, const char *device, const char *uuid, int timeout_ms,
	struct error **err) MUST_CHECK;

/**
 * fs_finish_uuid() - repeat fs_set_uuid() for a file system whose superblock has @uuid, if the kernel does
 * not mount it because its log has another one, as a power cut in the middle of xfs_db leaves it.
 *
 * Mounting is tried to find that out, which replays the log. Nothing is done, and 0 is returned, for a file
 * system of another type, one that is in use, and one that cannot be mounted for another reason. Parameters
 * and return as fs_set_uuid().
 */
int fs_finish_uuid(const char *fstype, const char *device, const char *uuid, int timeout_ms,
	struct error **err) MUST_CHECK;

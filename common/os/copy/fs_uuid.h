/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_uuid.h - gives a copy of a file system a UUID of its own, without which an xfs is not mounted beside the
 * original. Over e2fsck and tune2fs, or xfs_db.
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
 * ext4: what deleted files that were still open have left is cleaned up by e2fsck -p; without that check
 * tune2fs refuses. It writes the checksums of all metadata again, and a cut while it does so leaves a file
 * system that has to be copied again. xfs: a mount replays the log, which xfs_db cannot do. Idempotent.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (neither ext4 nor xfs), ERR_PRECONDITION (a program is missing;
 * errors that need a decision), ERR_UNAVAILABLE (the device is in use), ERR_DEADLINE, ERR_INTERNAL.
 */
int fs_set_uuid(const char *fstype, const char *device, const char *uuid, int timeout_ms,
	struct error **err) MUST_CHECK;

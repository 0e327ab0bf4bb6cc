/*
 * mount.h - mounting by descriptor, so that no symlink can redirect it between check and use.
 *
 * Targets are O_PATH descriptors (os/paths.h). Option strings are split into flags by libmount, the system
 * calls are ours. Nothing is added that was not asked for. Threads: safe. Blocks as long as the file system
 * needs.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/**
 * mount_device() - mount a block device with a file system.
 * @device:    block device path
 * @target_fd: O_PATH descriptor of a directory
 * @fstype:    "ext4" or "xfs"
 * @options:   NULL-terminated option strings ("dax", "noatime"), one each; generic ones become flags; may be
 * NULL
 * @err:       see docs/ERRORS.md
 *
 * Not idempotent: the caller looks at the mount table first. Return: 0, or -1 with ERR_INVALID_ARGUMENT (the
 * kernel refuses the options; named), ERR_PRECONDITION (device busy), ERR_INTERNAL.
 */
int mount_device(const char *device, int target_fd, const char *fstype, const char *const *options,
	struct error **err) MUST_CHECK;

/**
 * mount_bind() - show a directory or file at a second place.
 * @source_fd: O_PATH descriptor of a directory or file
 * @target_fd: O_PATH descriptor of the same kind
 * @flags:     NULL-terminated per-mount option strings ("ro", "noatime", "nosuid"); others are refused; may
 * be NULL
 * @err:       see docs/ERRORS.md
 *
 * "ro" and the like are set by mount_setattr before the mount becomes visible (open_tree, move_mount), so a
 * failure leaves nothing behind. Return: 0, or -1 with ERR_INVALID_ARGUMENT (unknown flag), ERR_INTERNAL.
 */
int mount_bind(int source_fd, int target_fd, const char *const *flags, struct error **err) MUST_CHECK;

/**
 * mount_remove() - unmount what is on top at a path.
 * @target: canonical path (path_canonical()); a symlink anywhere in it is refused
 * @err:    see docs/ERRORS.md
 *
 * Idempotent. Return: 0 (nothing mounted there is success too), or -1 with ERR_PRECONDITION (busy),
 * ERR_INTERNAL.
 */
int mount_remove(const char *target, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
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
 *
 * Not idempotent: the caller looks at the mount table first. A failure has what the kernel's log says about
 * the device, where that may be read. Return: 0, or -1 with ERR_INVALID_ARGUMENT (the kernel refuses the
 * options; all are named, and the one that its file system does not take), ERR_UNAVAILABLE (another program
 * holds the device), ERR_INTERNAL.
 */
int mount_device(const char *device, int target_fd, const char *fstype, const char *const *options,
	struct error **err) MUST_CHECK;

/**
 * mount_option_refusal() - ask the kernel's file system whether it takes an option; without mounting
 * anything.
 * @fstype: "ext4" or "xfs"
 * @option: one option string, as in mount_device(); what is not the file system's own is taken
 *
 * Source: fsconfig(2); fs/fs_parser.c, __fs_parse(). Return: why a mount with it would fail, caller frees;
 * NULL: the option is taken, or the kernel cannot say (ext4 before Linux 5.17 looks at options in the mount
 * only).
 */
char *mount_option_refusal(const char *fstype, const char *option);

/**
 * mount_bind() - show a directory or file at a second place.
 * @source_fd: O_PATH descriptor of a directory or file
 * @target_fd: O_PATH descriptor of the same kind
 * @flags:     NULL-terminated per-mount option strings ("ro", "noatime", "nosuid"); others are refused; may
 * be NULL
 *
 * "ro" and the like are set by mount_setattr before the mount becomes visible (open_tree, move_mount), so a
 * failure leaves nothing behind. Return: 0, or -1 with ERR_INVALID_ARGUMENT (unknown flag), ERR_INTERNAL.
 */
int mount_bind(int source_fd, int target_fd, const char *const *flags, struct error **err) MUST_CHECK;

/**
 * mount_empty() - mount an empty file system in memory that nothing can be written to, without devices,
 * programs and rights of files.
 * @source:    what the mount table shows as its source
 * @target_fd: O_PATH descriptor of a directory
 *
 * Not idempotent. Return: 0, or -1 with ERR_INTERNAL.
 */
int mount_empty(const char *source, int target_fd, struct error **err) MUST_CHECK;

/**
 * mount_remove() - unmount what is on top at a path.
 * @target: canonical path (path_canonical()); a symlink anywhere in it is refused
 *
 * Waits half a second for a mount that is busy. Idempotent. Return: 0 (nothing mounted there is success too),
 * or -1 with ERR_PRECONDITION (busy),
 * ERR_INTERNAL.
 */
int mount_remove(const char *target, struct error **err) MUST_CHECK;

/**
 * mount_open_parent() - what mount_remove_from() needs, opened before a mount that may have to be undone when
 * no descriptor is left.
 * @target: canonical path
 * @ret_fd: of the folder that @target is in, the caller closes; -1 if none
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int mount_open_parent(const char *target, int *ret_fd, struct error **err) MUST_CHECK;

/** mount_remove_from() - mount_remove() of @target, whose folder mount_open_parent() has opened. */
int mount_remove_from(int parent_fd, const char *target, struct error **err) MUST_CHECK;

/**
 * mount_open_apart() - open a further mount of a mounted file system, to look at all that is in it: nothing
 * is mounted on any of its directories, and whatever is opened through it is not changed, not even its time
 * of access.
 * @root_fd: its root directory, open for reading, of a mount in the mount namespace of this process
 * @ret_fd:  the root directory in the new mount, for reading, which ends when the caller closes it; until
 *           then the file system stays mounted
 *
 * Devices are refused: a name may become a device between the look at its type and the open of it, and
 * opening some devices changes them. Return: 0, or -1 with ERR_INTERNAL.
 */
int mount_open_apart(int root_fd, int *ret_fd, struct error **err) MUST_CHECK;

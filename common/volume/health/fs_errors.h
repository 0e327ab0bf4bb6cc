/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_errors.h - whether a mounted file system has failed, by what the kernel says about it.
 *
 * Threads: safe. Nothing in the file system is accessed: reads sysfs, and the mount table that it gets.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "os/mount_table.h"

/**
 * fs_has_errors() - whether ext4 has found errors in its metadata since they were last checked by e2fsck.
 * @e:   a mount of the file system; others than ext4 keep no count, and have none
 * @ret: filled on success
 *
 * Source: Documentation/ABI/testing/sysfs-fs-ext4 (errors_count); fs/ext4/sysfs.c. Return: 0, or -1 with
 * ERR_INTERNAL.
 */
int fs_has_errors(const struct mount_entry *e, bool *ret, struct error **err) MUST_CHECK;

/** fs_turned_readonly() - whether the file system refuses writes although it was mounted for writing as @e,
 * as after an error with "errors=remount-ro". */
bool fs_turned_readonly(const struct mount_entry *e);

/** fs_is_shut_down() - whether the mount options say that the file system has shut itself down: ext4 since
 * Linux 6.15 (fs/ext4/super.c, _ext4_show_options()). xfs only shows it by refusing to open its root folder
 * (fs_usage.refusal). */
bool fs_is_shut_down(const struct mount_entry *e);

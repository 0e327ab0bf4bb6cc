/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct_folder.h - the folder in which runtimes of Kata Containers look for direct-assigned volumes.
 *
 * For each one there is an entry: a folder, named after the path at which the volume is published, with the
 * file mountInfo.json. The runtime adds an empty file for each sandbox that uses it, named by its ID, and
 * removes neither. It keeps entries of its own in the same folder, so that only those are touched which the
 * caller names, and in them only what is known. Source: Kata's src/runtime/pkg/direct-volume/utils.go,
 * src/libs/kata-types/src/mount.rs (August 2026). Threads: safe on different entries. Blocks on the file
 * system, which is one in memory.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

#define DIRECT_MOUNT_INFO "mountInfo.json"

/* The description of a volume for a runtime of Kata. All borrowed. */
struct direct_mount {
	const char *device;
	const char *fs_type;
	const char *fs_group;               /* decimal; NULL: none */
	const char *fs_group_change_policy; /* "Always" or "OnRootMismatch"; NULL: not known */
	char *const *options;               /* strv */
};

/** direct_mount_format() - append the content of mountInfo.json to @out. Return: 0, or -1 with
 * ERR_EXHAUSTED. */
int direct_mount_format(const struct direct_mount *m, struct buf *out, struct error **err) MUST_CHECK;

/** direct_entry_name() - the name of the entry for what is published at @target_path, as it stands in the
 * request. @ret: caller frees. Return: 0, or -1 with ERR_INVALID_ARGUMENT (the path is too long for one). */
int direct_entry_name(const char *target_path, char **ret, struct error **err) MUST_CHECK;

/**
 * direct_folder_open() - open the folder of all entries.
 * @dir:    absolute path
 * @create: make it, and its parents, with mode 0700 where they are missing
 * @ret_fd: the caller closes
 *
 * Return: 0, or -1 with ERR_NOT_FOUND (missing), ERR_PRECONDITION (a symbolic link; no folder; another user
 * could write to it; it would be made in a read-only file system), ERR_INTERNAL.
 */
int direct_folder_open(const char *dir, bool create, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * direct_entry_write() - make an entry with its mountInfo.json, durably, or replace the latter.
 * @is_ours: a record names the entry already; if not, one that exists is another program's
 *
 * Idempotent. Return: 0, or -1 with ERR_EXISTS (it is another program's; nothing was changed),
 * ERR_PRECONDITION (a symbolic link, or another user's), ERR_UNAVAILABLE (no space), ERR_INTERNAL.
 */
int direct_entry_write(
	int folder_fd, const char *name, bool is_ours, struct span content, struct error **err) MUST_CHECK;

/** direct_entry_read() - append the content of its mountInfo.json to @out; nothing if the file does not
 * exist. Return: 0, or -1 with ERR_PRECONDITION as direct_entry_write(), ERR_EXHAUSTED, ERR_INTERNAL. */
int direct_entry_read(int folder_fd, const char *name, struct buf *out, struct error **err) MUST_CHECK;

/** direct_entry_withdraw() - remove its mountInfo.json, so that no further sandbox uses it. A missing entry
 * or file is success. Return: 0, or -1 as direct_entry_read(). */
int direct_entry_withdraw(int folder_fd, const char *name, struct error **err) MUST_CHECK;

/** direct_entry_sandboxes() - add the IDs of the sandboxes that have used it to @ret (strv). Return: 0, or -1
 * as direct_entry_read(). */
int direct_entry_sandboxes(int folder_fd, const char *name, char ***ret, struct error **err) MUST_CHECK;

/** direct_entry_remove() - remove an entry with what is known in it. If anything else is in there, that and
 * the entry stay, and *@ret_left is its name, which the caller frees; else it is NULL. Idempotent. Return: 0,
 * or -1 as direct_entry_read(). */
int direct_entry_remove(int folder_fd, const char *name, char **ret_left, struct error **err) MUST_CHECK;

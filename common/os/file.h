/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - files that survive a power cut, and reading with a limit.
 *
 * All names are relative to a directory descriptor of the caller (AT_FDCWD is allowed for reading only).
 * Durable means: after a return of 0 the change is on the medium (fsync of file and directory). Blocks on the
 * disk. Threads: safe on different names.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/**
 * dir_open() - open directory @path; with @create it is made with @mode first (not its parents), durably.
 * @path:   absolute or relative path; symlinks are followed
 * @create: make it when it is missing
 * @mode:   permissions of a new directory; an existing one is left as it is
 * @ret_fd: O_DIRECTORY|O_CLOEXEC descriptor, caller closes
 *
 * On failure nothing new stays. Return: 0, or -1 with ERR_NOT_FOUND (missing, or its parent), ERR_EXHAUSTED
 * (disk full), ERR_INTERNAL.
 */
int dir_open(const char *path, bool create, mode_t mode, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * dir_list() - names in a directory, without "." and "..", sorted bytewise.
 * @dir_fd:    directory, not O_PATH; its offset is not disturbed
 * @ret_names: NULL-terminated, strv_free()
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int dir_list(int dir_fd, char ***ret_names, struct error **err) MUST_CHECK;

/**
 * dir_first() - any name in a directory, without "." and "..", whatever the number of them.
 * @dir_fd:   as in dir_list()
 * @ret_name: caller frees; NULL: it is empty
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int dir_first(int dir_fd, char **ret_name, struct error **err) MUST_CHECK;

/**
 * file_read() - whole content of a regular or sysfs file.
 * @dir_fd: directory of @name, or AT_FDCWD
 * @name:   path; a symlink as last part is followed
 * @out:    appended to; its limit bounds the read
 *
 * Does not block if the path is a FIFO or a device.
 *
 * Return: 0, or -1 with ERR_NOT_FOUND (no such file), ERR_EXHAUSTED (over the limit of @out), ERR_INTERNAL
 * (it cannot be read, or is not a regular file).
 */
int file_read(int dir_fd, const char *name, struct buf *out, struct error **err) MUST_CHECK;

/**
 * file_write_atomic() - replace or create @name with @content, durably and all at once.
 * @name:    no slash; the temporary is ".<name>.tmp", a leftover one is replaced
 * @content: all of it
 * @mode:    permissions of the new file, whatever the umask
 *
 * Idempotent. On failure the old content is still there, or the new one where only the directory could not be
 * flushed. Return: 0, or -1 with ERR_EXHAUSTED (disk full), ERR_INTERNAL.
 */
int file_write_atomic(
	int dir_fd, const char *name, struct span content, mode_t mode, struct error **err) MUST_CHECK;

/**
 * file_write_whole() - as file_write_atomic(), but the folder is not flushed: after a power cut @name has the
 * old content or the new one, each whole. After a crash of this process it has the new one.
 */
int file_write_whole(
	int dir_fd, const char *name, struct span content, mode_t mode, struct error **err) MUST_CHECK;

/**
 * file_rename_durable() - rename within a directory, replacing what has the new name, and fsync the
 * directory.
 * @from: old name
 * @to:   new name
 *
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_EXHAUSTED (disk full), ERR_INTERNAL.
 */
int file_rename_durable(int dir_fd, const char *from, const char *to, struct error **err) MUST_CHECK;

/**
 * file_unlink_durable() - remove a file and fsync the directory.
 * @name: a missing one is success, and the directory is fsynced, too: its removal may not be durable yet
 *
 * Idempotent. Return: 0, or -1 with ERR_EXHAUSTED (disk full), ERR_INTERNAL.
 */
int file_unlink_durable(int dir_fd, const char *name, struct error **err) MUST_CHECK;

/**
 * fd_write_all() - write everything at the current offset.
 * @fd: open for writing, blocking
 *
 * Return: 0, or -1 with ERR_EXHAUSTED (disk full), ERR_INTERNAL.
 */
int fd_write_all(int fd, struct span data, struct error **err) MUST_CHECK;

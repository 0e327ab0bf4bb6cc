/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - opens, creates and removes the paths that requests name, without following symlinks below their
 * root.
 *
 * openat2(RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH) relative to one of the configured roots (-kubeletDir, each
 * resolved once when added, following links). When roots were given, a path outside all of them is refused;
 * without any, every absolute path is accepted, and /var/lib/kubelet is a resolved root if it exists.
 * Threads: a path_roots is read-only after set-up. Blocks on the file system.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct path_roots;

/**
 * path_roots_new() - open the roots below which the paths of requests must be.
 * @dirs: NULL-terminated absolute directories from the command line; may be empty or NULL
 * @ret:  path_roots_free()
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (a root is not absolute, missing or not a directory; the text
 * names it), ERR_INTERNAL.
 */
int path_roots_new(char *const *dirs, struct path_roots **ret, struct error **err) MUST_CHECK;

/** path_roots_free() - destroy @r; NULL is allowed. */
void path_roots_free(struct path_roots *r);
DEFINE_CLEANUP(struct path_roots *, path_roots_free);

enum path_kind {
	PATH_DIR,
	PATH_FILE, /* regular, or a block device: a bound device node covers the file that path_make() made */
};

/**
 * path_open() - open an existing object with O_PATH.
 * @path:  absolute, at most PATH_MAX bytes, from the peer; "." and ".." components are refused, and so are
 * the roots themselves, where a mount would hide the paths of all other requests
 * @kind:  what it must be
 * @ret_fd: O_PATH|O_CLOEXEC, caller closes
 *
 * Return: 0, or -1 with ERR_NOT_FOUND (no such object), ERR_INVALID_ARGUMENT (relative, outside the roots, a
 * symlink on the way, wrong kind; the text names the path), ERR_INTERNAL.
 */
int path_open(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd,
	struct error **err) MUST_CHECK;

/**
 * path_make() - create a directory (0755) or an empty file (0644), without the bits of the umask; the parent
 * must exist.
 * @path:        as for path_open()
 * @kind:        PATH_DIR or PATH_FILE
 * @ret_fd:      O_PATH descriptor of the object, whether it is new or not
 * @ret_created: whether this call created it; may be NULL
 *
 * Idempotent: an existing object of that kind is success. On failure nothing new is left. Return: 0, or -1 as
 * path_open().
 */
int path_make(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd,
	bool *ret_created, struct error **err) MUST_CHECK;

/**
 * path_remove() - remove an empty directory or an empty file; a missing one, or a missing parent, is success.
 * @path: as for path_open()
 *
 * Idempotent. Return: 0, or -1 as path_open(), or with ERR_PRECONDITION (still a mount point, not empty, or
 * of another kind, such as a symlink).
 */
int path_remove(const struct path_roots *r, const char *path, struct error **err) MUST_CHECK;

/**
 * path_open_canonical() - open a canonical path from the root of our mount namespace, as other programs see
 * it. path_open() starts from a root that was opened when the program started, and which a mount may have
 * hidden since.
 * @path:   from path_canonical()
 * @ret_fd: O_PATH|O_CLOEXEC, caller closes
 *
 * Does not query the file system, which may be shut down. Return: 0, or -1 as path_open().
 */
int path_open_canonical(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * path_canonical() - get the path as /proc/self/mountinfo shows it: the resolved root plus the rest, no
 * double or trailing slashes. Nothing is opened.
 * @path: as for path_open()
 * @ret:  caller frees
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT as path_open().
 */
int path_canonical(const struct path_roots *r, const char *path, char **ret, struct error **err) MUST_CHECK;

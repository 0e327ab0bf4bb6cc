/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - opening paths that a request names, without ever following a symlink beneath their root.
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
 * path_roots_new() - roots for paths of requests.
 * @dirs: NULL-terminated absolute directories from the command line; may be empty or NULL
 * @ret:  path_roots_free()
 * @err:  see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (not absolute, missing or no directory; named), ERR_INTERNAL.
 */
int path_roots_new(char *const *dirs, struct path_roots **ret, struct error **err) MUST_CHECK;

/** path_roots_free() - destroy @r; NULL is allowed. */
void path_roots_free(struct path_roots *r);
DEFINE_CLEANUP(struct path_roots *, path_roots_free);

enum path_kind {
	PATH_DIR,
	PATH_FILE, /* regular, or a block device: a bound device node covers the file that path_make() made */
	PATH_ANY,
};

/**
 * path_open() - O_PATH descriptor of an existing object.
 * @r:     roots
 * @path:  absolute, at most PATH_MAX bytes, from the peer; "." and ".." components are refused; not a
 * root itself, where a mount would hide what all other requests are about
 * @kind:  what it must be
 * @ret_fd: O_PATH|O_CLOEXEC, caller closes
 * @err:   see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_NOT_FOUND (no such object), ERR_INVALID_ARGUMENT (relative, outside the roots, a
 * symlink on the way, wrong kind; the path is named), ERR_INTERNAL.
 */
int path_open(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd,
	struct error **err) MUST_CHECK;

/**
 * path_make() - make a directory (0755) or an empty file (0644), both less the umask; the parent must exist.
 * @r:           roots
 * @path:        as for path_open()
 * @kind:        PATH_DIR or PATH_FILE
 * @ret_fd:      O_PATH descriptor of the object, new or old
 * @ret_created: whether this call made it; may be NULL
 * @err:         see docs/ERRORS.md
 *
 * Idempotent: what is there already and of that kind is success. On failure nothing new stays. Return: 0, or
 * -1 as path_open().
 */
int path_make(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd,
	bool *ret_created, struct error **err) MUST_CHECK;

/**
 * path_remove() - remove an empty directory or an empty file; a missing one, or a missing parent, is success.
 * @r:    roots
 * @path: as for path_open()
 * @err:  see docs/ERRORS.md
 *
 * Idempotent. Return: 0, or -1 as path_open(), or with ERR_PRECONDITION (still a mount point, not empty, or
 * of another kind, such as a symlink).
 */
int path_remove(const struct path_roots *r, const char *path, struct error **err) MUST_CHECK;

/**
 * path_open_canonical() - what a canonical path leads to now, from the root of our mount namespace, as
 * everybody else sees it: path_open() goes on from a root that was opened when the program started, which a
 * mount may have hidden since.
 * @path:   from path_canonical()
 * @ret_fd: O_PATH|O_CLOEXEC, caller closes
 * @err:    see docs/ERRORS.md
 *
 * Asks the file system nothing, which may be shut down. Return: 0, or -1 as path_open().
 */
int path_open_canonical(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * path_canonical() - the path as /proc/self/mountinfo shows it: the resolved root plus the rest, no double or
 * trailing slashes. Nothing is opened.
 * @r:    roots
 * @path: as for path_open()
 * @ret:  caller frees
 * @err:  see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT as path_open().
 */
int path_canonical(const struct path_roots *r, const char *path, char **ret, struct error **err) MUST_CHECK;

/*
 * paths.h - opening paths that a request names, without ever following a symlink beneath their root.
 *
 * openat2(RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH) relative to one of the configured roots (-kubeletDir, each resolved
 * once when added, following links). When roots were given, a path outside all of them is refused; without any,
 * every absolute path is accepted, and /var/lib/kubelet is a resolved root if it exists (DESIGN 7).
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
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (not absolute, missing or no directory; named).
 */
int path_roots_new(char *const *dirs, struct path_roots **ret, struct error **err) MUST_CHECK;
void path_roots_free(struct path_roots *r);
DEFINE_CLEANUP(struct path_roots *, path_roots_free);

enum path_kind { PATH_DIR, PATH_FILE, PATH_ANY };

/**
 * path_open() - O_PATH descriptor of an existing object.
 * @r:     roots
 * @path:  absolute, at most PATH_MAX bytes, from the peer; "." and ".." components are refused
 * @kind:  what it must be
 * @ret_fd: O_PATH|O_CLOEXEC, caller closes
 *
 * Return: 0, or -1 with ERR_NOT_FOUND (no such object), ERR_INVALID_ARGUMENT (relative, outside the roots, a
 * symlink on the way, wrong kind; the path is named), ERR_INTERNAL.
 */
int path_open(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd,
	struct error **err) MUST_CHECK;

/**
 * path_open_parent() - O_PATH descriptor of the existing parent directory of @path, and its last component.
 * @ret_name: pointer into @path behind the last slash
 * Errors and the rest as path_open().
 */
int path_open_parent(const struct path_roots *r, const char *path, int *ret_fd, const char **ret_name,
	struct error **err) MUST_CHECK;

/**
 * path_make() - make @path a directory (0755) or an empty file (0644) if nothing is there; the parent must exist.
 * @kind:        PATH_DIR or PATH_FILE
 * @ret_fd:      O_PATH descriptor of the object, new or old
 * @ret_created: whether this call made it; may be NULL
 *
 * Idempotent. Return: 0, or -1 as path_open().
 */
int path_make(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd, bool *ret_created,
	struct error **err) MUST_CHECK;

/** path_remove() - remove the empty directory or the file @path; a missing one (or missing parent) is success. */
int path_remove(const struct path_roots *r, const char *path, struct error **err) MUST_CHECK;

/**
 * path_canonical() - the path as /proc/self/mountinfo shows it: the resolved root plus the rest, no double or
 * trailing slashes. Nothing is opened.
 * @ret: caller frees
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT as path_open().
 */
int path_canonical(const struct path_roots *r, const char *path, char **ret, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"

#define DEFAULT_ROOT "/var/lib/kubelet"

struct path_root {
	char *given;    /* as configured, normalized */
	char *resolved; /* with all links followed, once */
	int fd;
};

struct path_roots {
	struct path_root *roots;
	size_t n;
};

/* "." opens the root itself. */
struct located {
	const struct path_root *root;
	char *rest; /* beneath the root, no leading slash */
};

static void located_done(struct located *l)
{
	free(l->rest);
}

static bool is_dots(const char *component, size_t len)
{
	return (len == 1 && component[0] == '.') || (len == 2 && component[0] == '.' && component[1] == '.');
}

/* Single slashes, none at the end ("/" becomes ""), so that prefixes can be compared. */
static int normalize(const char *path, char **ret, struct error **err)
{
	if (path[0] != '/')
		return err_set(err, ERR_INVALID_ARGUMENT, "path \"%s\" is not absolute", path);
	if (strnlen(path, PATH_MAX) == PATH_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "path is longer than %d bytes", PATH_MAX - 1);

	CLEANUP(free_charp) char *out = x_calloc(1, strlen(path) + 1);
	size_t n = 0;
	while (*path) {
		path += strspn(path, "/");
		size_t len = strcspn(path, "/");
		if (len == 0)
			break;
		if (is_dots(path, len))
			return err_set(
				err, ERR_INVALID_ARGUMENT, "path has a component \"%.*s\"", (int)len, path);
		out[n++] = '/';
		memcpy(out + n, path, len);
		n += len;
		path += len;
	}
	*ret = TAKE_PTR(out);
	return 0;
}

static int add_root(struct path_roots *r, const char *dir, struct error **err)
{
	CLEANUP(free_charp) char *given = NULL;
	CLEANUP(free_charp) char *resolved = realpath(dir, NULL);

	if (!resolved)
		return err_set_errno(err, ERR_INVALID_ARGUMENT, errno, "directory %s", dir);
	if (normalize(dir, &given, err) < 0)
		return -1;

	CLEANUP(fd_closep) int fd = open(resolved, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INVALID_ARGUMENT, errno, "directory %s", dir);
	if (str_eq(resolved, "/"))
		resolved[0] = '\0';

	r->roots = x_realloc(r->roots, r->n + 1, sizeof(*r->roots));
	r->roots[r->n++] = (struct path_root){TAKE_PTR(given), TAKE_PTR(resolved), TAKE_FD(fd)};
	return 0;
}

static int add_default_roots(struct path_roots *r, struct error **err)
{
	struct stat st = {0};

	if (stat(DEFAULT_ROOT, &st) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "directory %s", DEFAULT_ROOT);
	if (S_ISDIR(st.st_mode) && add_root(r, DEFAULT_ROOT, err) < 0)
		return -1;
	return add_root(r, "/", err);
}

int path_roots_new(char *const *dirs, struct path_roots **ret, struct error **err)
{
	CLEANUP(path_roots_freep) struct path_roots *r = x_calloc(1, sizeof(*r));

	if (strv_len(dirs) == 0 && add_default_roots(r, err) < 0)
		return -1;
	for (; dirs && *dirs; dirs++)
		if (add_root(r, *dirs, err) < 0)
			return -1;
	*ret = TAKE_PTR(r);
	return 0;
}

void path_roots_free(struct path_roots *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		free(r->roots[i].given);
		free(r->roots[i].resolved);
		fd_closep(&r->roots[i].fd);
	}
	free(r->roots);
	free(r);
}

static bool is_beneath(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return str_starts(path, dir) && (path[len] == '\0' || path[len] == '/');
}

/* The longest match wins: of nested roots, the inner one is the one whose links were resolved. */
static int locate(const struct path_roots *r, const char *path, struct located *ret, struct error **err)
{
	CLEANUP(free_charp) char *normal = NULL;
	const struct path_root *best = NULL;
	size_t best_len = 0;

	if (normalize(path, &normal, err) < 0)
		return -1;
	for (size_t i = 0; i < r->n; i++) {
		const char *const names[] = {r->roots[i].given, r->roots[i].resolved};
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			if (!is_beneath(normal, names[k]) || (best && strlen(names[k]) <= best_len))
				continue;
			best = &r->roots[i];
			best_len = strlen(names[k]);
		}
	}
	if (!best)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "path %s is outside the folders of -kubeletDir", path);

	const char *rest = normal + best_len;
	*ret = (struct located){best, x_strdup(*rest ? rest + 1 : ".")};
	return 0;
}

static enum err_code open_error_code(int os_errno)
{
	switch (os_errno) {
	case ENOENT:
		return ERR_NOT_FOUND;
	case ELOOP: /* a symlink */
	case EXDEV: /* left the root */
	case ENOTDIR:
	case ENAMETOOLONG:
		return ERR_INVALID_ARGUMENT;
	default:
		return ERR_INTERNAL;
	}
}

static bool has_kind(mode_t mode, enum path_kind kind)
{
	return kind == PATH_DIR ? S_ISDIR(mode) : S_ISREG(mode) || S_ISBLK(mode);
}

/*
 * O_NOFOLLOW is absent on purpose: together with O_PATH it would open a symlink at the end of the path
 * itself, instead of refusing it (openat2(2), RESOLVE_NO_SYMLINKS).
 */
static int open_beneath(
	int dir_fd, const char *rest, const char *path, enum path_kind kind, int *ret_fd, struct error **err)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (kind == PATH_DIR ? O_DIRECTORY : 0),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	CLEANUP(fd_closep) int fd = (int)syscall(SYS_openat2, dir_fd, rest, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, open_error_code(errno), errno, "path %s", path);
	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "path %s", path);
	if (!has_kind(st.st_mode, kind))
		return err_set(err, ERR_INVALID_ARGUMENT, "path %s is not a %s", path,
			kind == PATH_DIR ? "directory" : "file");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int refuse_root(const struct located *l, const char *path, struct error **err)
{
	if (str_eq(l->rest, "."))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "path %s is itself a root folder, not below one", path);
	return 0;
}

int path_open(
	const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd, struct error **err)
{
	CLEANUP(located_done) struct located l = {0};

	if (locate(r, path, &l, err) < 0)
		return -1;
	if (refuse_root(&l, path, err) < 0)
		return -1;
	return open_beneath(l.root->fd, l.rest, path, kind, ret_fd, err);
}

int path_open_canonical(const char *path, int *ret_fd, struct error **err)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0)
		return err_set_errno(err, open_error_code(errno), errno, "path %s", path);
	*ret_fd = fd;
	return 0;
}

/* @ret_name: caller frees. */
static int open_parent(
	const struct path_roots *r, const char *path, int *ret_fd, char **ret_name, struct error **err)
{
	CLEANUP(located_done) struct located l = {0};

	if (locate(r, path, &l, err) < 0)
		return -1;
	if (refuse_root(&l, path, err) < 0)
		return -1;

	char *slash = strrchr(l.rest, '/');
	CLEANUP(free_charp) char *name = x_strdup(slash ? slash + 1 : l.rest);
	if (slash)
		*slash = '\0';
	if (open_beneath(l.root->fd, slash ? l.rest : ".", path, PATH_DIR, ret_fd, err) < 0)
		return err_wrap(err, "parent directory");
	*ret_name = TAKE_PTR(name);
	return 0;
}

/* Return: 0, or the errno. */
static int make_at(int parent_fd, const char *name, enum path_kind kind)
{
	if (kind == PATH_DIR)
		return STEP("target-folder", mkdirat(parent_fd, name, 0755)) < 0 ? errno : 0;

	CLEANUP(fd_closep)
	int fd = STEP("target-file", openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
	return fd < 0 ? errno : 0;
}

int path_make(const struct path_roots *r, const char *path, enum path_kind kind, int *ret_fd,
	bool *ret_created, struct error **err)
{
	CLEANUP(fd_closep) int parent_fd = -1;
	CLEANUP(free_charp) char *name = NULL;

	if (open_parent(r, path, &parent_fd, &name, err) < 0)
		return -1;

	int why = make_at(parent_fd, name, kind);
	if (why != 0 && why != EEXIST)
		return err_set_errno(err, open_error_code(why), why, "create %s", path);
	if (open_beneath(parent_fd, name, path, kind, ret_fd, err) < 0) {
		if (why == 0)
			STEP("target-undo", unlinkat(parent_fd, name, kind == PATH_DIR ? AT_REMOVEDIR : 0));
		return -1;
	}
	if (ret_created)
		*ret_created = why == 0;
	return 0;
}

/* Only objects that path_make() makes, and only empty ones: anything else may be a user's data. */
static int remove_at(int parent_fd, const char *name, const char *path, struct error **err)
{
	struct stat st;
	int rc;

	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, open_error_code(errno), errno, "%s", path);
	if (!S_ISDIR(st.st_mode) && !(S_ISREG(st.st_mode) && st.st_size == 0))
		return err_set(err, ERR_PRECONDITION,
			"%s is not removed: it is neither an empty folder nor an empty file", path);
	if (S_ISDIR(st.st_mode))
		rc = STEP("target-rmdir", unlinkat(parent_fd, name, AT_REMOVEDIR));
	else
		rc = STEP("target-unlink", unlinkat(parent_fd, name, 0));
	if (rc == 0 || errno == ENOENT)
		return 0;
	int why = errno;
	enum err_code code = why == EBUSY || why == ENOTEMPTY ? ERR_PRECONDITION : open_error_code(why);
	return err_set_errno(err, code, why, "remove %s", path);
}

int path_remove(const struct path_roots *r, const char *path, struct error **err)
{
	CLEANUP(fd_closep) int parent_fd = -1;
	CLEANUP(free_charp) char *name = NULL;
	struct error *missing = NULL;

	if (open_parent(r, path, &parent_fd, &name, &missing) < 0) {
		if (missing->code == ERR_NOT_FOUND) {
			error_free(missing);
			return 0;
		}
		*err = missing;
		return -1;
	}
	return remove_at(parent_fd, name, path, err);
}

int path_canonical(const struct path_roots *r, const char *path, char **ret, struct error **err)
{
	CLEANUP(located_done) struct located l = {0};

	if (locate(r, path, &l, err) < 0)
		return -1;
	if (!str_eq(l.rest, "."))
		*ret = x_asprintf("%s/%s", l.root->resolved, l.rest);
	else
		*ret = x_strdup(str_empty(l.root->resolved) ? "/" : l.root->resolved);
	return 0;
}

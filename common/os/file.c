/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"

#define READ_CHUNK_BYTES 4096

static enum err_code write_error_code(int os_errno)
{
	return os_errno == ENOSPC || os_errno == EDQUOT ? ERR_EXHAUSTED : ERR_INTERNAL;
}

static enum err_code lookup_error_code(int os_errno)
{
	return os_errno == ENOENT ? ERR_NOT_FOUND : write_error_code(os_errno);
}

static int sync_fd(int fd, const char *what, struct error **err)
{
	if (STEP("file-sync", fsync(fd)) < 0)
		return err_set_errno(err, write_error_code(errno), errno, "fsync %s", what);
	return 0;
}

/* A new directory is durable when its own inode and the entry in its parent are. */
static int finish_new_dir(int fd, const char *path, mode_t mode, struct error **err)
{
	CLEANUP(fd_closep) int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (parent < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open parent of %s", path);
	if (fchmod(fd, mode) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "chmod %s", path);
	if (sync_fd(fd, path, err) < 0)
		return -1;
	return sync_fd(parent, path, err);
}

int dir_open(const char *path, bool create, mode_t mode, int *ret_fd, struct error **err)
{
	bool created = create && STEP("folder-make", mkdir(path, mode)) == 0;

	if (create && !created && errno != EEXIST)
		return err_set_errno(err, lookup_error_code(errno), errno, "create directory %s", path);

	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		err_set_errno(err, lookup_error_code(errno), errno, "open directory %s", path);
	if (fd < 0 || (created && finish_new_dir(fd, path, mode, err) < 0)) {
		/* the next call would take it for finished */
		if (created)
			STEP("folder-unmake", rmdir(path));
		return -1;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds names to @names, which ends with NULL, until there are @most. */
static int read_names(int dir_fd, size_t most, char ***names, struct error **err)
{
	size_t n = 0;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open directory");

	CLEANUP(dir_closep) DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return err_set_errno(err, ERR_INTERNAL, errno, "read directory");
	}
	while (n < most) {
		errno = 0;
		const struct dirent *e = readdir(dir);
		if (!e && errno)
			return err_set_errno(err, ERR_INTERNAL, errno, "read directory");
		if (!e)
			break;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		*names = x_realloc(*names, n + 2, sizeof(char *));
		(*names)[n++] = x_strdup(e->d_name);
		(*names)[n] = NULL;
	}
	return 0;
}

int dir_list(int dir_fd, char ***ret_names, struct error **err)
{
	CLEANUP(strv_freep) char **names = x_calloc(1, sizeof(char *));

	if (read_names(dir_fd, SIZE_MAX, &names, err) < 0)
		return -1;
	qsort(names, strv_len(names), sizeof(char *), compare_names);
	*ret_names = TAKE_PTR(names);
	return 0;
}

int dir_first(int dir_fd, char **ret_name, struct error **err)
{
	CLEANUP(strv_freep) char **names = x_calloc(1, sizeof(char *));

	if (read_names(dir_fd, 1, &names, err) < 0)
		return -1;
	*ret_name = TAKE_PTR(names[0]);
	return 0;
}

/* Opening a FIFO would block until another process writes to it, and /dev/zero has no end. */
static int open_regular(int dir_fd, const char *name, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, lookup_error_code(errno), errno, "open %s", name);
	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INTERNAL, "%s is not a regular file", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int file_read(int dir_fd, const char *name, struct buf *out, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	char chunk[READ_CHUNK_BYTES];

	if (open_regular(dir_fd, name, &fd, err) < 0)
		return -1;
	while (!out->overflowed) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "read %s", name);
		if (n == 0)
			break;
		buf_add(out, chunk, (size_t)n);
	}
	return buf_check(out, name, err);
}

int fd_write_all(int fd, struct span data, struct error **err)
{
	while (data.n > 0) {
		ssize_t n = write(fd, data.p, data.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, write_error_code(errno), errno, "write");
		data.p += n;
		data.n -= (size_t)n;
	}
	return 0;
}

/* O_EXCL after unlinking: a leftover of a crash could be a link or have other permissions. */
static int write_new(int dir_fd, const char *name, struct span content, mode_t mode, struct error **err)
{
	if (STEP("file-clear", unlinkat(dir_fd, name, 0)) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "remove %s", name);

	CLEANUP(fd_closep)
	int fd = STEP("file-create", openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
	if (fd < 0)
		return err_set_errno(err, write_error_code(errno), errno, "create %s", name);
	if (fchmod(fd, mode) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "chmod %s", name);
	if (STEP("file-write", fd_write_all(fd, content, err)) < 0)
		return err_wrap(err, "%s", name);
	return sync_fd(fd, name, err);
}

static int rename_in(int dir_fd, const char *from, const char *to, struct error **err)
{
	if (STEP("file-rename", renameat(dir_fd, from, dir_fd, to)) < 0)
		return err_set_errno(err, lookup_error_code(errno), errno, "rename %s to %s", from, to);
	return 0;
}

int file_write_whole(int dir_fd, const char *name, struct span content, mode_t mode, struct error **err)
{
	CLEANUP(free_charp) char *tmp = x_asprintf(".%s.tmp", name);

	if (write_new(dir_fd, tmp, content, mode, err) < 0 || rename_in(dir_fd, tmp, name, err) < 0) {
		STEP("file-drop", unlinkat(dir_fd, tmp, 0));
		return -1;
	}
	return 0;
}

int file_write_atomic(int dir_fd, const char *name, struct span content, mode_t mode, struct error **err)
{
	if (file_write_whole(dir_fd, name, content, mode, err) < 0)
		return -1;
	return sync_fd(dir_fd, "directory", err);
}

int file_rename_durable(int dir_fd, const char *from, const char *to, struct error **err)
{
	if (rename_in(dir_fd, from, to, err) < 0)
		return -1;
	return sync_fd(dir_fd, "directory", err);
}

int file_unlink_durable(int dir_fd, const char *name, struct error **err)
{
	if (STEP("file-unlink", unlinkat(dir_fd, name, 0)) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "remove %s", name);
	return sync_fd(dir_fd, "directory", err);
}

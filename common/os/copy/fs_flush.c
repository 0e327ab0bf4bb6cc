/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_flush.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/mount.h"

#define DENTS_BYTES     (32U << 10)
#define HANDLE_MAX      128         /* of all file systems: linux/exportfs.h, MAX_HANDLE_SZ */
#define LEVEL_MAX_BYTES (64U << 20) /* four million directories of ext4 */
#define LEASE_POLL_NS   NS_PER_MS

union handle {
	struct file_handle h;
	uint8_t bytes[sizeof(struct file_handle) + HANDLE_MAX];
};

struct walk {
	int mount_fd;
	const struct fs_flush_until *until;
	uint64_t n_files;
	struct buf level; /* handles of the directories that are being read, one behind the other */
	struct buf below; /* of those in them */
	char *dents;
};

static void walk_done(struct walk *w)
{
	fd_closep(&w->mount_fd);
	buf_done(&w->level);
	buf_done(&w->below);
	free(w->dents);
}

static int refuse_end(const struct walk *w, struct error **err)
{
	const struct fs_flush_until *u = w->until;

	if (u->go_on && !u->go_on(u->user))
		return err_set(err, ERR_ABORTED, "stopped after flushing %ju files", (uintmax_t)w->n_files);
	if (clock_ns() < u->deadline_ns)
		return 0;
	return err_set(err, ERR_DEADLINE, "no time is left after flushing %ju files", (uintmax_t)w->n_files);
}

static int add_directory(struct walk *w, int dir_fd, const char *name, struct error **err)
{
	union handle u = {.h.handle_bytes = HANDLE_MAX};
	int ignored;

	if (name_to_handle_at(dir_fd, name, &u.h, &ignored, str_empty(name) ? AT_EMPTY_PATH : 0) < 0) {
		if (errno == ENOENT)
			return 0;
		return err_set_errno(err, ERR_INTERNAL, errno, "handle of directory \"%s\"", name);
	}
	buf_add(&w->below, &u, sizeof(u.h) + u.h.handle_bytes);
	return buf_check(&w->below, "directories on one level", err);
}

/* Whether the name is gone since it was read, or of something else. */
static bool was_replaced(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return !S_ISREG(st.st_mode);
}

/* A process that has a lease on the file is asked to give it up (fcntl(2), F_SETLEASE). */
static int open_file(const struct walk *w, int dir_fd, const char *name, int *ret_fd, struct error **err)
{
	for (;;) {
		*ret_fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (*ret_fd >= 0 || errno != EWOULDBLOCK)
			break;
		if (refuse_end(w, err) < 0)
			return err_wrap(err, "wait for the end of a lease on file \"%s\"", name);
		nanosleep(&(struct timespec){.tv_nsec = (long)LEASE_POLL_NS}, NULL);
	}
	int why = errno;
	if (*ret_fd < 0 && !was_replaced(dir_fd, name))
		return err_set_errno(err, ERR_INTERNAL, why, "open file \"%s\"", name);
	return 0;
}

static int flush_file(struct walk *w, int dir_fd, const char *name, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (refuse_end(w, err) < 0 || open_file(w, dir_fd, name, &fd, err) < 0)
		return -1;
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat file \"%s\"", name);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (STEP("flush-file", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE_AND_WAIT)) < 0)
		return err_set_errno(
			err, ERR_INTERNAL, errno, "flush file \"%s\", inode %ju", name, (uintmax_t)st.st_ino);
	w->n_files++;
	return 0;
}

/* Some file systems do not say it in their directories. */
static int find_type(int dir_fd, const struct dirent64 *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	return fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : IFTODT(st.st_mode);
}

static int flush_entry(struct walk *w, int dir_fd, const struct dirent64 *d, struct error **err)
{
	switch (find_type(dir_fd, d)) {
	case DT_REG:
		return flush_file(w, dir_fd, d->d_name, err);
	case DT_DIR:
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, ".."))
			return 0;
		return add_directory(w, dir_fd, d->d_name, err);
	default:
		return 0;
	}
}

static int flush_entries(struct walk *w, int dir_fd, struct error **err)
{
	for (;;) {
		ssize_t n = getdents64(dir_fd, w->dents, DENTS_BYTES);

		if (n < 0 && errno != ENOENT) /* it was removed */
			return err_set_errno(err, ERR_INTERNAL, errno, "read a directory");
		if (n <= 0)
			return 0;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(const void *)(w->dents + at);

			if (flush_entry(w, dir_fd, d, err) < 0)
				return -1;
			at += d->d_reclen;
		}
	}
}

static int flush_directory(struct walk *w, union handle *u, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (refuse_end(w, err) < 0)
		return -1;
	fd = open_by_handle_at(w->mount_fd, &u->h, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return flush_entries(w, fd, err);
	if (errno == ESTALE || errno == ENOTDIR)
		return 0;
	if (errno == EPERM)
		return err_set_errno(err, ERR_PRECONDITION, errno,
			"open a directory by its handle, for which CAP_DAC_READ_SEARCH is needed");
	return err_set_errno(err, ERR_INTERNAL, errno, "open a directory by its handle");
}

static int flush_level(struct walk *w, struct error **err)
{
	union handle u;

	for (size_t at = 0; at < w->level.len; at += sizeof(u.h) + u.h.handle_bytes) {
		memcpy(&u.h, w->level.data + at, sizeof(u.h));
		memcpy(u.h.f_handle, w->level.data + at + sizeof(u.h), u.h.handle_bytes);
		if (flush_directory(w, &u, err) < 0)
			return -1;
	}
	return 0;
}

int fs_flush_files(int root_fd, const struct fs_flush_until *until, uint64_t *ret_files, struct error **err)
{
	CLEANUP(walk_done)
	struct walk w = {.mount_fd = -1,
		.until = until,
		.level = BUF_INIT(LEVEL_MAX_BYTES),
		.below = BUF_INIT(LEVEL_MAX_BYTES),
		.dents = x_malloc(DENTS_BYTES)};

	if (mount_open_apart(root_fd, &w.mount_fd, err) < 0 || add_directory(&w, w.mount_fd, "", err) < 0)
		return -1;
	while (w.below.len > 0) {
		struct buf done = w.level;

		w.level = w.below;
		w.below = done;
		buf_reset(&w.below);
		if (flush_level(&w, err) < 0)
			return err_wrap(err, "flush the files of a file system");
	}
	if (ret_files)
		*ret_files = w.n_files;
	return 0;
}

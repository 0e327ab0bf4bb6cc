/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on files and descriptors. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/inject/wrap.h"

WRAP(int, access, (const char *path, int mode), (path, mode), -1, EIO, ENOMEM)
WRAP(int, stat, (const char *path, struct stat *st), (path, st), -1, EIO, ENOMEM)
WRAP(int, faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags), -1, EIO,
	ENOMEM)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), -1, EIO, ENOMEM)
WRAP(int, fstatat, (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags), -1, EIO,
	ENOMEM)
WRAP(int, statx, (int dir, const char *path, int flags, unsigned mask, struct statx *st),
	(dir, path, flags, mask, st), -1, EIO, ENOMEM)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EIO, ENOSPC)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC, EIO)
WRAP(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), -1, ENOSPC, EIO)
WRAP(int, rmdir, (const char *path), (path), -1, EIO)
WRAP(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), -1, EIO, ENOSPC)
WRAP(int, renameat, (int from_dir, const char *from, int to_dir, const char *to),
	(from_dir, from, to_dir, to), -1, ENOSPC, EIO)
WRAP(int, fsync, (int fd), (fd), -1, EIO, ENOSPC)
WRAP(int, fdatasync, (int fd), (fd), -1, EIO, ENOSPC)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1, ENOSPC, EIO)
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), -1, ENOSPC, EIO)
WRAP(int, flock, (int fd, int operation), (fd, operation), -1, ENOLCK, EINTR)
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms), -1, EINTR, ENOMEM)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), -1, EMFILE)
WRAP(char *, realpath, (const char *path, char *to), (path, to), NULL, EIO, ENOMEM)
WRAP(DIR *, fdopendir, (int fd), (fd), NULL, ENOMEM)
WRAP(struct dirent *, readdir, (DIR * dir), (dir), NULL, EIO)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE, ENOMEM)
WRAP(FILE *, fmemopen, (void *p, size_t n, const char *mode), (p, n, mode), NULL, ENOMEM)

WRAP_AS(ssize_t, read, (int fd, void *to, size_t n));
WRAP_AS(ssize_t, write, (int fd, const void *from, size_t n));

ssize_t __wrap_read(int fd, void *to, size_t n)
{
	int how = inject_way(INJECT_SYSTEM, "read", (const int[]){EIO, EINTR, INJECT_SHORT, 0});

	if (how > 0) {
		errno = how;
		return -1;
	}
	return __real_read(fd, to, how == INJECT_SHORT && n > 1 ? 1 : n);
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
	int how = inject_way(INJECT_SYSTEM, "write", (const int[]){ENOSPC, EIO, EINTR, INJECT_SHORT, 0});

	if (how > 0) {
		errno = how;
		return -1;
	}
	return __real_write(fd, from, how == INJECT_SHORT && n > 1 ? 1 : n);
}

static const int open_ways[] = {EMFILE, ENOMEM, EIO, 0};
static const int create_ways[] = {ENOSPC, EMFILE, EIO, 0};

WRAP_AS(int, open, (const char *path, int flags, ...));
WRAP_AS(int, openat, (int dir, const char *path, int flags, ...));

int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (wrap_fails("open", flags & O_CREAT ? create_ways : open_ways))
		return -1;
	return __real_open(path, flags, mode);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (wrap_fails("openat", flags & O_CREAT ? create_ways : open_ways))
		return -1;
	return __real_openat(dir, path, flags, mode);
}

/* Both take one argument more, a number or an address, wherever common/ calls them. */
WRAP_AS(int, fcntl, (int fd, int command, ...));
WRAP_AS(int, ioctl, (int fd, unsigned long request, ...));

int __wrap_fcntl(int fd, int command, ...)
{
	va_list ap;

	va_start(ap, command);
	void *argument = va_arg(ap, void *);
	va_end(ap);
	if (wrap_fails("fcntl", (const int[]){EMFILE, 0}))
		return -1;
	return __real_fcntl(fd, command, argument);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	va_start(ap, request);
	void *argument = va_arg(ap, void *);
	va_end(ap);
	if (wrap_fails("ioctl", (const int[]){EIO, ENOMEM, 0}))
		return -1;
	return __real_ioctl(fd, request, argument);
}

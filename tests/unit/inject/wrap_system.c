/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts, processes, time, and the libraries of the system. */
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/inject/wrap.h"

WRAP(int, mount, (const char *from, const char *to, const char *type, unsigned long flags, const void *data),
	(from, to, type, flags, data), -1, EIO, ENOMEM)
WRAP(int, umount2, (const char *path, int flags), (path, flags), -1, ENOMEM, EIO)
WRAP(int, open_tree, (int dir, const char *path, unsigned flags), (dir, path, flags), -1, EMFILE, ENOMEM)
WRAP(int, move_mount, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
	(from_dir, from, to_dir, to, flags), -1, ENOMEM)
WRAP(int, mount_setattr, (int dir, const char *path, unsigned flags, struct mount_attr *attr, size_t size),
	(dir, path, flags, attr, size), -1, ENOMEM)

/* openat2() alone has no function in libc. */
WRAP_AS(long, syscall, (long number, ...));

long __wrap_syscall(long number, ...)
{
	va_list ap;

	va_start(ap, number);
	int dir = va_arg(ap, int);
	void *path = va_arg(ap, void *);
	void *how = va_arg(ap, void *);
	size_t size = va_arg(ap, size_t);
	va_end(ap);
	if (wrap_fails("openat2", (const int[]){EMFILE, ENOMEM, EIO, 0}))
		return -1;
	return __real_syscall(number, dir, path, how, size);
}

WRAP(int, pidfd_open, (pid_t pid, unsigned flags), (pid, flags), -1, EMFILE, ENOMEM)
WRAP(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * actions, int fd, int to),
	(actions, fd, to), errno, ENOMEM)
WRAP(int, posix_spawn_file_actions_addopen,
	(posix_spawn_file_actions_t * actions, int fd, const char *path, int flags, mode_t mode),
	(actions, fd, path, flags, mode), errno, ENOMEM)
WRAP(int, posix_spawn_file_actions_addclosefrom_np, (posix_spawn_file_actions_t * actions, int from),
	(actions, from), errno, ENOMEM)
WRAP(int, posix_spawn,
	(pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const env[]),
	(pid, path, actions, attr, argv, env), errno, EAGAIN, ENOMEM)

/* ECHILD means that the child is gone, unseen: SIGCHLD was ignored by whoever started us. */
WRAP_AS(pid_t, waitpid, (pid_t pid, int *state, int options));

pid_t __wrap_waitpid(pid_t pid, int *state, int options)
{
	int unseen;

	if (!wrap_fails("waitpid", (const int[]){EINTR, ECHILD, 0}))
		return __real_waitpid(pid, state, options);
	if (errno == ECHILD) {
		while (__real_waitpid(pid, &unseen, 0) < 0 && errno == EINTR)
			;
		errno = ECHILD;
	}
	return -1;
}

/* Sum of the sleeps that were skipped. After an injected failure nanosleep() returns at once, and the clock
 * goes forward instead: so code that retries a call that always fails reaches its time limit at once. */
static struct timespec skipped;

WRAP_AS(int, nanosleep, (const struct timespec *wanted, struct timespec *left));
WRAP_AS(int, clock_gettime, (clockid_t clock, struct timespec *ret));

static struct timespec sum(struct timespec a, struct timespec b)
{
	struct timespec s = {.tv_sec = a.tv_sec + b.tv_sec, .tv_nsec = a.tv_nsec + b.tv_nsec};

	if (s.tv_nsec >= 1000000000L) {
		s.tv_nsec -= 1000000000L;
		s.tv_sec++;
	}
	return s;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	if (!inject_has_failed())
		return __real_nanosleep(wanted, left);
	skipped = sum(skipped, *wanted);
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int rc = __real_clock_gettime(clock, ret);

	*ret = sum(*ret, skipped);
	return rc;
}

/* Their headers belong to the wrappers in os/; what is passed on needs no more than names. */
struct blkid_struct_probe;
struct libmnt_table;
struct libmnt_iter;
struct libmnt_fs;

WRAP(struct blkid_struct_probe *, blkid_new_probe, (void), (), NULL, ENOMEM)
WRAP(int, blkid_probe_set_device, (struct blkid_struct_probe * pr, int fd, int64_t at, int64_t size),
	(pr, fd, at, size), -1, EIO)
WRAP(int, blkid_do_safeprobe, (struct blkid_struct_probe * pr), (pr), -1, EIO, ENOMEM)
WRAP(struct libmnt_table *, mnt_new_table, (void), (), NULL, ENOMEM)
WRAP(struct libmnt_iter *, mnt_new_iter, (int direction), (direction), NULL, ENOMEM)
WRAP(int, mnt_table_parse_stream, (struct libmnt_table * tb, void *f, const char *name), (tb, f, name),
	-errno, EIO, ENOMEM)
WRAP(int, mnt_table_next_fs, (struct libmnt_table * tb, struct libmnt_iter *it, struct libmnt_fs **fs),
	(tb, it, fs), -errno, EINVAL)
WRAP(int, mnt_split_optstr,
	(const char *options, char **user, char **generic, char **own, int ignore_user, int ignore_generic),
	(options, user, generic, own, ignore_user, ignore_generic), -errno, ENOMEM)
WRAP(int, mnt_optstr_append_option, (char **options, const char *name, const char *value),
	(options, name, value), -errno, ENOMEM)

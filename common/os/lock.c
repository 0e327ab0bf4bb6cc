/* SPDX-License-Identifier: Apache-2.0 */
#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define RETRY_MS 10

#define LOCKS_MAX_BYTES (4U << 20)
#define WORD_MAX        48

#define RUN_PARENT "/run"
#define RUN_NAME   "pmem-csi"
#define RUN_DIR    RUN_PARENT "/" RUN_NAME

#define HOLDER_MAX_BYTES 256

/* flock(2) has no time-out of its own, and a signal to end its wait cannot be aimed at one thread's call. */
static int lock_until(int fd, uint64_t deadline_ns)
{
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return -errno;

		int wait_ms = clock_left_ms(deadline_ns, RETRY_MS);
		if (wait_ms == 0)
			return -EWOULDBLOCK;
		nanosleep(&(struct timespec){.tv_nsec = wait_ms * (long)NS_PER_MS}, NULL);
	}
	return 0;
}

static int refuse_held(int dir_fd, const char *name, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	pid_t holder = 0;

	if (host_lock_holder(dir_fd, name, &holder, &ignored) < 0 || holder <= 0)
		return err_set(err, ERR_UNAVAILABLE, "lock file %s is held by another process", name);
	return err_set(err, ERR_UNAVAILABLE, "lock file %s is held by process %ld", name, (long)holder);
}

int host_lock(int dir_fd, const char *name, int timeout_ms, int *ret_fd, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open lock file %s", name);

	int rc = lock_until(fd, deadline_ns);
	if (rc == -EWOULDBLOCK)
		return refuse_held(dir_fd, name, err);
	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "lock %s", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* The word number @i of a line, from 0, NUL-terminated in @out; "" when there is none or it is longer. */
static void word_at(const char *line, unsigned i, char out[static WORD_MAX])
{
	size_t n;

	for (;; i--) {
		line += strspn(line, " ");
		n = strcspn(line, " \n");
		if (i == 0)
			break;
		line += n;
	}
	if (n >= WORD_MAX)
		n = 0;
	memcpy(out, line, n);
	out[n] = '\0';
}

/* "1: FLOCK ADVISORY WRITE 1234 fe:01:5678 0 EOF": the pid if the line is about @file, else 0. A waiter's
 * line has "->" as its second word. */
static uint32_t holder_in_line(const char *line, const char *file)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	char word[WORD_MAX];
	uint32_t pid = 0;

	word_at(line, 1, word);
	if (!str_eq(word, "FLOCK"))
		return 0;
	word_at(line, 5, word);
	if (!str_eq(word, file))
		return 0;
	word_at(line, 4, word);
	return parse_u32(word, &pid, &ignored) < 0 ? 0 : pid;
}

int host_lock_holder(int dir_fd, const char *name, pid_t *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LOCKS_MAX_BYTES);
	char file[WORD_MAX];
	struct stat st;
	uint32_t pid = 0;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_set_errno(err, ERR_INTERNAL, errno, "stat lock file %s", name);
		*ret = 0;
		return 0;
	}
	if (file_read(AT_FDCWD, "/proc/locks", &text, err) < 0)
		return -1;
	snprintf(file, sizeof(file), "%02x:%02x:%ju", major(st.st_dev), minor(st.st_dev),
		(uintmax_t)st.st_ino);
	for (const char *line = buf_str(&text); line && *line && pid == 0; line = strchr(line, '\n')) {
		line += *line == '\n';
		pid = holder_in_line(line, file);
	}
	*ret = (pid_t)pid;
	return 0;
}

/* Users that can write there could remove our locks, or hold them for ever. */
static int check_run_dir(int fd, struct error **err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat " RUN_DIR);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, ERR_UNAVAILABLE,
			RUN_DIR " belongs to user %u and has mode %03o: "
				"it must belong to user %u, and no other user may write there",
			st.st_uid, st.st_mode & 0777, geteuid());
	return 0;
}

static int open_run_dir(int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int parent = -1;
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(RUN_PARENT, /* create= */ false, 0, &parent, err) < 0)
		return -1;
	if (mkdirat(parent, RUN_NAME, 0700) < 0 && errno != EEXIST)
		/* not the fault of the request, which is to come again when the pod is right */
		return err_set_errno(err, ERR_UNAVAILABLE, errno,
			"create " RUN_DIR " (in a container it must be a folder of the host)");
	fd = openat(parent, RUN_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_UNAVAILABLE, errno, "open " RUN_DIR " without following links");
	if (check_run_dir(fd, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* For processes that wait, because their /proc does not show processes in other containers. The lock works
 * without it, too. The rest of a longer previous signature may follow the end of the line. */
static void sign(int fd)
{
	char host[64] = "";

	(void)!gethostname(host, sizeof(host) - 1);
	CLEANUP(free_charp)
	char *text = x_asprintf("%s, process %d on %s\n", program_invocation_short_name, getpid(), host);
	(void)!pwrite(fd, text, strlen(text), 0);
}

/* As /proc/locks shows it, else as the last holder of ours signed. Return: caller frees. */
static char *describe_holder(int dir_fd, const char *name)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(HOLDER_MAX_BYTES);
	CLEANUP(error_freep) struct error *ignored = NULL;
	pid_t pid = 0;

	if (host_lock_holder(dir_fd, name, &pid, &ignored) == 0 && pid > 0) {
		CLEANUP(free_charp) char *comm = x_asprintf("/proc/%d/comm", pid);

		if (file_read(AT_FDCWD, comm, &text, &ignored) < 0)
			return x_asprintf("process %d", pid);
		return x_asprintf(
			"%.*s, process %d", (int)strcspn(buf_str(&text), "\n"), buf_str(&text), pid);
	}
	error_clear(&ignored);
	if (file_read(dir_fd, name, &text, &ignored) < 0 || text.len == 0)
		return x_strdup("a process that cannot be seen from here");
	return x_asprintf("%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
}

int host_lock_run(const char *name, int timeout_ms, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int dir = -1;

	if (open_run_dir(&dir, err) < 0)
		return -1;
	if (host_lock(dir, name, timeout_ms, ret_fd, err) == 0) {
		sign(*ret_fd);
		return 0;
	}
	if ((*err)->code != ERR_UNAVAILABLE)
		return err_wrap(err, RUN_DIR);
	CLEANUP(free_charp) char *holder = describe_holder(dir, name);
	error_clear(err);
	return err_set(err, ERR_UNAVAILABLE, RUN_DIR "/%s is held by %s, and was not free within %d s", name,
		holder, timeout_ms / 1000);
}

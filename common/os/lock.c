#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define RETRY_MS 10

#define LOCKS_MAX_BYTES (4U << 20)
#define WORD_MAX        48

#define RUN_PARENT "/run/lock"
#define RUN_DIR    "/run/lock/pmem-csi"

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

int host_lock(int dir_fd, const char *name, int timeout_ms, int *ret_fd, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open lock file %s", name);

	int rc = lock_until(fd, deadline_ns);
	if (rc == -EWOULDBLOCK)
		return err_set(err, ERR_UNAVAILABLE, "lock file %s is held by another process", name);
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

int host_lock_run(const char *name, int timeout_ms, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int parent = -1;
	CLEANUP(fd_closep) int dir = -1;

	if (dir_open(RUN_PARENT, true, 0755, &parent, err) < 0 ||
		dir_open(RUN_DIR, true, 0700, &dir, err) < 0)
		return -1;
	if (host_lock(dir, name, timeout_ms, ret_fd, err) < 0)
		return err_wrap(err, RUN_DIR);
	return 0;
}

#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/clock.h"
#include "os/file.h"

#define RETRY_MS 10

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

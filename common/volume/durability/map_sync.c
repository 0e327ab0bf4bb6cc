/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/durability/map_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define STACK_BYTES (64U << 10)
#define FILE_MODE   0600

/* The question to one thread and its answer, which the thread shares with the caller. */
struct attempt {
	pthread_mutex_t mutex;
	pthread_cond_t answered;
	unsigned users; /* the thread, and the caller while it waits */
	bool done;
	int dir_fd; /* the thread's */
	enum durability durability;
	const char *step; /* what has failed; NULL: nothing */
	int why;          /* errno of it */
};

/* The caller holds the mutex, which is released. */
static void leave(struct attempt *a)
{
	bool last = --a->users == 0;

	pthread_mutex_unlock(&a->mutex);
	if (!last)
		return;
	pthread_cond_destroy(&a->answered);
	pthread_mutex_destroy(&a->mutex);
	free(a);
}

/* Whether the kernel reads and writes the file without the page cache: only then does its answer say
 * something about the memory. */
static bool has_dax(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_DAX);
}

/* Nothing is stored through the mapping: to map it is what the kernel refuses. Return: the step that failed;
 * NULL: none */
static const char *map_page(int dir_fd, enum durability *ret)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	CLEANUP(fd_closep) int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);

	if (fd < 0)
		return "make a file without a name";
	if (!has_dax(fd))
		return NULL;
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	if (page != MAP_FAILED) {
		*ret = DURABILITY_SYNCHRONOUS;
		munmap(page, bytes);
		return NULL;
	}
	if (errno != EOPNOTSUPP)
		return "map a page with MAP_SYNC";
	*ret = DURABILITY_FSYNC;
	return NULL;
}

static void *run(void *user)
{
	struct attempt *a = user;
	enum durability durability = DURABILITY_UNKNOWN;
	const char *step = map_page(a->dir_fd, &durability);
	int why = step ? errno : 0;

	/* before the caller is woken: an open descriptor would keep a mount busy that it unmounts next */
	fd_closep(&a->dir_fd);
	pthread_mutex_lock(&a->mutex);
	a->durability = durability;
	a->step = step;
	a->why = why;
	a->done = true;
	pthread_cond_signal(&a->answered);
	leave(a);
	return NULL;
}

/* Return: NULL with @err as map_sync_try() */
static struct attempt *begin(int dir_fd, struct error **err)
{
	CLEANUP(fd_closep) int own_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	struct attempt *a;
	int why;

	if (own_fd < 0) {
		(void)!err_set_errno(err, ERR_INTERNAL, errno, "duplicate a descriptor");
		return NULL;
	}
	a = x_calloc(1, sizeof(*a));
	a->users = 2;
	a->dir_fd = own_fd;
	pthread_mutex_init(&a->mutex, NULL);
	thread_cond_init(&a->answered);
	why = thread_start(run, a, STACK_BYTES);
	if (why == 0) {
		(void)TAKE_FD(own_fd);
		return a;
	}
	a->users = 1;
	pthread_mutex_lock(&a->mutex);
	leave(a);
	(void)!err_set_errno(err, ERR_UNAVAILABLE, why, "start a thread");
	return NULL;
}

int map_sync_try(int dir_fd, int timeout_ms, enum durability *ret, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct attempt *a = begin(dir_fd, err);
	bool in_time = true;
	int rc = 0;

	if (!a)
		return -1;
	pthread_mutex_lock(&a->mutex);
	while (!a->done && in_time)
		in_time = thread_wait_until(&a->answered, &a->mutex, deadline_ns);
	if (!a->done)
		rc = err_set(err, ERR_DEADLINE, "the file system does not answer");
	else if (a->step)
		rc = err_set_errno(err, ERR_INTERNAL, a->why, "%s", a->step);
	else
		*ret = a->durability;
	leave(a);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fs_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define STACK_BYTES (64U << 10)

/* One call, shared by the helper that makes it and all callers that wait for its result. */
struct question {
	struct fs_usage_helpers *helpers;
	dev_t dev;
	int fd;         /* the helper's */
	unsigned users; /* the helper, and callers that wait */
	bool answered;
	int why;     /* errno, or 0 */
	int refusal; /* as in struct fs_usage */
	struct statvfs answer;
	struct question *next; /* of those that are not answered yet */
};

struct fs_usage_helpers {
	pthread_mutex_t mutex;
	pthread_cond_t answered;
	unsigned users; /* the owner and each helper */
	size_t n_helpers;
	size_t max_helpers;
	struct question *open;
};

struct fs_usage_helpers *fs_usage_helpers_new(size_t max)
{
	struct fs_usage_helpers *h = x_calloc(1, sizeof(*h));

	h->users = 1;
	h->max_helpers = max;
	pthread_mutex_init(&h->mutex, NULL);
	thread_cond_init(&h->answered);
	return h;
}

/* The caller has the mutex, and loses it. */
static void release(struct fs_usage_helpers *h)
{
	bool last = --h->users == 0;

	pthread_mutex_unlock(&h->mutex);
	if (!last)
		return;
	pthread_cond_destroy(&h->answered);
	pthread_mutex_destroy(&h->mutex);
	free(h);
}

void fs_usage_helpers_free(struct fs_usage_helpers *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->mutex);
	release(h);
}

/* The caller has the mutex. */
static void leave(struct question *q)
{
	if (--q->users == 0)
		free(q);
}

/* The caller has the mutex. */
static void close_question(struct question *q)
{
	struct question **link = &q->helpers->open;

	while (*link != q)
		link = &(*link)->next;
	*link = q->next;
	q->helpers->n_helpers--;
	q->answered = true;
	pthread_cond_broadcast(&q->helpers->answered);
}

/* xfs that was shut down gives its last numbers and opens nothing (fs/xfs/xfs_file.c, xfs_file_open()). */
static int try_open(int fd)
{
	CLEANUP(fd_closep) int folder = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return folder < 0 ? errno : 0;
}

static void *help(void *user)
{
	struct question *q = user;
	struct fs_usage_helpers *h = q->helpers;
	struct statvfs answer = {0};
	int why = fstatvfs(q->fd, &answer) < 0 ? errno : 0;
	int refusal = try_open(q->fd);

	/* before callers are woken: an open descriptor would keep a mount busy that the caller unmounts next
	 */
	fd_closep(&q->fd);
	pthread_mutex_lock(&h->mutex);
	q->answer = answer;
	q->why = why;
	q->refusal = refusal;
	close_question(q);
	leave(q);
	release(h);
	return NULL;
}

/* The caller has the mutex. */
static int ask(struct fs_usage_helpers *h, int fd, dev_t dev, struct question **ret, struct error **err)
{
	if (h->n_helpers == h->max_helpers)
		return err_set(err, ERR_UNAVAILABLE, "%zu file systems do not answer", h->n_helpers);

	CLEANUP(fd_closep) int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "duplicate a descriptor");

	struct question *q = x_calloc(1, sizeof(*q));
	*q = (struct question){.helpers = h, .dev = dev, .fd = own_fd, .users = 1, .next = h->open};
	int why = thread_start(help, q, STACK_BYTES);
	if (why != 0) {
		free(q);
		return err_set_errno(err, ERR_UNAVAILABLE, why, "start a thread");
	}
	(void)TAKE_FD(own_fd);
	h->open = q;
	h->n_helpers++;
	h->users++;
	*ret = q;
	return 0;
}

/* The caller has the mutex. */
static int find_or_ask(
	struct fs_usage_helpers *h, int fd, dev_t dev, struct question **ret, struct error **err)
{
	for (struct question *q = h->open; q; q = q->next) {
		if (q->dev == dev) {
			*ret = q;
			return 0;
		}
	}
	return ask(h, fd, dev, ret, err);
}

static int read_answer(const struct question *q, struct fs_usage *ret, struct error **err)
{
	const struct statvfs *s = &q->answer;

	if (q->why != 0)
		return err_set_errno(err, ERR_INTERNAL, q->why, "statvfs");
	*ret = (struct fs_usage){.total_bytes = (uint64_t)s->f_blocks * s->f_frsize,
		.used_bytes = (uint64_t)(s->f_blocks - s->f_bfree) * s->f_frsize,
		.available_bytes = (uint64_t)s->f_bavail * s->f_frsize,
		.total_inodes = s->f_files,
		.used_inodes = s->f_files - s->f_ffree,
		.available_inodes = s->f_favail,
		.refusal = q->refusal};
	return 0;
}

static int read_locked(struct fs_usage_helpers *h, int fd, dev_t dev, uint64_t deadline_ns,
	struct fs_usage *ret, struct error **err)
{
	struct question *q;
	bool in_time = true;
	int rc;

	if (find_or_ask(h, fd, dev, &q, err) < 0)
		return -1;
	q->users++;
	while (!q->answered && in_time)
		in_time = thread_wait_until(&h->answered, &h->mutex, deadline_ns);
	rc = q->answered ? read_answer(q, ret, err)
			 : err_set(err, ERR_DEADLINE, "the file system does not answer");
	leave(q);
	return rc;
}

int fs_usage_read(struct fs_usage_helpers *h, int fd, dev_t dev, int timeout_ms, struct fs_usage *ret,
	struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	pthread_mutex_lock(&h->mutex);
	int rc = read_locked(h, fd, dev, deadline_ns, ret, err);
	pthread_mutex_unlock(&h->mutex);
	return rc;
}

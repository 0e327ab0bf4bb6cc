/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/data_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/thread.h"
#include "os/blockdev.h"

#define PIECE_BYTES (1ULL << 20)
#define BLOCK_BYTES 4096
/* Bounds how long go_on() is not asked, and how long the last thread works alone. */
#define ZERO_PIECE_BYTES (16ULL << 20)
/* One processor cannot use all of what interleaved DIMMs can do, and more would be taken from pods. */
#define THREADS     2
#define STACK_BYTES (64U << 10)
/* Less is done about as soon as a thread has begun. */
#define SHARED_LEAST_BYTES (32ULL << 20)
#define HELD_WAIT_MS       1000
#define LIMIT_POLL_NS      (100 * NS_PER_MS)

static const int role_flags[] = {
	[DATA_COPY_SOURCE] = O_RDONLY,
	[DATA_COPY_SOURCE_UNUSED] = O_RDONLY,
	[DATA_COPY_TARGET] = O_RDWR,
};

int data_copy_open(const char *device, enum data_copy_role role, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep)
	int fd = role == DATA_COPY_SOURCE
			 ? open(device, role_flags[role] | O_DIRECT | O_CLOEXEC)
			 : blockdev_open_unless_held(device, role_flags[role] | O_DIRECT, HELD_WAIT_MS);
	struct stat st;

	if (fd < 0 && errno == EBUSY)
		return err_set_errno(
			err, ERR_PRECONDITION, errno, "%s is mounted, or used by another program", device);
	if (fd < 0)
		return err_set_errno(
			err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "open %s", device);
	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", device);
	if (!S_ISBLK(st.st_mode))
		return err_set(err, ERR_INTERNAL, "%s is not a block device", device);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

struct job;

struct worker {
	struct job *job;
	uint8_t *piece; /* PIECE_BYTES, at the beginning of a page, as O_DIRECT wants it; zero at first */
};

/* State that the threads of one call share. The mutex guards all members that change after the threads were
 * started. */
struct job {
	struct worker workers[THREADS]; /* the first is the caller */
	const struct data_copy *c;
	const struct fs_extents *ranges; /* that are copied, or zeroed */
	bool zero;
	uint64_t begun_ns;
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	unsigned helpers;      /* threads beside the caller's that have not ended */
	size_t next;           /* range of which the next piece is */
	uint64_t next_at;      /* bytes of it that were handed out */
	uint64_t given_bytes;  /* that were handed out */
	uint64_t done_bytes;   /* that are done */
	struct error *failure; /* the first one, which ends all */
};

static void job_done(struct job *j)
{
	for (size_t i = 0; i < THREADS; i++) {
		if (j->workers[i].piece)
			munmap(j->workers[i].piece, PIECE_BYTES);
	}
}

/* Return: 0, or -1 with errno */
static int worker_begin(struct worker *w, struct job *j)
{
	void *p = mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	*w = (struct worker){.job = j, .piece = p};
	return 0;
}

/* When so much may have been begun; in two steps, since the product of bytes and nanoseconds overflows. The
 * caller has the mutex. */
static uint64_t due_ns(const struct job *j)
{
	uint64_t rate = j->c->bytes_per_s;

	if (rate == 0)
		return 0;
	return j->begun_ns + j->given_bytes / rate * NS_PER_S +
	       (uint64_t)((double)(j->given_bytes % rate) / (double)rate * (double)NS_PER_S);
}

/* The caller has the mutex. */
static bool goes_on(struct job *j)
{
	if (!j->failure && j->next < j->ranges->n && j->c->go_on && !j->c->go_on(j->c->user, j->done_bytes))
		(void)err_set(&j->failure, ERR_ABORTED, "stopped after %ju bytes", (uintmax_t)j->done_bytes);
	return !j->failure && j->next < j->ranges->n;
}

static void extend(struct fs_extent *written, const struct fs_extent *e)
{
	uint64_t end = e->at_bytes + e->length_bytes;

	if (written->length_bytes == 0)
		*written = *e;
	if (end < written->at_bytes + written->length_bytes)
		end = written->at_bytes + written->length_bytes;
	if (e->at_bytes < written->at_bytes)
		written->at_bytes = e->at_bytes;
	written->length_bytes = end - written->at_bytes;
}

/* The caller has the mutex. */
static struct fs_extent hand_out(struct job *j)
{
	const struct fs_extent *range = &j->ranges->list[j->next];
	uint64_t most = j->zero ? ZERO_PIECE_BYTES : PIECE_BYTES;
	uint64_t left = range->length_bytes - j->next_at;
	struct fs_extent e = {
		.at_bytes = range->at_bytes + j->next_at, .length_bytes = left < most ? left : most};

	j->given_bytes += e.length_bytes;
	j->next_at += e.length_bytes;
	if (j->next_at == range->length_bytes) {
		j->next++;
		j->next_at = 0;
	}
	if (j->c->written && !j->zero)
		extend(j->c->written, &e);
	return e;
}

/* Waits for the limit. Return: whether a piece is left, and all goes on. */
static bool take_piece(struct job *j, struct fs_extent *ret)
{
	pthread_mutex_lock(&j->mutex);
	while (goes_on(j)) {
		uint64_t now = clock_ns();
		uint64_t due = due_ns(j);

		if (now >= due) {
			*ret = hand_out(j);
			pthread_mutex_unlock(&j->mutex);
			return true;
		}
		uint64_t pause = due - now < LIMIT_POLL_NS ? due - now : LIMIT_POLL_NS;
		pthread_mutex_unlock(&j->mutex);
		nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
		pthread_mutex_lock(&j->mutex);
	}
	pthread_mutex_unlock(&j->mutex);
	return false;
}

/* As pread(2), but that a part ends the piece. */
static ssize_t read_source(const struct data_copy *c, void *to, size_t n, uint64_t at)
{
	if (!c->parts)
		return pread(c->from_fd, to, n, (off_t)at);
	for (size_t i = 0; i < c->n_parts; i++) {
		const struct data_copy_part *p = &c->parts[i];

		if (at < p->length_bytes) {
			uint64_t left = p->length_bytes - at;

			return pread(p->fd, to, n < left ? n : (size_t)left, (off_t)(p->start_bytes + at));
		}
		at -= p->length_bytes;
	}
	return 0;
}

/* The kernel fails a whole piece for one block that cannot be read. Return: where that block is in it. */
static size_t find_unreadable(const struct worker *w, uint64_t at, size_t n)
{
	for (size_t from = 0; from + BLOCK_BYTES < n; from += BLOCK_BYTES) {
		if (read_source(w->job->c, w->piece, BLOCK_BYTES, at + from) < 0)
			return from;
	}
	return n - BLOCK_BYTES;
}

static int fail_read(const struct worker *w, uint64_t at, size_t n, struct error **err)
{
	int why = errno;

	if (why == EIO && n > BLOCK_BYTES)
		at += find_unreadable(w, at, n);
	return err_set_errno(err, ERR_INTERNAL, why, "read the source at byte %ju", (uintmax_t)at);
}

static int read_piece(const struct worker *w, uint64_t at, size_t n, struct error **err)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = read_source(w->job->c, w->piece + done, n - done, at + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_read(w, at + done, n - done, err);
		if (got == 0)
			return err_set(
				err, ERR_INTERNAL, "the source ends at byte %ju", (uintmax_t)(at + done));
		done += (size_t)got;
	}
	return 0;
}

/* @done: bytes of the piece that are left out */
static int write_piece(const struct worker *w, uint64_t at, size_t done, size_t n, struct error **err)
{
	while (done < n) {
		ssize_t put = pwrite(w->job->c->to_fd, w->piece + done, n - done, (off_t)(at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set_errno(err, ERR_INTERNAL, put < 0 ? errno : ENOSPC,
				"write the copy at byte %ju", (uintmax_t)(at + done));
		done += (size_t)put;
	}
	return 0;
}

/* Return: how many bytes of the piece are for the head. */
static size_t keep_head(const struct worker *w, const struct fs_extent *e)
{
	if (!w->job->c->head || e->at_bytes >= DATA_COPY_HEAD_BYTES)
		return 0;
	uint64_t left = DATA_COPY_HEAD_BYTES - e->at_bytes;
	size_t n = e->length_bytes < left ? e->length_bytes : left;

	memcpy(w->job->c->head + e->at_bytes, w->piece, n);
	return n;
}

static int copy_piece(const struct worker *w, const struct fs_extent *e, struct error **err)
{
	if (read_piece(w, e->at_bytes, e->length_bytes, err) < 0)
		return -1;
	return write_piece(w, e->at_bytes, keep_head(w, e), e->length_bytes, err);
}

/* The kernel is asked for the zeros of large ones only: blockdev_zero() flushes each time. */
static int zero_piece(const struct worker *w, const struct fs_extent *e, struct error **err)
{
	return e->length_bytes <= PIECE_BYTES
		       ? write_piece(w, e->at_bytes, 0, e->length_bytes, err)
		       : blockdev_zero(w->job->c->to_fd, e->at_bytes, e->length_bytes, err);
}

static void note_piece(struct job *j, const struct fs_extent *e, struct error *failure)
{
	pthread_mutex_lock(&j->mutex);
	if (!failure)
		j->done_bytes += e->length_bytes;
	else if (!j->failure)
		j->failure = TAKE_PTR(failure);
	pthread_mutex_unlock(&j->mutex);
	error_free(failure);
}

static void work(const struct worker *w)
{
	struct fs_extent e;

	while (take_piece(w->job, &e)) {
		struct error *failure = NULL;
		int rc = w->job->zero ? zero_piece(w, &e, &failure) : copy_piece(w, &e, &failure);

		note_piece(w->job, &e, rc < 0 ? failure : NULL);
	}
}

static void *help(void *user)
{
	const struct worker *w = user;
	struct job *j = w->job;

	work(w);
	pthread_mutex_lock(&j->mutex);
	if (--j->helpers == 0)
		pthread_cond_signal(&j->ended);
	pthread_mutex_unlock(&j->mutex);
	return NULL;
}

/* Starts a thread that copies beside the caller's. If there is not enough memory or the thread cannot be
 * started, the other threads do its share. */
static void add_helper(struct job *j, struct worker *w)
{
	if (worker_begin(w, j) < 0)
		return;
	pthread_mutex_lock(&j->mutex);
	if (thread_start(help, w, STACK_BYTES) == 0)
		j->helpers++;
	pthread_mutex_unlock(&j->mutex);
}

static void work_together(struct job *j)
{
	pthread_mutex_init(&j->mutex, NULL);
	thread_cond_init(&j->ended);
	for (size_t i = 1; i < THREADS && j->ranges->total_bytes >= SHARED_LEAST_BYTES; i++)
		add_helper(j, &j->workers[i]);
	work(&j->workers[0]);
	pthread_mutex_lock(&j->mutex);
	while (j->helpers > 0)
		pthread_cond_wait(&j->ended, &j->mutex);
	pthread_mutex_unlock(&j->mutex);
	pthread_cond_destroy(&j->ended);
	pthread_mutex_destroy(&j->mutex);
}

static int run(const struct data_copy *c, const struct fs_extents *ranges, bool zero, struct error **err)
{
	CLEANUP(job_done) struct job j = {.c = c, .ranges = ranges, .zero = zero, .begun_ns = clock_ns()};

	if (worker_begin(&j.workers[0], &j) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "memory for copying");
	work_together(&j);
	if (j.failure) {
		*err = j.failure;
		return -1;
	}
	if (STEP("copy-sync", fdatasync(c->to_fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush the copy");
	return 0;
}

int data_copy_extents(const struct data_copy *c, const struct fs_extents *x, struct error **err)
{
	STEP_POINT("copy-begun");
	return run(c, x, /* zero= */ false, err);
}

int data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t to_bytes, struct error **err)
{
	CLEANUP(fs_extents_done) struct fs_extents gaps = FS_EXTENTS_INIT;
	const size_t max =
		x->n + 2; /* never full: none may be closed, since what is between them was copied */
	uint64_t at = c->head ? DATA_COPY_HEAD_BYTES : 0;

	for (size_t i = 0; i < x->n; i++) {
		uint64_t end = x->list[i].at_bytes + x->list[i].length_bytes;

		fs_extents_add(&gaps, at, x->list[i].at_bytes, max);
		at = end > at ? end : at;
	}
	fs_extents_add(&gaps, at, to_bytes, max);
	return run(c, &gaps, /* zero= */ true, err);
}

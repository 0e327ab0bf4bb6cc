/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/data_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "os/blockdev.h"

#define PIECE_BYTES (1ULL << 20)
#define BLOCK_BYTES 4096
/* Bounds how long go_on() is not asked. */
#define ZERO_PIECE_BYTES (64ULL << 20)
#define HELD_WAIT_MS     1000
#define HELD_POLL_MS     5
#define LIMIT_POLL_NS    (100 * NS_PER_MS)

static const int role_flags[] = {
	[DATA_COPY_SOURCE] = O_RDONLY,
	[DATA_COPY_SOURCE_UNUSED] = O_RDONLY | O_EXCL,
	[DATA_COPY_TARGET] = O_RDWR | O_EXCL,
};

/* A child that another thread starts has copies of our descriptors until it runs its program. Return: the
 * caller's, or -1 with errno */
static int open_patiently(const char *device, int flags)
{
	uint64_t deadline_ns = clock_ns() + HELD_WAIT_MS * NS_PER_MS;
	int fd = open(device, flags);

	while (fd < 0 && errno == EBUSY && clock_ns() < deadline_ns) {
		nanosleep(&(struct timespec){.tv_nsec = HELD_POLL_MS * (long)NS_PER_MS}, NULL);
		fd = open(device, flags);
	}
	return fd;
}

int data_copy_open(const char *device, enum data_copy_role role, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = open_patiently(device, role_flags[role] | O_DIRECT | O_CLOEXEC);
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

struct run {
	const struct data_copy *c;
	uint8_t *piece; /* PIECE_BYTES, at the beginning of a page, as O_DIRECT wants it; zero at first */
	uint64_t begun_ns;
	uint64_t done_bytes;
};

static void run_done(struct run *r)
{
	if (r->piece)
		munmap(r->piece, PIECE_BYTES);
}

static int run_begin(struct run *r, struct error **err)
{
	void *p = mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return err_set_errno(err, ERR_INTERNAL, errno, "memory for copying");
	r->piece = p;
	r->begun_ns = clock_ns();
	return 0;
}

static int ask(const struct run *r, struct error **err)
{
	if (r->c->go_on && !r->c->go_on(r->c->user, r->done_bytes))
		return err_set(err, ERR_ABORTED, "stopped after %ju bytes", (uintmax_t)r->done_bytes);
	return 0;
}

/* When so much may have been done; in two steps, since the product of bytes and nanoseconds overflows. */
static uint64_t due_ns(const struct run *r)
{
	uint64_t rate = r->c->bytes_per_s;

	if (rate == 0)
		return 0;
	return r->begun_ns + r->done_bytes / rate * NS_PER_S +
	       (uint64_t)((double)(r->done_bytes % rate) / (double)rate * (double)NS_PER_S);
}

/* Before each piece. */
static int take_turn(const struct run *r, struct error **err)
{
	uint64_t due = due_ns(r);

	for (;;) {
		if (ask(r, err) < 0)
			return -1;
		uint64_t now = clock_ns();
		if (now >= due)
			return 0;
		uint64_t pause = due - now < LIMIT_POLL_NS ? due - now : LIMIT_POLL_NS;
		nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
	}
}

/* The kernel fails a whole piece for one block that cannot be read. Return: where that block is in it. */
static size_t find_unreadable(const struct run *r, uint64_t at, size_t n)
{
	for (size_t from = 0; from + BLOCK_BYTES < n; from += BLOCK_BYTES) {
		if (pread(r->c->from_fd, r->piece, BLOCK_BYTES, (off_t)(at + from)) < 0)
			return from;
	}
	return n - BLOCK_BYTES;
}

static int fail_read(const struct run *r, uint64_t at, size_t n, struct error **err)
{
	int why = errno;

	if (why == EIO && n > BLOCK_BYTES)
		at += find_unreadable(r, at, n);
	return err_set_errno(err, ERR_INTERNAL, why, "read the source at byte %ju", (uintmax_t)at);
}

static int read_piece(const struct run *r, uint64_t at, size_t n, struct error **err)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(r->c->from_fd, r->piece + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_read(r, at + done, n - done, err);
		if (got == 0)
			return err_set(
				err, ERR_INTERNAL, "the source ends at byte %ju", (uintmax_t)(at + done));
		done += (size_t)got;
	}
	return 0;
}

static int write_piece(const struct run *r, uint64_t at, size_t n, struct error **err)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = pwrite(r->c->to_fd, r->piece + done, n - done, (off_t)(at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set_errno(err, ERR_INTERNAL, put < 0 ? errno : ENOSPC,
				"write the copy at byte %ju", (uintmax_t)(at + done));
		done += (size_t)put;
	}
	return 0;
}

static size_t piece_of(uint64_t left, uint64_t most)
{
	return (size_t)(left < most ? left : most);
}

static int copy_extent(struct run *r, const struct fs_extent *e, struct error **err)
{
	uint64_t end = e->at_bytes + e->length_bytes;
	size_t n;

	for (uint64_t at = e->at_bytes; at < end; at += n) {
		n = piece_of(end - at, PIECE_BYTES);
		if (take_turn(r, err) < 0 || read_piece(r, at, n, err) < 0 || write_piece(r, at, n, err) < 0)
			return -1;
		r->done_bytes += n;
	}
	return 0;
}

static int make_durable(const struct run *r, struct error **err)
{
	if (STEP("copy-sync", fdatasync(r->c->to_fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush the copy");
	return 0;
}

int data_copy_extents(const struct data_copy *c, const struct fs_extents *x, struct error **err)
{
	CLEANUP(run_done) struct run r = {.c = c};

	if (run_begin(&r, err) < 0)
		return -1;
	STEP_POINT("copy-begun");
	for (size_t i = 0; i < x->n; i++) {
		if (copy_extent(&r, &x->list[i], err) < 0)
			return -1;
	}
	return make_durable(&r, err);
}

/* The kernel is asked for the zeros of large ones only: blockdev_zero() flushes each time. */
static int zero_gap(struct run *r, uint64_t at, uint64_t end, struct error **err)
{
	size_t n;

	for (; at < end; at += n) {
		n = piece_of(end - at, ZERO_PIECE_BYTES);
		if (take_turn(r, err) < 0)
			return -1;
		if (n <= PIECE_BYTES ? write_piece(r, at, n, err) < 0
				     : blockdev_zero(r->c->to_fd, at, n, err) < 0)
			return -1;
		r->done_bytes += n;
	}
	return 0;
}

int data_copy_zero_gaps(
	const struct data_copy *c, const struct fs_extents *x, uint64_t to_bytes, struct error **err)
{
	CLEANUP(run_done) struct run r = {.c = c};
	uint64_t at = 0;

	if (run_begin(&r, err) < 0)
		return -1;
	for (size_t i = 0; i < x->n; i++) {
		if (zero_gap(&r, at, x->list[i].at_bytes, err) < 0)
			return -1;
		at = x->list[i].at_bytes + x->list[i].length_bytes;
	}
	if (zero_gap(&r, at, to_bytes, err) < 0)
		return -1;
	return make_durable(&r, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/data_copy.h"

#include <pthread.h>

#include "base/clock.h"
#include "unit/os/copy/fixture.h"

#define SMALL_BYTES MIB(8)
#define BLOCK       4096

/* The block at @at of the source: no two are equal, and none has the byte 0 or DIRTY. */
static void fill_source(uint8_t block[static BLOCK], uint64_t at)
{
	memset(block, 1, BLOCK);
	for (size_t i = 0; i < 4; i++)
		block[i] = (uint8_t)(1 + (at / BLOCK >> 4 * i) % 16);
}

struct pair {
	struct fixture_disk from;
	struct fixture_disk to;
	struct data_copy c;
	unsigned asked;
	unsigned stop_at; /* the how-many-th question is answered with no; 0: none */
	uint64_t done_bytes;
};

static bool go_on(void *user, uint64_t done_bytes)
{
	struct pair *p = user;

	ck_assert_uint_ge(done_bytes, p->done_bytes);
	p->done_bytes = done_bytes;
	return ++p->asked != p->stop_at;
}

static void pair_open(struct pair *p, uint64_t from_bytes, uint64_t to_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint8_t block[BLOCK];

	p->from = fixture_disk("from", from_bytes);
	p->to = fixture_disk("to", to_bytes);
	for (uint64_t at = 0; at < from_bytes; at += BLOCK) {
		fill_source(block, at);
		ck_assert_int_eq(pwrite(p->from.disk.fd, block, BLOCK, (off_t)at), BLOCK);
	}
	ck_assert_int_eq(fsync(p->from.disk.fd), 0);
	p->c = (struct data_copy){.from_fd = -1, .to_fd = -1, .go_on = go_on, .user = p};
	ASSERT_OK(data_copy_open(p->from.disk.path, DATA_COPY_SOURCE_UNUSED, &p->c.from_fd, &err));
	ASSERT_OK(data_copy_open(p->to.disk.path, DATA_COPY_TARGET, &p->c.to_fd, &err));
}

static void pair_done(struct pair *p)
{
	fd_closep(&p->c.from_fd);
	fd_closep(&p->c.to_fd);
	fixture_disk_done(&p->from);
	fixture_disk_done(&p->to);
}

static bool is_covered(const struct fs_extents *x, uint64_t at)
{
	for (size_t i = 0; i < x->n; i++) {
		if (at >= x->list[i].at_bytes && at - x->list[i].at_bytes < x->list[i].length_bytes)
			return true;
	}
	return false;
}

enum gaps { GAPS_DIRTY, GAPS_ZERO };

static void check_target(const struct pair *p, const struct fs_extents *x, enum gaps gaps)
{
	static uint8_t block[BLOCK];
	static uint8_t wanted[BLOCK];

	for (uint64_t at = 0; at < p->to.size_bytes; at += BLOCK) {
		memset(wanted, gaps == GAPS_ZERO ? 0 : DIRTY, BLOCK);
		if (is_covered(x, at))
			fill_source(wanted, at);
		if (pread(p->to.disk.fd, block, BLOCK, (off_t)at) != BLOCK ||
			memcmp(block, wanted, BLOCK) != 0)
			ck_abort_msg("the block at byte %ju is wrong", (uintmax_t)at);
	}
}

/* Shorter and longer than a piece, alone and beside each other. */
static void add_extents(struct fs_extents *x)
{
	fs_extents_add(x, 0, BLOCK, FS_EXTENTS_MAX);
	fs_extents_add(x, 2 * BLOCK, MIB(2) + 3 * BLOCK, FS_EXTENTS_MAX);
	fs_extents_add(x, MIB(2) + 4 * BLOCK, MIB(2) + 5 * BLOCK, FS_EXTENTS_MAX);
	fs_extents_add(x, MIB(5), SMALL_BYTES - BLOCK, FS_EXTENTS_MAX);
}

START_TEST(extents_are_copied_and_all_else_is_zeroed)
{
	static const uint64_t sizes[] = {SMALL_BYTES, SMALL_BYTES + BLOCK, MIB(80)};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(pair_done) struct pair p = {0};
		CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;

		pair_open(&p, SMALL_BYTES, sizes[i]);
		add_extents(&x);
		ASSERT_OK(data_copy_extents(&p.c, &x, &err));
		check_target(&p, &x, GAPS_DIRTY);
		ck_assert_uint_ge(p.asked, 6);
		p.done_bytes = 0;
		ASSERT_OK(data_copy_zero_gaps(&p.c, &x, p.to.size_bytes, &err));
		check_target(&p, &x, GAPS_ZERO);
	}
}
END_TEST

/* With a second thread. */
START_TEST(much_is_copied_by_two_threads_and_each_piece_once)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;

	pair_open(&p, MIB(96), MIB(160));
	for (uint64_t at = BLOCK; at < MIB(95); at += MIB(3) / 2)
		fs_extents_add(&x, at, at + MIB(1) + 7 * BLOCK, FS_EXTENTS_MAX);
	ASSERT_OK(data_copy_extents(&p.c, &x, &err));
	ck_assert_uint_eq(p.asked, 2 * x.n);
	p.done_bytes = 0;
	ASSERT_OK(data_copy_zero_gaps(&p.c, &x, MIB(160), &err));
	check_target(&p, &x, GAPS_ZERO);
}
END_TEST

START_TEST(two_threads_share_the_limit)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x;

	pair_open(&p, MIB(40), MIB(40));
	fs_extents_whole(MIB(40), &x);
	p.c.bytes_per_s = MIB(80);
	uint64_t begun_ns = clock_ns();
	ASSERT_OK(data_copy_extents(&p.c, &x, &err));
	ck_assert_uint_ge(clock_ns() - begun_ns, 39 * NS_PER_S / 80);
	check_target(&p, &x, GAPS_ZERO);
}
END_TEST

/* As a suspended device is read by those below it. */
START_TEST(a_source_in_parts_is_read_where_they_are)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x;
	uint8_t wanted[BLOCK];
	uint8_t block[BLOCK];

	pair_open(&p, MIB(8), MIB(8));
	const struct data_copy_part parts[] = {{p.c.from_fd, MIB(5), MIB(2) + BLOCK}, {p.c.from_fd, 0, BLOCK},
		{p.c.from_fd, MIB(1), MIB(3)}};
	p.c.parts = parts;
	p.c.n_parts = ARRAY_SIZE(parts);
	fs_extents_whole(MIB(5) + 2 * BLOCK, &x);
	ASSERT_OK(data_copy_extents(&p.c, &x, &err));
	for (uint64_t at = 0; at < x.total_bytes; at += BLOCK) {
		uint64_t from = at < MIB(2) + BLOCK       ? MIB(5) + at
				: at < MIB(2) + 2 * BLOCK ? at - MIB(2) - BLOCK
							  : MIB(1) + at - MIB(2) - 2 * BLOCK;

		fill_source(wanted, from);
		ck_assert_int_eq(pread(p.to.disk.fd, block, BLOCK, (off_t)at), BLOCK);
		ck_assert_mem_eq(block, wanted, BLOCK);
	}
	fs_extents_done(&x);
	fs_extents_whole(MIB(6), &x);
	p.done_bytes = 0;
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_INTERNAL, "the source ends at byte 5251072");
}
END_TEST

START_TEST(a_failure_of_one_thread_ends_both)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x;

	pair_open(&p, MIB(64), MIB(64));
	fs_extents_whole(MIB(64), &x);
	ck_assert_int_eq(truncate(SCRATCH "/from", (off_t)MIB(5)), 0);
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_INTERNAL, "read the source at byte ");
	ck_assert_uint_le(p.asked, 9);
}
END_TEST

START_TEST(without_extents_all_is_zeroed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	struct fs_extents x = FS_EXTENTS_INIT;

	pair_open(&p, SMALL_BYTES, SMALL_BYTES);
	ASSERT_OK(data_copy_extents(&p.c, &x, &err));
	ASSERT_OK(data_copy_zero_gaps(&p.c, &x, SMALL_BYTES, &err));
	check_target(&p, &x, GAPS_ZERO);
}
END_TEST

START_TEST(a_copy_stops_when_it_is_not_to_go_on)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {.stop_at = 4};
	CLEANUP(fs_extents_done) struct fs_extents x;
	CLEANUP(fs_extents_done) struct fs_extents copied;

	pair_open(&p, SMALL_BYTES, MIB(200));
	fs_extents_whole(SMALL_BYTES, &x);
	fs_extents_whole(MIB(3), &copied);
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_ABORTED, "stopped after 3145728 bytes");
	ck_assert_uint_eq(p.done_bytes, MIB(3));
	check_target(&p, &copied, GAPS_DIRTY);
	p.asked = 0;
	p.stop_at = 5;
	p.done_bytes = 0;
	ASSERT_FAILS(data_copy_zero_gaps(&p.c, &x, p.to.size_bytes, &err), ERR_ABORTED, "stopped after");
	/* another piece may be with the other thread */
	ck_assert_uint_ge(p.done_bytes, MIB(48));
	ck_assert_uint_le(p.done_bytes, MIB(64));
}
END_TEST

START_TEST(what_was_written_before_a_failure_is_known)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {.stop_at = 3};
	CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;
	CLEANUP(fs_extents_done) struct fs_extents whole;
	struct fs_extent written = {0};

	pair_open(&p, SMALL_BYTES, SMALL_BYTES);
	p.c.written = &written;
	fs_extents_add(&x, MIB(4), MIB(8), 2);
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_ABORTED, "stopped after 2097152 bytes");
	ck_assert_uint_eq(written.at_bytes, MIB(4));
	ck_assert_uint_eq(written.length_bytes, MIB(2));
	p.stop_at = p.asked = 0;
	p.done_bytes = 0;
	ASSERT_OK(data_copy_zero_gaps(&p.c, &x, SMALL_BYTES, &err));
	ck_assert_uint_eq(written.length_bytes, MIB(2));
	fs_extents_whole(MIB(1), &whole);
	p.done_bytes = 0;
	ASSERT_OK(data_copy_extents(&p.c, &whole, &err));
	ck_assert_uint_eq(written.at_bytes, 0);
	ck_assert_uint_eq(written.length_bytes, MIB(6));
}
END_TEST

START_TEST(a_limit_is_kept_and_a_stop_does_not_wait_for_it)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x;
	uint64_t begun_ns;

	pair_open(&p, SMALL_BYTES, SMALL_BYTES);
	fs_extents_whole(SMALL_BYTES, &x);
	p.c.bytes_per_s = MIB(16);
	begun_ns = clock_ns();
	ASSERT_OK(data_copy_extents(&p.c, &x, &err));
	/* the last piece is not waited for */
	ck_assert_uint_ge(clock_ns() - begun_ns, 7 * NS_PER_S / 16);

	p.asked = 0;
	p.done_bytes = 0;
	p.stop_at = 3;
	p.c.bytes_per_s = 1000;
	begun_ns = clock_ns();
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_ABORTED, "stopped");
	ck_assert_uint_lt(clock_ns() - begun_ns, 60 * NS_PER_S);
	ck_assert_uint_eq(p.done_bytes, MIB(1));
}
END_TEST

/* A loop device fails to read what its file lacks. */
START_TEST(what_cannot_be_read_is_named_with_its_place)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x;

	pair_open(&p, SMALL_BYTES, SMALL_BYTES);
	fs_extents_whole(SMALL_BYTES, &x);
	ck_assert_int_eq(truncate(SCRATCH "/from", (off_t)(MIB(5) + 3 * BLOCK)), 0);
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_INTERNAL,
		"read the source at byte 5255168: Input/output error");
}
END_TEST

START_TEST(a_source_or_target_that_is_too_small_is_an_error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(pair_done) struct pair p = {0};
	CLEANUP(fs_extents_done) struct fs_extents x;

	pair_open(&p, SMALL_BYTES, MIB(4));
	fs_extents_whole(SMALL_BYTES, &x);
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_INTERNAL, "write the copy at byte 4194304");
	fs_extents_done(&x);
	fs_extents_add(&x, SMALL_BYTES - BLOCK, SMALL_BYTES + BLOCK, FS_EXTENTS_MAX);
	p.done_bytes = 0;
	ASSERT_FAILS(data_copy_extents(&p.c, &x, &err), ERR_INTERNAL, "the source ends at byte 8388608");
}
END_TEST

static void *close_soon(void *user)
{
	usleep(100000);
	fd_closep(user);
	return NULL;
}

START_TEST(a_mounted_device_is_a_source_only)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");
	CLEANUP(fd_closep) int fd = -1;
	int other_fd = -1;
	pthread_t thread;

	ASSERT_OK(data_copy_open(d.disk.path, DATA_COPY_SOURCE, &fd, &err));
	ASSERT_FAILS(data_copy_open(d.disk.path, DATA_COPY_SOURCE_UNUSED, &other_fd, &err), ERR_PRECONDITION,
		"mounted");
	ASSERT_FAILS(
		data_copy_open(d.disk.path, DATA_COPY_TARGET, &other_fd, &err), ERR_PRECONDITION, "mounted");
	ASSERT_FAILS(data_copy_open("/dev/absent", DATA_COPY_TARGET, &other_fd, &err), ERR_NOT_FOUND,
		"/dev/absent");
	ASSERT_FAILS(
		data_copy_open("/dev/zero", DATA_COPY_SOURCE, &other_fd, &err), ERR_INTERNAL, "/dev/zero");
	fixture_unmount(&d);
	/* that may have been held a moment ago */
	CLEANUP(fd_closep) int held_fd = -1;
	ASSERT_OK(data_copy_open(d.disk.path, DATA_COPY_TARGET, &held_fd, &err));
	ck_assert_int_eq(pthread_create(&thread, NULL, close_soon, &held_fd), 0);
	ASSERT_OK(data_copy_open(d.disk.path, DATA_COPY_TARGET, &other_fd, &err));
	pthread_join(thread, NULL);
	ck_assert_int_eq(mount(d.disk.path, SCRATCH "/md", "ext4", 0, NULL), -1);
	fd_closep(&other_fd);
}
END_TEST

SCRATCH_MAIN("os/copy/data_copy", extents_are_copied_and_all_else_is_zeroed,
	much_is_copied_by_two_threads_and_each_piece_once, two_threads_share_the_limit,
	a_source_in_parts_is_read_where_they_are, a_failure_of_one_thread_ends_both,
	without_extents_all_is_zeroed, what_was_written_before_a_failure_is_known,
	a_copy_stops_when_it_is_not_to_go_on, a_limit_is_kept_and_a_stop_does_not_wait_for_it,
	what_cannot_be_read_is_named_with_its_place, a_source_or_target_that_is_too_small_is_an_error,
	a_mounted_device_is_a_source_only)

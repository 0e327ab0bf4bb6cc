/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/zero_range.h"

#include <sys/stat.h>

#include "unit/os/scratch.h"

#define SIZE_BYTES MIB(64)
#define PATTERN    'x'

static void fill(const struct scratch_disk *d, uint64_t at, uint64_t n)
{
	char block[4096];

	memset(block, PATTERN, sizeof(block));
	for (uint64_t end = at + n; at < end; at += sizeof(block))
		ck_assert_int_eq(pwrite(d->fd, block, sizeof(block), (off_t)at), sizeof(block));
}

/* Every byte of a range is @value. */
static void assert_bytes(const struct scratch_disk *d, uint64_t at, uint64_t n, char value)
{
	char block[4096];
	char expected[4096];

	memset(expected, value, sizeof(expected));
	for (uint64_t end = at + n; at < end; at += sizeof(block)) {
		ck_assert_int_eq(pread(d->fd, block, sizeof(block), (off_t)at), sizeof(block));
		ck_assert_msg(memcmp(block, expected, sizeof(block)) == 0, "block at %ju", (uintmax_t)at);
	}
}

static uint64_t allocated_bytes(const struct scratch_disk *d)
{
	struct stat st;

	ck_assert_int_eq(fsync(d->fd), 0);
	ck_assert_int_eq(stat(SCRATCH "/disk", &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

START_TEST(head_erases_both_ends_and_nothing_between)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	fill(&d, 0, 2 * ZERO_ENDS_BYTES);
	fill(&d, SIZE_BYTES - 2 * ZERO_ENDS_BYTES, 2 * ZERO_ENDS_BYTES);
	ASSERT_OK(zero_ends(d.fd, SIZE_BYTES, &err));
	assert_bytes(&d, 0, ZERO_ENDS_BYTES, 0);
	assert_bytes(&d, ZERO_ENDS_BYTES, ZERO_ENDS_BYTES, PATTERN);
	assert_bytes(&d, SIZE_BYTES - 2 * ZERO_ENDS_BYTES, ZERO_ENDS_BYTES, PATTERN);
	assert_bytes(&d, SIZE_BYTES - ZERO_ENDS_BYTES, ZERO_ENDS_BYTES, 0);
}
END_TEST

START_TEST(head_of_a_small_range_is_all_of_it)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	fill(&d, 0, 3 * ZERO_ENDS_BYTES);
	ASSERT_OK(zero_ends(d.fd, 2 * ZERO_ENDS_BYTES, &err));
	assert_bytes(&d, 0, 2 * ZERO_ENDS_BYTES, 0);
	assert_bytes(&d, 2 * ZERO_ENDS_BYTES, ZERO_ENDS_BYTES, PATTERN);
}
END_TEST

START_TEST(all_leaves_no_byte_and_gives_the_space_of_a_sparse_file_back)
{
	CLEANUP(scratch_disk_done) struct scratch_disk d = scratch_disk("disk", SIZE_BYTES);
	struct error *err = NULL;

	fill(&d, 0, SIZE_BYTES);
	ck_assert_uint_ge(allocated_bytes(&d), SIZE_BYTES);
	ASSERT_OK(zero_range(d.fd, 0, SIZE_BYTES, &err));
	assert_bytes(&d, 0, SIZE_BYTES, 0);
	ck_assert_uint_lt(allocated_bytes(&d), SIZE_BYTES / 16);
}
END_TEST

START_TEST(descriptor_that_cannot_be_written_is_an_error)
{
	struct error *err = NULL;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ASSERT_FAILS(zero_range(fd, 0, SIZE_BYTES, &err), ERR_INTERNAL, "zero");
	ASSERT_FAILS(zero_ends(fd, SIZE_BYTES, &err), ERR_INTERNAL, "zero");
	close(fd);
}
END_TEST

SCRATCH_MAIN("erase", head_erases_both_ends_and_nothing_between, head_of_a_small_range_is_all_of_it,
	all_leaves_no_byte_and_gives_the_space_of_a_sparse_file_back,
	descriptor_that_cannot_be_written_is_an_error)

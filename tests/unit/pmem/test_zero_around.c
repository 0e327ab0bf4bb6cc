/* SPDX-License-Identifier: Apache-2.0 */
/* Zeroing around blocks that fail. A file stands for the device: writes of zeros fail where a range is bad,
 * and so do reads, unless a test says otherwise. */
#include "pmem/zero_range.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit/unit.h"

#define DEVICE_BYTES (256U << 10)
#define BLOCK_BYTES  512
#define BAD_AT       (40 * BLOCK_BYTES)
#define BAD_BYTES    (3ULL * BLOCK_BYTES)

static int device = -1;
static bool is_readable;

static bool is_bad(uint64_t at, uint64_t length)
{
	return at < BAD_AT + BAD_BYTES && at + length > BAD_AT;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	(void)fd, (void)mode, (void)offset, (void)length;
	errno = EOPNOTSUPP;
	return -1;
}

ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
	if (is_readable || !is_bad((uint64_t)at, n))
		return __real_pread(fd, to, n, at);
	errno = EIO;
	return -1;
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	static const char zeros[DEVICE_BYTES];
	va_list args;

	va_start(args, request);
	void *argument = va_arg(args, void *);
	va_end(args);
	if (request == BLKSSZGET) {
		*(int *)argument = BLOCK_BYTES;
		return 0;
	}
	ck_assert_uint_eq(request, BLKZEROOUT);
	const uint64_t *range = argument;
	if (!is_bad(range[0], range[1]))
		return pwrite(fd, zeros, range[1], (off_t)range[0]) == (ssize_t)range[1] ? 0 : -1;
	errno = EIO;
	return -1;
}

static void set_up(void)
{
	char path[] = "/tmp/pmem-zero-XXXXXX";
	char old[DEVICE_BYTES];

	device = mkstemp(path);
	ck_assert_int_ge(device, 0);
	ck_assert_int_eq(unlink(path), 0);
	memset(old, 0xab, sizeof(old));
	ck_assert_int_eq(pwrite(device, old, sizeof(old), 0), sizeof(old));
	is_readable = false;
}

static void tear_down(void)
{
	fd_closep(&device);
}

/* The content behind @at, which is zero up to there. */
static void assert_old_from(uint64_t at, uint64_t length)
{
	uint8_t now[DEVICE_BYTES];

	ck_assert_int_eq(__real_pread(device, now, sizeof(now), 0), sizeof(now));
	for (uint64_t i = 0; i < sizeof(now); i++)
		ck_assert_uint_eq(now[i], i >= at && i < at + length ? 0xab : 0);
}

START_TEST(all_but_bad_blocks_is_zeroed)
{
	uint64_t may_skip = BAD_BYTES + BLOCK_BYTES;
	struct error *err = NULL;

	ASSERT_OK(zero_around(device, 0, DEVICE_BYTES, &may_skip, &err));
	ck_assert_uint_eq(may_skip, BLOCK_BYTES);
	assert_old_from(BAD_AT, BAD_BYTES);
}
END_TEST

START_TEST(no_more_is_left_out_than_the_kernel_lists)
{
	uint64_t may_skip = BAD_BYTES - BLOCK_BYTES;
	struct error *err = NULL;

	ASSERT_FAILS(zero_around(device, 0, DEVICE_BYTES, &may_skip, &err), ERR_EXHAUSTED, "at byte 21504");
	may_skip = 0;
	ASSERT_FAILS(zero_around(device, 0, DEVICE_BYTES, &may_skip, &err), ERR_EXHAUSTED, "at byte 20480");
}
END_TEST

START_TEST(content_that_can_be_read_is_never_left)
{
	uint64_t may_skip = BAD_BYTES;
	struct error *err = NULL;

	is_readable = true;
	ASSERT_FAILS(zero_around(device, 0, DEVICE_BYTES, &may_skip, &err), ERR_EXHAUSTED, "at byte 20480");
	ck_assert_uint_eq(may_skip, BAD_BYTES);
}
END_TEST

/* New volumes are zeroed so. */
START_TEST(first_block_that_fails_is_named)
{
	struct error *err = NULL;

	ASSERT_FAILS(zero_range(device, 0, DEVICE_BYTES, &err), ERR_EXHAUSTED, "at byte 20480 of the device");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmem/zero_around");
	TCase *tcase = tcase_create("pmem/zero_around");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, all_but_bad_blocks_is_zeroed);
	tcase_add_test(tcase, no_more_is_left_out_than_the_kernel_lists);
	tcase_add_test(tcase, content_that_can_be_read_is_never_left);
	tcase_add_test(tcase, first_block_that_fails_is_named);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Loop devices, block devices and file systems, with the n-th system call below them failing. */
#include <linux/fs.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "os/loopdev.h"
#include "unit/inject/held.h"
#include "unit/inject/sweep.h"
#include "unit/os/scratch.h"

#define TIMEOUT_MS 60000

static int file_fd = -1;
static int result_fd = -1;
static char *result;
static char image[32]; /* a name of our own, by which to find what failed tests leave */

static void make_image(void)
{
	file_fd = scratch_file(image, MIB(16));
}

static void free_result(void)
{
	free(TAKE_PTR(result));
}

static size_t count_loops(void)
{
	CLEANUP(free_charp) char *held = held_now(SCRATCH);
	size_t n = 0;

	for (const char *at = held; (at = strstr(at, "loop device over")); at++)
		n++;
	return n;
}

static int attach(struct error **err)
{
	return loop_attach(file_fd, &result, err);
}

static int find(struct error **err)
{
	return loop_find(file_fd, &result, err);
}

static int detach(struct error **err)
{
	return loop_detach(file_fd, err);
}

static const char *not_one_loop(void)
{
	RIGHT_IF(result && str_starts(result, "/dev/loop"));
	RIGHT_IF(count_loops() == 1);
	return NULL;
}

static const char *not_detached(void)
{
	RIGHT_IF(count_loops() == 0);
	return NULL;
}

static const char *not_none(void)
{
	RIGHT_IF(!result);
	return NULL;
}

static void must_attach(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(attach(&err));
	free_result();
}

static void must_detach(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	free_result();
	ASSERT_OK(detach(&err));
}

START_TEST(a_file_has_one_loop_device_or_none)
{
	const struct sweep first = {.name = "loop_attach",
		.folder = SCRATCH,
		.min_points = 8,
		.call = attach,
		.wrong_at_end = not_one_loop,
		.undo = must_detach};
	const struct sweep again = {.name = "loop_attach, attached",
		.folder = SCRATCH,
		.min_points = 7,
		.prepare = must_attach,
		.call = attach,
		.wrong_at_end = not_one_loop,
		.undo = must_detach};

	make_image();
	sweep_run(&first);
	sweep_run(&again);
}
END_TEST

START_TEST(a_loop_device_that_cannot_be_looked_for_is_not_taken_for_none)
{
	const struct sweep there = {.name = "loop_find",
		.folder = SCRATCH,
		.min_points = 7,
		.prepare = must_attach,
		.call = find,
		.wrong_at_end = not_one_loop,
		.undo = must_detach};
	const struct sweep none = {.name = "loop_find, none",
		.folder = SCRATCH,
		.min_points = 5,
		.call = find,
		.wrong_at_end = not_none};

	make_image();
	sweep_run(&there);
	sweep_run(&none);
}
END_TEST

START_TEST(a_loop_device_is_detached_in_the_end)
{
	const struct sweep s = {.name = "loop_detach",
		.folder = SCRATCH,
		.min_points = 14, /* more when other devices are listed before it */
		.prepare = must_attach,
		.call = detach,
		.wrong_at_end = not_detached};

	make_image();
	sweep_run(&s);
}
END_TEST

static struct scratch_disk disk = {.fd = -1};
static struct blockdev_info info;

static int stat_disk(struct error **err)
{
	return blockdev_stat(disk.path, &info, err);
}

static int wait_disk(struct error **err)
{
	return blockdev_wait(disk.path, 1000, err);
}

static int open_disk(struct error **err)
{
	return blockdev_open_exclusive(disk.path, &result_fd, err);
}

static int zero_disk(struct error **err)
{
	return blockdev_zero(disk.fd, 0, MIB(1), err);
}

static int wait_unused(struct error **err)
{
	return dm_wait_unused(disk.path, err);
}

static const char *wrong_info(void)
{
	RIGHT_IF(info.size_bytes == MIB(16));
	return NULL;
}

static void forget_info(void)
{
	info = (struct blockdev_info){0};
}

static const char *not_open(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int second = -1;

	RIGHT_IF(blockdev_open_exclusive(disk.path, &second, &err) < 0);
	RIGHT_IF(err->code == ERR_PRECONDITION);
	return NULL;
}

static void close_result(void)
{
	fd_closep(&result_fd);
	result_fd = -1;
}

static void dirty_disk(void)
{
	ck_assert_int_eq(pwrite(disk.fd, "dirt", 4, 4096), 4);
}

static const char *not_zero(void)
{
	char found[4];

	RIGHT_IF(pread(disk.fd, found, 4, 4096) == 4);
	RIGHT_IF(memcmp(found, "\0\0\0\0", 4) == 0);
	return NULL;
}

START_TEST(facts_of_a_block_device_are_not_guessed)
{
	const struct sweep facts = {.name = "blockdev_stat",
		.min_points = 6,
		.prepare = forget_info,
		.call = stat_disk,
		.wrong_at_end = wrong_info};
	const struct sweep wait = {.name = "blockdev_wait", .min_points = 2, .call = wait_disk};
	const struct sweep unused = {.name = "dm_wait_unused", .min_points = 2, .call = wait_unused};

	disk = scratch_disk("disk", MIB(16));
	sweep_run(&facts);
	sweep_run(&wait);
	sweep_run(&unused);
	scratch_disk_done(&disk);
}
END_TEST

START_TEST(a_block_device_is_opened_and_zeroed_or_not)
{
	const struct sweep open = {.name = "blockdev_open_exclusive",
		.min_points = 2,
		.call = open_disk,
		.wrong_at_end = not_open,
		.undo = close_result};
	const struct sweep zero = {.name = "blockdev_zero",
		.min_points = 2,
		.prepare = dirty_disk,
		.call = zero_disk,
		.wrong_at_end = not_zero};

	disk = scratch_disk("disk", MIB(16));
	sweep_run(&open);
	sweep_run(&zero);
	scratch_disk_done(&disk);
}
END_TEST

static int probe(struct error **err)
{
	return fs_probe(disk.path, &result, err);
}

static int make_fs(struct error **err)
{
	return fs_make("ext4", disk.path, NULL, TIMEOUT_MS, err);
}

static const char *not_ext4(void)
{
	RIGHT_IF(str_eq(result, "ext4"));
	return NULL;
}

static const char *not_made(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	RIGHT_IF(probe(&err) == 0);
	return not_ext4();
}

static void wipe(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	free_result();
	ASSERT_OK(zero_disk(&err));
}

START_TEST(a_file_system_is_made_and_seen)
{
	const struct sweep make = {
		.name = "fs_make", .min_points = 10, .call = make_fs, .wrong_at_end = not_made, .undo = wipe};
	const struct sweep see = {.name = "fs_probe",
		.min_points = 4,
		.call = probe,
		.wrong_at_end = not_ext4,
		.undo = free_result};
	CLEANUP(error_freep) struct error *err = NULL;

	disk = scratch_disk("disk", MIB(16));
	sweep_run(&make);
	ASSERT_OK(make_fs(&err));
	sweep_run(&see);
	scratch_disk_done(&disk);
}
END_TEST

/* The sweep cannot make reads of libblkid fail, so this test uses a loop device over a file that became
 * shorter: it cannot be read behind the end of the file. */
START_TEST(a_device_that_cannot_be_read_is_not_taken_for_empty)
{
	CLEANUP(error_freep) struct error *err = NULL;

	disk = scratch_disk("disk", MIB(16));
	ASSERT_OK(make_fs(&err));
	for (uint64_t size = 0; size <= KIB(256); size += KIB(4)) {
		ck_assert_int_eq(truncate(SCRATCH "/disk", (off_t)size), 0);
		ck_assert_int_eq(ioctl(disk.fd, BLKFLSBUF, 0), 0);
		int rc = probe(&err);
		ck_assert_msg(rc < 0 || str_eq(result, "ext4"), "%ju bytes readable: \"%s\"", (uintmax_t)size,
			result);
		free_result();
		error_clear(&err);
	}
	scratch_disk_done(&disk);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_file_has_one_loop_device_or_none,
		a_loop_device_that_cannot_be_looked_for_is_not_taken_for_none,
		a_loop_device_is_detached_in_the_end,
		facts_of_a_block_device_are_not_guessed,
		a_block_device_is_opened_and_zeroed_or_not,
		a_file_system_is_made_and_seen,
		a_device_that_cannot_be_read_is_not_taken_for_empty,
	};

	snprintf(image, sizeof(image), "inject-%d.image", (int)getpid());
	int status = scratch_run("inject_disk", tests, ARRAY_SIZE(tests));
	held_detach(image);
	return status;
}

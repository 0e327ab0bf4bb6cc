/* SPDX-License-Identifier: Apache-2.0 */
#include "os/blockdev.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/fs.h"
#include "os/spawn.h"
#include "unit/os/scratch.h"

START_TEST(facts_of_a_disk_are_told)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(5) + 512);
	struct blockdev_info info = {0};
	struct stat st;

	ck_assert_int_eq(stat(disk.path, &st), 0);
	ASSERT_OK(blockdev_stat(disk.path, &info, &err));
	ck_assert_uint_eq(info.size_bytes, MIB(5) + 512);
	ck_assert_uint_eq(info.dev, st.st_rdev);
	ck_assert(!info.has_dax);
	ck_assert_int_eq(symlink(disk.path, SCRATCH "/link"), 0);
	ASSERT_OK(blockdev_stat(SCRATCH "/link", &info, &err));
}
END_TEST

START_TEST(what_is_no_block_device_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct blockdev_info info;
	int fd = -1;

	close(scratch_file("plain", KIB(4)));
	ASSERT_FAILS(blockdev_stat(SCRATCH "/plain", &info, &err), ERR_PRECONDITION, SCRATCH "/plain");
	ASSERT_FAILS(blockdev_stat("/dev/null", &info, &err), ERR_PRECONDITION, "/dev/null");
	ASSERT_FAILS(blockdev_stat(SCRATCH "/none", &info, &err), ERR_NOT_FOUND, SCRATCH "/none");
	ASSERT_FAILS(blockdev_open_exclusive(SCRATCH "/plain", &fd, &err), ERR_INTERNAL, SCRATCH "/plain");
	ASSERT_FAILS(blockdev_open_exclusive(SCRATCH "/none", &fd, &err), ERR_NOT_FOUND, SCRATCH "/none");
}
END_TEST

START_TEST(waiting_ends_with_the_device_or_the_time)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(1));
	const char *const argv[] = {"ln", "-s", disk.path, SCRATCH "/later", NULL};
	struct child linker = CHILD_INIT;

	ASSERT_OK(blockdev_wait(disk.path, 0, &err));
	ASSERT_FAILS(blockdev_wait(SCRATCH "/later", 0, &err), ERR_DEADLINE, SCRATCH "/later");
	ASSERT_FAILS(blockdev_wait("/dev/null", 20, &err), ERR_DEADLINE, "/dev/null");

	ASSERT_OK(child_start(argv, NULL, &linker, &err));
	ASSERT_OK(blockdev_wait(SCRATCH "/later", 60000, &err));
	child_stop(&linker, 60000);
}
END_TEST

START_TEST(an_exclusive_open_and_a_mount_exclude_each_other)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(16));
	CLEANUP(fd_closep) int fd = -1;
	int second = -1;

	ASSERT_OK(fs_make("ext4", disk.path, NULL, 60000, &err));
	ck_assert_int_eq(mkdir(SCRATCH "/m", 0700), 0);
	ck_assert_int_eq(mount(disk.path, SCRATCH "/m", "ext4", 0, NULL), 0);
	ASSERT_FAILS(blockdev_open_exclusive(disk.path, &fd, &err), ERR_PRECONDITION, disk.path);
	ASSERT_FAILS(blockdev_refuse_held(disk.path, 0, &err), ERR_UNAVAILABLE, disk.path);
	ck_assert_int_eq(umount(SCRATCH "/m"), 0);
	ASSERT_OK(blockdev_refuse_held(disk.path, 0, &err));
	ASSERT_OK(blockdev_open_exclusive(disk.path, &fd, &err));
	ASSERT_FAILS(blockdev_open_exclusive(disk.path, &second, &err), ERR_PRECONDITION, disk.path);
	ASSERT_FAILS(blockdev_refuse_held(disk.path, 0, &err), ERR_UNAVAILABLE, disk.path);
	ASSERT_FAILS(blockdev_refuse_held(SCRATCH "/none", 0, &err), ERR_INTERNAL, SCRATCH "/none");
	ck_assert_int_lt(mount(disk.path, SCRATCH "/m", "ext4", 0, NULL), 0);
}
END_TEST

static int byte_at(int fd, uint64_t offset)
{
	unsigned char byte = 1;

	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)offset), 1);
	return byte;
}

START_TEST(zeroing_covers_its_range_and_nothing_else)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(8));
	CLEANUP(fd_closep) int backing = open(SCRATCH "/disk", O_RDONLY | O_CLOEXEC);
	static unsigned char ones[8 << 20];

	memset(ones, 0xff, sizeof(ones));
	ck_assert_int_eq(pwrite(disk.fd, ones, sizeof(ones), 0), sizeof(ones));
	ASSERT_OK(blockdev_zero(disk.fd, KIB(4), MIB(4), &err));

	/* Both what a reader of the device sees and what is on the medium. */
	const int views[] = {disk.fd, backing};
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		ck_assert_int_eq(byte_at(views[i], KIB(4) - 1), 0xff);
		for (uint64_t at = KIB(4); at < KIB(4) + MIB(4); at += 511)
			ck_assert_int_eq(byte_at(views[i], at), 0);
		ck_assert_int_eq(byte_at(views[i], KIB(4) + MIB(4) - 1), 0);
		ck_assert_int_eq(byte_at(views[i], KIB(4) + MIB(4)), 0xff);
	}
	ASSERT_OK(blockdev_zero(disk.fd, MIB(8), 0, &err));
	ASSERT_OK(blockdev_zero(disk.fd, 0, MIB(8), &err));
	ck_assert_int_eq(byte_at(disk.fd, MIB(8) - 1), 0);
}
END_TEST

START_TEST(zeroing_beyond_the_end_or_without_permission_fails)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(1));
	CLEANUP(fd_closep) int reader = open(disk.path, O_RDONLY | O_CLOEXEC);

	ASSERT_FAILS(blockdev_zero(disk.fd, KIB(1020), KIB(8), &err), ERR_INTERNAL, "zero");
	ASSERT_FAILS(blockdev_zero(reader, 0, KIB(8), &err), ERR_INTERNAL, "zero");
}
END_TEST

/* The test itself has it open. */
START_TEST(process_that_has_a_device_open_is_found)
{
	struct scratch_disk disk = scratch_disk("disk", MIB(16));
	const char *const argv[] = {
		"sh", "-c", "exec 9<>\"$1\" && echo ready && exec cat", "sh", disk.path, NULL};
	CLEANUP(fd_closep) int own_fd = open(disk.path, O_RDONLY | O_CLOEXEC);
	struct child child = CHILD_INIT;
	struct blockdev_info info;
	struct error *err = NULL;
	char byte;
	pid_t pid;

	ck_assert_int_ge(own_fd, 0);
	ASSERT_OK(blockdev_stat(disk.path, &info, &err));
	ASSERT_OK(blockdev_find_user(info.dev, &pid, &err));
	ck_assert_int_eq(pid, 0);
	ASSERT_OK(child_start(argv, NULL, &child, &err));
	ck_assert_int_eq(poll(&(struct pollfd){.fd = child.stdout_fd, .events = POLLIN}, 1, 10000), 1);
	ck_assert_int_eq(read(child.stdout_fd, &byte, 1), 1);
	ASSERT_OK(blockdev_find_user(info.dev, &pid, &err));
	ck_assert_int_eq(pid, child.pid);
	child_stop(&child, 1000);
	ASSERT_OK(blockdev_find_user(info.dev, &pid, &err));
	ck_assert_int_eq(pid, 0);
}
END_TEST

/* Devices that share data need device-mapper, and are tested by tests/machine/vm/hands.sh. */
START_TEST(what_lies_on_no_mapped_device_is_not_shared)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(1));
	struct blockdev_info info;

	ASSERT_OK(blockdev_stat(disk.path, &info, &err));
	ASSERT_OK(dm_refuse_shared(info.dev, &err));
	ASSERT_OK(dm_refuse_shared(makedev(4095, 77), &err));
}
END_TEST

START_TEST(only_mapped_devices_are_waited_for)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(1));

	ASSERT_OK(dm_wait_unused(disk.path, &err));
	ASSERT_OK(dm_wait_unused(SCRATCH "/none", &err));
	ck_assert_int_eq(mknod(SCRATCH "/node", S_IFBLK | 0600, makedev(4095, 77)), 0);
	ASSERT_FAILS(dm_wait_unused(SCRATCH "/node", &err), ERR_INTERNAL, "4095:77");
}
END_TEST

SCRATCH_MAIN("os/blockdev", process_that_has_a_device_open_is_found, facts_of_a_disk_are_told,
	what_is_no_block_device_is_refused, waiting_ends_with_the_device_or_the_time,
	an_exclusive_open_and_a_mount_exclude_each_other, zeroing_covers_its_range_and_nothing_else,
	zeroing_beyond_the_end_or_without_permission_fails, what_lies_on_no_mapped_device_is_not_shared,
	only_mapped_devices_are_waited_for)

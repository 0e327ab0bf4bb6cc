/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_uuid.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/copy/fs_detached.h"
#include "os/fs.h"
#include "os/spawn.h"
#include "unit/os/copy/fixture.h"
#include "unit/xfs_log.h"

#define UUID  "2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5b"
#define OTHER "00000000-0000-4000-8000-000000000001"

static struct fixture_disk make_unmounted(const char *fstype)
{
	struct fixture_disk d = fixture_make(fstype, "from");

	fixture_write(d.dir_fd, "file", 1, 1000);
	fixture_unmount(&d);
	return d;
}

static void check_uuid(const struct fixture_disk *d, const char *wanted)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_super super = {0};

	ASSERT_OK(fs_read_super(d->fstype, d->disk.path, &super, &err));
	ck_assert_str_eq(super.uuid, wanted);
}

START_TEST(a_uuid_is_changed_as_often_as_wanted)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted(fixture_types[i]);

		ASSERT_OK(fs_set_uuid(d.fstype, d.disk.path, UUID, TIMEOUT_MS, &err));
		check_uuid(&d, UUID);
		ASSERT_OK(fs_set_uuid(d.fstype, d.disk.path, UUID, TIMEOUT_MS, &err));
		check_uuid(&d, UUID);
		fixture_check_clean(&d);
		fixture_mount(&d, "again", NULL);
		ck_assert_int_eq(faccessat(d.dir_fd, "file", R_OK, 0), 0);
		fixture_unmount(&d);
		ASSERT_OK(fs_set_uuid(d.fstype, d.disk.path, OTHER, TIMEOUT_MS, &err));
		check_uuid(&d, OTHER);
		fixture_check_clean(&d);
	}
}
END_TEST

/* In this mount namespace. */
static void replace_program(const char *path, const char *by)
{
	ck_assert_int_eq(mount(by, path, NULL, MS_BIND, NULL), 0);
}

static void copy_disk(const struct fixture_disk *from, const struct fixture_disk *to)
{
	CLEANUP(free_charp) char *block = x_malloc(MIB(1));

	for (uint64_t at = 0; at < from->size_bytes; at += MIB(1)) {
		ck_assert_int_eq(pread(from->disk.fd, block, MIB(1), (off_t)at), MIB(1));
		ck_assert_int_eq(pwrite(to->disk.fd, block, MIB(1), (off_t)at), MIB(1));
	}
	ck_assert_int_eq(fsync(to->disk.fd), 0);
}

static bool has_feature(const struct fixture_disk *d, const char *feature)
{
	CLEANUP(free_charp) char *command = x_asprintf("dumpe2fs -h %s 2>&1", d->disk.path);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1U << 20);
	CLEANUP(error_freep) struct error *err = NULL;
	const char *const argv[] = {"sh", "-c", command, NULL};
	int status;

	ASSERT_OK(spawn_run(argv, NULL, &out, NULL, TIMEOUT_MS, &status, &err));
	return strstr(buf_str(&out), feature) != NULL;
}

/* Without its check, which would take several times as long. */
START_TEST(only_the_superblocks_of_a_clean_ext4_are_changed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("ext4");

	replace_program("/usr/sbin/e2fsck", "/usr/bin/false");
	ASSERT_OK(fs_set_uuid("ext4", d.disk.path, UUID, TIMEOUT_MS, &err));
	check_uuid(&d, UUID);
	ck_assert(has_feature(&d, "metadata_csum_seed"));
	ck_assert_int_eq(umount("/usr/sbin/e2fsck"), 0);
	fixture_check_clean(&d);
	fixture_mount(&d, "again", NULL);
	fixture_write(d.dir_fd, "more", 2, MIB(1));
	fixture_unmount(&d);
	fixture_check_clean(&d);
}
END_TEST

/* The file is cleaned up, and not only left to the first mount. */
START_TEST(an_ext4_with_a_deleted_file_that_was_open_is_checked)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "from");
	CLEANUP(fixture_disk_done) struct fixture_disk copy = fixture_disk("copy", d.size_bytes);

	fixture_write(d.dir_fd, "file", 1, MIB(1));
	CLEANUP(fd_closep) int fd = openat(d.dir_fd, "file", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlinkat(d.dir_fd, "file", 0), 0);
	ck_assert_int_eq(ioctl(d.dir_fd, FIFREEZE, 0), 0);
	copy_disk(&d, &copy);
	ck_assert_int_eq(ioctl(d.dir_fd, FITHAW, 0), 0);
	copy.fstype = "ext4";
	ASSERT_OK(fs_set_uuid("ext4", copy.disk.path, UUID, TIMEOUT_MS, &err));
	check_uuid(&copy, UUID);
	ck_assert(!has_feature(&copy, "metadata_csum_seed"));
	fixture_check_clean(&copy);
}
END_TEST

START_TEST(what_is_in_use_is_left_alone)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(fixture_types[i], "from");
		struct fs_super before = {0};

		ASSERT_OK(fs_read_super(d.fstype, d.disk.path, &before, &err));
		ASSERT_FAILS(fs_set_uuid(d.fstype, d.disk.path, UUID, TIMEOUT_MS, &err), ERR_UNAVAILABLE,
			d.disk.path);
		fixture_unmount(&d);
		check_uuid(&d, before.uuid);
		fixture_check_clean(&d);
	}
}
END_TEST

/* An xfs_db that was ended half-way has written the new UUID to the log, and not to the first superblock. */
START_TEST(a_change_that_was_ended_is_repeated)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("xfs");
	uint8_t super[512];

	ck_assert_int_eq(pread(d.disk.fd, super, sizeof(super), 0), sizeof(super));
	ASSERT_OK(fs_set_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err));
	ck_assert_int_eq(pwrite(d.disk.fd, super, sizeof(super), 0), sizeof(super));
	ck_assert_int_eq(fsync(d.disk.fd), 0);
	ASSERT_OK(fs_set_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err));
	check_uuid(&d, UUID);
	fixture_check_clean(&d);
}
END_TEST

/* A power cut has kept the new UUID in the superblock, and the old one in the log. */
START_TEST(a_log_with_the_old_uuid_is_written_again)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("xfs");
	const struct fs_extent log = xfs_log_of(d.disk.fd);
	CLEANUP(free_charp) char *old = x_malloc(log.length_bytes);
	int dir_fd;

	ck_assert_int_eq(pread(d.disk.fd, old, log.length_bytes, (off_t)log.at_bytes), log.length_bytes);
	ASSERT_OK(fs_set_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err));
	ASSERT_OK(fs_finish_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err));
	ck_assert_int_eq(pwrite(d.disk.fd, old, log.length_bytes, (off_t)log.at_bytes), log.length_bytes);
	ck_assert_int_eq(fsync(d.disk.fd), 0);
	ASSERT_FAILS(fs_open_detached("xfs", d.disk.path, /* readonly= */ true, &dir_fd, &err), ERR_INTERNAL,
		d.disk.path);
	ASSERT_OK(fs_finish_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err));
	check_uuid(&d, UUID);
	fixture_check_clean(&d);
	ASSERT_OK(fs_open_detached("xfs", d.disk.path, /* readonly= */ true, &dir_fd, &err));
	ASSERT_OK(fs_close_detached(dir_fd, d.disk.path, &err));
}
END_TEST

/* The kernel does not mount it for another reason, of which xfs_db knows nothing. */
START_TEST(a_damaged_xfs_is_no_copy)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("xfs");
	static const uint8_t garbage[4096] = {0xff, 0xff, 0xff, 0xff};

	/* blocks behind the headers of the first allocation group, with the root inode */
	for (unsigned i = 16; i < 2048; i++)
		ck_assert_int_eq(pwrite(d.disk.fd, garbage, sizeof(garbage), i * 4096), sizeof(garbage));
	ck_assert_int_eq(fsync(d.disk.fd), 0);
	ASSERT_FAILS(fs_set_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_INTERNAL, "mount ");
}
END_TEST

START_TEST(malformed_requests_are_refused)
{
	static const char *const malformed[] = {"", "random", "2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5",
		"2F9B3C1E-0D4A-4B6E-9A53-7C1D2E3F4A5B", "2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5b0",
		"2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5;"};
	CLEANUP(error_freep) struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
		ASSERT_FAILS(fs_set_uuid("xfs", "/dev/absent", malformed[i], TIMEOUT_MS, &err),
			ERR_INVALID_ARGUMENT, "is not a UUID");
	ASSERT_FAILS(
		fs_set_uuid("btrfs", "/dev/absent", UUID, TIMEOUT_MS, &err), ERR_INVALID_ARGUMENT, "btrfs");
}
END_TEST

static void make_program(const char *path, const char *command)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	ck_assert_int_gt(dprintf(fd, "#!/bin/sh\n%s\n", command), 0);
}

START_TEST(a_program_that_changes_nothing_is_noticed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("xfs");

	replace_program("/usr/sbin/xfs_db", "/usr/bin/true");
	ASSERT_FAILS(fs_set_uuid("xfs", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_INTERNAL,
		"xfs_db ended with status 0 and UUID ");
}
END_TEST

START_TEST(a_program_that_fails_is_named)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("ext4");

	replace_program("/usr/sbin/tune2fs", "/usr/bin/false");
	ASSERT_FAILS(fs_set_uuid("ext4", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_INTERNAL,
		"tune2fs ended with status 1");
	replace_program("/usr/sbin/e2fsck", "/usr/bin/false");
	ASSERT_FAILS(fs_set_uuid("ext4", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_INTERNAL, "tune2fs");
	make_program(SCRATCH "/hangs", "exec sleep 60");
	make_program(SCRATCH "/fails", "echo for this reason; exit 8");
	replace_program("/usr/sbin/e2fsck", SCRATCH "/fails");
	ASSERT_FAILS(
		fs_set_uuid("ext4", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_INTERNAL, "for this reason");
	replace_program("/usr/sbin/e2fsck", SCRATCH "/hangs");
	ASSERT_FAILS(fs_set_uuid("ext4", d.disk.path, UUID, 300, &err), ERR_DEADLINE, "UUID of a copy");
}
END_TEST

START_TEST(errors_that_need_a_decision_are_reported)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("ext4");
	static const uint8_t garbage[4096] = {0xff, 0xff, 0xff, 0xff};

	/* as where errors are noted, so that it takes the way with a check */
	replace_program("/usr/sbin/tune2fs", "/usr/bin/false");
	/* the group descriptors and what is behind them: bitmaps and inodes */
	for (unsigned i = 1; i < 400; i++)
		ck_assert_int_eq(pwrite(d.disk.fd, garbage, sizeof(garbage), i * 4096), sizeof(garbage));
	ck_assert_int_eq(fsync(d.disk.fd), 0);
	ASSERT_FAILS(fs_set_uuid("ext4", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_PRECONDITION,
		"errors that need a decision");
}
END_TEST

SCRATCH_MAIN("os/copy/fs_uuid", a_uuid_is_changed_as_often_as_wanted,
	only_the_superblocks_of_a_clean_ext4_are_changed,
	an_ext4_with_a_deleted_file_that_was_open_is_checked, what_is_in_use_is_left_alone,
	a_change_that_was_ended_is_repeated, a_log_with_the_old_uuid_is_written_again,
	a_damaged_xfs_is_no_copy, malformed_requests_are_refused, a_program_that_changes_nothing_is_noticed,
	a_program_that_fails_is_named, errors_that_need_a_decision_are_reported)

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_uuid.h"

#include <sys/stat.h>

#include "base/str.h"
#include "os/fs.h"
#include "unit/os/copy/fixture.h"

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

/* In this mount namespace. */
static void replace_program(const char *path, const char *by)
{
	ck_assert_int_eq(mount(by, path, NULL, MS_BIND, NULL), 0);
}

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

	/* the group descriptors and what is behind them: bitmaps and inodes */
	for (unsigned i = 1; i < 400; i++)
		ck_assert_int_eq(pwrite(d.disk.fd, garbage, sizeof(garbage), i * 4096), sizeof(garbage));
	ck_assert_int_eq(fsync(d.disk.fd), 0);
	ASSERT_FAILS(fs_set_uuid("ext4", d.disk.path, UUID, TIMEOUT_MS, &err), ERR_PRECONDITION,
		"errors that need a decision");
}
END_TEST

SCRATCH_MAIN("os/copy/fs_uuid", a_uuid_is_changed_as_often_as_wanted, what_is_in_use_is_left_alone,
	malformed_requests_are_refused, a_program_that_changes_nothing_is_noticed,
	a_program_that_fails_is_named, errors_that_need_a_decision_are_reported)

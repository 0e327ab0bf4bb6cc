/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "os/file.h"
#include "unit/os/scratch.h"

#define MOUNT      SCRATCH "/m"
#define TIMEOUT_MS 120000

/* MiB, as docs/STORAGECLASSES.md has them. */
static const struct {
	uint64_t gib;
	uint64_t ext4;
	uint64_t xfs;
} table[] = {
	{1, 970, 925},
	{2, 1925, 1945},
	{4, 3930, 3990},
	{10, 9960, 10130},
	{30, 30040, 30590},
};

/* Whether a process without rights can make a file of @file_bytes in a new file system. */
static bool has_room(const char *type, uint64_t bytes, uint64_t file_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", bytes);
	struct statvfs fs;

	ck_assert_int_eq(unlink(SCRATCH "/disk"), 0);
	ASSERT_OK(fs_make(type, disk.path, NULL, TIMEOUT_MS, &err));
	ck_assert_int_eq(mount(disk.path, MOUNT, type, 0, NULL), 0);
	ck_assert_int_eq(statvfs(MOUNT, &fs), 0);
	int fd = open(MOUNT "/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	bool fits = fs.f_bavail * fs.f_frsize >= file_bytes && fallocate(fd, 0, 0, (off_t)file_bytes) == 0;
	close(fd);
	ck_assert_int_eq(umount(MOUNT), 0);
	return fits;
}

START_TEST(volumes_hold_what_the_document_says)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(MIB(1));
	char row[96];

	ck_assert_int_eq(mkdir(MOUNT, 0700), 0);
	ASSERT_OK(file_read(AT_FDCWD, STORAGECLASSES, &text, &err));
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		snprintf(row, sizeof(row), "| %juGi | %ju MiB | %ju MiB |", (uintmax_t)table[i].gib,
			(uintmax_t)table[i].ext4, (uintmax_t)table[i].xfs);
		ck_assert_msg(strstr(buf_str(&text), row), "the document has no row %s", row);
		ck_assert(has_room("ext4", MIB(1024) * table[i].gib, MIB(table[i].ext4)));
		ck_assert(has_room("xfs", MIB(1024) * table[i].gib, MIB(table[i].xfs)));
	}
}
END_TEST

/* The claim is larger than the disk by 6 % of itself, and a multiple of 1 MiB. */
START_TEST(disks_fit_into_the_claims_of_cdi)
{
	ck_assert_int_eq(mkdir(MOUNT, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t disk_mib = 1024 * table[i].gib;
		uint64_t claim_mib = (disk_mib * 100 + 93) / 94;

		ck_assert_msg(has_room("ext4", MIB(claim_mib), MIB(disk_mib)), "ext4, %ju GiB",
			(uintmax_t)table[i].gib);
		ck_assert(has_room("xfs", MIB(claim_mib), MIB(disk_mib)) == (table[i].gib > 1));
	}
	ck_assert(has_room("xfs", MIB(1130), MIB(1024)));
}
END_TEST

SCRATCH_MAIN("os/fs_room", volumes_hold_what_the_document_says, disks_fit_into_the_claims_of_cdi)

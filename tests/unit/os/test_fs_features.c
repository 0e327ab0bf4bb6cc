/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fs.h"

#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "os/file.h"
#include "unit/os/scratch.h"

#define TIMEOUT_MS 60000

static uint32_t le32_at(int fd, off_t offset)
{
	uint32_t value = 0;

	ck_assert_int_eq(pread(fd, &value, sizeof(value), offset), sizeof(value));
	return le32toh(value);
}

static uint32_t be32_at(int fd, off_t offset)
{
	return be32toh(htole32(le32_at(fd, offset)));
}

/* Puts a file with @text in the place of @path, for the mount namespace of the test. */
static void replace(const char *path, const char *text)
{
	int fd = open(SCRATCH "/replacement", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	ck_assert_int_eq(mount(SCRATCH "/replacement", path, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(unlink(SCRATCH "/replacement"), 0);
}

/* fs/ext4/ext4.h, struct ext4_super_block, and the features' bits there */
static void assert_ext4_features(int fd, uint32_t inodes)
{
	ck_assert_uint_eq(le32_at(fd, 1024 + 0x5c), 0x3c);
	ck_assert_uint_eq(le32_at(fd, 1024 + 0x60), 0x2c2);
	ck_assert_uint_eq(le32_at(fd, 1024 + 0x64), 0x46b);
	ck_assert_uint_eq(le32_at(fd, 1024), inodes);
}

START_TEST(features_of_ext4_are_no_matter_of_its_configuration)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(64));

	ASSERT_OK(fs_make("ext4", disk.path, NULL, TIMEOUT_MS, &err));
	assert_ext4_features(disk.fd, 16384);
	replace("/etc/mke2fs.conf",
		"[defaults]\nbase_features = sparse_super,large_file,filetype\ninode_ratio = 65536\n"
		"[fs_types]\next4 = {\nfeatures = has_journal,extent,64bit,orphan_file,metadata_csum_seed,"
		"inline_data,project,quota\n}\n");
	ASSERT_OK(fs_make("ext4", disk.path, NULL, TIMEOUT_MS, &err));
	assert_ext4_features(disk.fd, 16384);
}
END_TEST

/* The features quota and project, and s_prj_quota_inum, without which the kernel refuses "prjquota". */
START_TEST(project_quota_is_a_feature_of_ext4_where_it_is_asked_for)
{
	const struct fs_layout layout = {.project_quota = true};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(300));

	ASSERT_OK(fs_make("ext4", disk.path, &layout, TIMEOUT_MS, &err));
	ck_assert_uint_eq(le32_at(disk.fd, 1024 + 0x64), 0x46b | 0x100 | 0x2000);
	ck_assert_uint_ne(le32_at(disk.fd, 1024 + 0x26c), 0);
	ASSERT_OK(fs_make("xfs", disk.path, &layout, TIMEOUT_MS, &err));
}
END_TEST

/* fs/xfs/libxfs/xfs_format.h, struct xfs_dsb: read-only compatible are finobt and inobtcount, incompatible
 * are ftype, sparse inodes and bigtime */
START_TEST(features_of_xfs_are_those_that_old_kernels_mount)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(300));

	ASSERT_OK(fs_make("xfs", disk.path, NULL, TIMEOUT_MS, &err));
	ck_assert_uint_eq(be32_at(disk.fd, 208), 0);
	ck_assert_uint_eq(be32_at(disk.fd, 212), 9);
	ck_assert_uint_eq(be32_at(disk.fd, 216), 0xb);
	ck_assert_uint_eq(be32_at(disk.fd, 220), 0);
}
END_TEST

static void assert_parent_is_given(const char *device, const char *version, bool expected)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf args = BUF_INIT(4096);
	char script[256];

	snprintf(script, sizeof(script),
		"#!/bin/sh\n[ \"$1\" = -V ] && echo mkfs.xfs version %s && exit\necho \"$*\" >" SCRATCH
		"/args\n",
		version);
	replace("/usr/sbin/mkfs.xfs", script);
	ASSERT_OK(fs_make("xfs", device, NULL, TIMEOUT_MS, &err));
	ck_assert_int_eq(umount("/usr/sbin/mkfs.xfs"), 0);
	ASSERT_OK(file_read(AT_FDCWD, SCRATCH "/args", &args, &err));
	ck_assert((strstr(buf_str(&args), ",exchange=0 ") != NULL) == expected);
	ck_assert((strstr(buf_str(&args), ",parent=0 ") != NULL) == expected);
	ck_assert_ptr_nonnull(strstr(buf_str(&args), "bigtime=1"));
}

START_TEST(options_are_given_to_a_mkfs_that_knows_them)
{
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(300));

	assert_parent_is_given(disk.path, "6.1.0", false);
	assert_parent_is_given(disk.path, "6.9.0", false);
	assert_parent_is_given(disk.path, "6.10.1", true);
	assert_parent_is_given(disk.path, "6.13.0", true);
	assert_parent_is_given(disk.path, "7.0.0-rc1", true);
}
END_TEST

START_TEST(a_mkfs_without_a_version_is_an_error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(scratch_disk_done) struct scratch_disk disk = scratch_disk("disk", MIB(300));

	replace("/usr/sbin/mkfs.xfs", "#!/bin/sh\necho usage\n");
	ASSERT_FAILS(fs_make("xfs", disk.path, NULL, TIMEOUT_MS, &err), ERR_INTERNAL, "version of mkfs.xfs");
}
END_TEST

SCRATCH_MAIN("os/fs_features", features_of_ext4_are_no_matter_of_its_configuration,
	project_quota_is_a_feature_of_ext4_where_it_is_asked_for,
	features_of_xfs_are_those_that_old_kernels_mount, options_are_given_to_a_mkfs_that_knows_them,
	a_mkfs_without_a_version_is_an_error)

/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/os/copy/fixture.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/spawn.h"

#define PIECE_BYTES MIB(1)
#define EXT4_BYTES  MIB(96)
#define XFS_BYTES   MIB(300)
#define OUTPUT_MAX  (1U << 16)

const char *const fixture_types[] = {"ext4", "xfs", NULL};

static void fill(int fd, int value, uint64_t n)
{
	CLEANUP(free_charp) char *piece = x_malloc(PIECE_BYTES);

	memset(piece, value, PIECE_BYTES);
	for (uint64_t at = 0; at < n;) {
		size_t wanted = n - at < PIECE_BYTES ? (size_t)(n - at) : PIECE_BYTES;
		ssize_t got = pwrite(fd, piece, wanted, (off_t)at);

		ck_assert_int_gt(got, 0);
		at += (uint64_t)got;
	}
	ck_assert_int_eq(fsync(fd), 0);
}

struct fixture_disk fixture_disk(const char *name, uint64_t size_bytes)
{
	struct fixture_disk d = {
		.size_bytes = size_bytes, .disk = scratch_disk(name, size_bytes), .dir_fd = -1};

	snprintf(d.file, sizeof(d.file), SCRATCH "/%s", name);
	fill(d.disk.fd, DIRTY, size_bytes);
	return d;
}

void fixture_mount(struct fixture_disk *d, const char *name, const char *options)
{
	snprintf(d->mount, sizeof(d->mount), SCRATCH "/m%s", name);
	ck_assert(mkdir(d->mount, 0700) == 0 || errno == EEXIST);
	ck_assert_msg(mount(d->disk.path, d->mount, d->fstype, 0, options) == 0, "mount %s: %s", d->disk.path,
		strerror(errno));
	d->dir_fd = open(d->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(d->dir_fd, 0);
}

void fixture_unmount(struct fixture_disk *d)
{
	fd_closep(&d->dir_fd);
	ck_assert_msg(umount2(d->mount, UMOUNT_NOFOLLOW) == 0, "umount %s: %s", d->mount, strerror(errno));
	d->mount[0] = '\0';
}

struct fixture_disk fixture_make(const char *fstype, const char *name)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fixture_disk d = fixture_disk(name, str_eq(fstype, "xfs") ? XFS_BYTES : EXT4_BYTES);

	d.fstype = fstype;
	ASSERT_OK(fs_make(fstype, d.disk.path, NULL, TIMEOUT_MS, &err));
	fixture_mount(&d, name, NULL);
	return d;
}

void fixture_disk_done(struct fixture_disk *d)
{
	fd_closep(&d->dir_fd);
	if (d->mount[0])
		umount2(d->mount, MNT_DETACH);
	scratch_disk_done(&d->disk);
	unlink(d->file);
}

void fixture_write(int dir_fd, const char *name, int value, uint64_t n)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	fill(fd, value, n);
}

static int check(const struct fixture_disk *d, struct buf *out)
{
	const char *const e2fsck[] = {"e2fsck", "-fn", "--", d->disk.path, NULL};
	const char *const xfs_repair[] = {"xfs_repair", "-n", "--", d->disk.path, NULL};
	CLEANUP(error_freep) struct error *err = NULL;
	int status = -1;

	ASSERT_OK(spawn_run(
		str_eq(d->fstype, "xfs") ? xfs_repair : e2fsck, NULL, out, out, TIMEOUT_MS, &status, &err));
	return status;
}

bool fixture_is_clean(const struct fixture_disk *d)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);

	return check(d, &out) == 0;
}

void fixture_check_clean(const struct fixture_disk *d)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);
	int status = check(d, &out);

	ck_assert_msg(status == 0, "%s on %s is not clean: %s", d->fstype, d->disk.path, buf_str(&out));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/kata_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/copy/fs_detached.h"
#include "os/fs.h"
#include "os/fs_grow.h"
#include "os/loopdev.h"
#include "volume/attachment/kata_layout.h"

#define IMAGE_MODE      0600
#define IMAGE_MIN_BYTES (2 * KATA_ALIGN_BYTES)

/*
 * Space beside the image that is left free for metadata: a guest writes to extents that are only reserved,
 * and then the file system splits its records of them. In the worst case each block gets a record of its own
 * (12 bytes for 4096 in ext4). ext4 keeps a fiftieth for that, up to 16 MiB, and counts it as free
 * (fs/ext4/super.c, ext4_set_resv_clusters()).
 */
#define SPARE_BYTES   (256ULL << 10)
#define SPARE_DIVISOR 256
#define KEPT_DIVISOR  50
#define KEPT_BYTES    (16ULL << 20)

/* How often it is tried with less. */
#define TRIES 64

static int refuse(const char *why, struct error **err)
{
	return err_set(err, ERR_PRECONDITION,
		"%s in its file system is not the image that was made there: %s", KATA_IMAGE_NAME, why);
}

static int open_image(int dir_fd, int mode, int *ret_fd, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(fd_closep)
	int fd = openat(dir_fd, KATA_IMAGE_NAME, mode | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	struct stat dir;

	*ret_fd = -1;
	if (fd < 0 && errno == ENOENT)
		return 0;
	/* EACCES: a device, since the mount has nodev */
	if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == EACCES))
		return refuse("it is no regular file", err);
	if (fd < 0 || fstat(fd, &st) < 0 || fstat(dir_fd, &dir) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", KATA_IMAGE_NAME);
	if (!S_ISREG(st.st_mode) || st.st_dev != dir.st_dev)
		return refuse("it is no regular file", err);
	if (st.st_nlink != 1)
		return refuse("it has a second name", err);
	if ((uint64_t)st.st_size < IMAGE_MIN_BYTES || (uint64_t)st.st_size % KATA_ALIGN_BYTES != 0)
		return refuse("its size is that of no image", err);
	*ret_bytes = (uint64_t)st.st_size;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int kata_image_open(int dir_fd, int *ret_fd, uint64_t *ret_bytes, struct error **err)
{
	return open_image(dir_fd, O_RDWR, ret_fd, ret_bytes, err);
}

int kata_image_check(int image_fd, struct error **err)
{
	uint8_t head[KATA_HEAD_BYTES];
	ssize_t n = pread(image_fd, head, sizeof(head), 0);

	if (n < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read %s", KATA_IMAGE_NAME);
	return n == sizeof(head) && kata_layout_is_image(head) ? 0 : refuse("it has no PFN superblock", err);
}

int kata_image_find(int dir_fd, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	uint64_t bytes = 0;

	*ret_bytes = 0;
	if (open_image(dir_fd, O_RDONLY, &fd, &bytes, err) == 0 &&
		(fd < 0 || kata_image_check(fd, err) == 0)) {
		*ret_bytes = bytes;
		return 0;
	}
	if ((*err)->code != ERR_PRECONDITION)
		return -1;
	error_clear(err);
	return 0;
}

/* The largest size to which an image of @have_bytes can grow. */
static int largest(int dir_fd, uint64_t have_bytes, uint64_t *ret, struct error **err)
{
	struct statfs fs;

	if (fstatfs(dir_fd, &fs) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "statfs");
	uint64_t all = have_bytes + (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
	uint64_t kept = all / KEPT_DIVISOR < KEPT_BYTES ? all / KEPT_DIVISOR : KEPT_BYTES;
	uint64_t spare = SPARE_BYTES + all / SPARE_DIVISOR + kept;
	uint64_t bytes = all > spare ? all - spare : 0;
	*ret = bytes - bytes % KATA_ALIGN_BYTES;
	return 0;
}

/* Allocate what lies between the sizes @from and *@to, or less. fallocate(2) refuses to allocate nothing. */
static int allocate(int fd, uint64_t from, uint64_t least, uint64_t *to, struct error **err)
{
	uint64_t bytes = *to;

	for (unsigned i = 0; i < TRIES && bytes >= least && bytes > from; i++, bytes -= KATA_ALIGN_BYTES) {
		if (STEP("kata-allocate", fallocate(fd, 0, (off_t)from, (off_t)(bytes - from))) == 0) {
			*to = bytes;
			return 0;
		}
		if (errno != ENOSPC)
			return err_set_errno(err, ERR_INTERNAL, errno, "allocate an image");
		if (STEP("kata-shorten", ftruncate(fd, (off_t)from)) < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "shorten an image");
	}
	return err_set(err, ERR_EXHAUSTED, "its file system has too little space for an image");
}

static int write_head(int fd, uint64_t bytes, struct error **err)
{
	uint8_t head[KATA_HEAD_BYTES];

	kata_layout_write(bytes, head);
	if (STEP("kata-head", pwrite(fd, head, sizeof(head), 0)) != sizeof(head))
		return err_set_errno(err, ERR_INTERNAL, errno, "write the head of an image");
	return STEP("kata-sync", fsync(fd)) < 0
		       ? err_set_errno(err, ERR_INTERNAL, errno, "make an image durable")
		       : 0;
}

static int make_fs(
	int fd, const char *fs_type, const struct fs_layout *layout, int timeout_ms, struct error **err)
{
	CLEANUP(free_charp) char *loop = NULL;
	CLEANUP(fd_closep) int loop_fd = -1;

	if (loop_attach_part(fd, KATA_ALIGN_BYTES, /* readonly= */ false, &loop_fd, &loop, err) < 0)
		return -1;
	if (fs_make(fs_type, loop, layout, timeout_ms, err) < 0)
		return -1;
	if (STEP("kata-fs-sync", fsync(loop_fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "make the file system of an image durable");
	return 0;
}

static int give_name(int dir_fd, int fd, struct error **err)
{
	CLEANUP(free_charp) char *self = x_asprintf("/proc/self/fd/%d", fd);

	if (STEP("kata-link", linkat(AT_FDCWD, self, dir_fd, KATA_IMAGE_NAME, AT_SYMLINK_FOLLOW)) < 0)
		return err_set_errno(
			err, errno == EEXIST ? ERR_EXISTS : ERR_INTERNAL, errno, "name an image");
	if (STEP("kata-folder-sync", fsync(dir_fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "make the name of an image durable");
	return 0;
}

int kata_image_make(int dir_fd, const char *fs_type, const struct fs_layout *layout, int mkfs_timeout_ms,
	struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	uint64_t least = KATA_ALIGN_BYTES + fs_min_bytes(fs_type);
	uint64_t bytes;

	if (largest(dir_fd, 0, &bytes, err) < 0)
		return -1;
	fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, IMAGE_MODE);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "create an image");
	if (allocate(fd, 0, least < IMAGE_MIN_BYTES ? IMAGE_MIN_BYTES : least, &bytes, err) < 0)
		return err_wrap(err, "%ju bytes are free, and at least %ju are needed", (uintmax_t)bytes,
			(uintmax_t)least);
	if (make_fs(fd, fs_type, layout, mkfs_timeout_ms, err) < 0 || write_head(fd, bytes, err) < 0)
		return -1;
	return give_name(dir_fd, fd, err);
}

/* Its file system may be smaller than the image, also after a growth that was cut off. */
static int grow_fs(int image_fd, const char *fs_type, struct error **err)
{
	CLEANUP(free_charp) char *loop = NULL;
	CLEANUP(fd_closep) int loop_fd = -1;
	CLEANUP(error_freep) struct error *failure = NULL;
	struct blockdev_info info;
	struct fs_growth growth;
	int root_fd;

	if (loop_attach_part(image_fd, KATA_ALIGN_BYTES, /* readonly= */ false, &loop_fd, &loop, err) < 0)
		return -1;
	if (blockdev_stat(loop, &info, err) < 0 ||
		fs_open_detached(fs_type, loop, /* readonly= */ false, &root_fd, err) < 0)
		return -1;
	int rc = fs_grow(fs_type, loop, root_fd, info.size_bytes, &growth, &failure);
	if (fs_close_detached(root_fd, loop, err) < 0)
		return -1;
	if (rc < 0)
		*err = TAKE_PTR(failure);
	return rc;
}

int kata_image_grow(int dir_fd, int image_fd, const char *fs_type, uint64_t *bytes, struct error **err)
{
	struct stat st;
	uint64_t wanted;

	if (fstat(image_fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat an image");
	uint64_t have = (uint64_t)st.st_size;
	if (largest(dir_fd, have, &wanted, err) < 0)
		return -1;
	if (wanted <= have && have == *bytes)
		return 0;
	if (wanted < have)
		wanted = have;
	if (wanted > have && allocate(image_fd, have, have, &wanted, err) < 0)
		return -1;
	if (write_head(image_fd, wanted, err) < 0 || grow_fs(image_fd, fs_type, err) < 0)
		return -1;
	*bytes = wanted;
	return 0;
}

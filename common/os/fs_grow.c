/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fs_grow.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include "base/durable_step.h"
#include "base/str.h"
#include "os/fs.h"

/* The kernel's headers for programs have none of these: fs/ext4/ext4.h; fs/xfs/libxfs/xfs_fs.h. */
#define EXT4_IOC_RESIZE_FS _IOW('f', 16, uint64_t)

struct xfs_fsop_geom_v1 {
	uint32_t blocksize;
	uint32_t rtextsize;
	uint32_t agblocks;
	uint32_t agcount;
	uint32_t logblocks;
	uint32_t sectsize;
	uint32_t inodesize;
	uint32_t imaxpct;
	uint64_t datablocks;
	uint64_t rtblocks;
	uint64_t rtextents;
	uint64_t logstart;
	unsigned char uuid[16];
	uint32_t sunit;
	uint32_t swidth;
	int32_t version;
	uint32_t flags;
	uint32_t logsectsize;
	uint32_t rtsectsize;
	uint32_t dirblocksize;
};

struct xfs_growfs_data {
	uint64_t newblocks;
	uint32_t imaxpct;
};

#define XFS_IOC_FSGEOMETRY_V1 _IOR('X', 100, struct xfs_fsop_geom_v1)
#define XFS_IOC_FSGROWFSDATA  _IOW('X', 110, struct xfs_growfs_data)

static int fail(const char *fstype, const char *device, struct error **err)
{
	int why = errno;

	switch (why) {
	case EROFS:
		return err_set(err, ERR_PRECONDITION,
			"the %s on %s is mounted read-only, so it cannot be grown: mount it read-write",
			fstype, device);
	case EPERM:
		return err_set(err, ERR_PRECONDITION,
			"the kernel refuses to grow the %s on %s: it has errors (unmount it and run e2fsck -f), "
			"or this process lacks the capability SYS_RESOURCE",
			fstype, device);
	case EBUSY:
	case EAGAIN:
		return err_set(
			err, ERR_UNAVAILABLE, "another program is growing the %s on %s", fstype, device);
	default:
		return err_set_errno(err, ERR_INTERNAL, why, "grow the %s on %s", fstype, device);
	}
}

/* The kernel changes the superblock of a mounted ext4 in the page cache of the device, where it is read. */
static int read_ext4_bytes(const char *device, uint64_t *ret_bytes, uint32_t *ret_block, struct error **err)
{
	struct fs_super super;

	if (fs_read_super("ext4", device, &super, err) < 0)
		return -1;
	*ret_bytes = super.size_bytes;
	*ret_block = super.block_bytes;
	return 0;
}

static int grow_ext4(
	const char *device, int dir_fd, uint64_t device_bytes, struct fs_growth *ret, struct error **err)
{
	uint32_t block_bytes;

	if (read_ext4_bytes(device, &ret->from_bytes, &block_bytes, err) < 0)
		return -1;
	ret->to_bytes = ret->from_bytes;
	uint64_t blocks = device_bytes / block_bytes;
	if (blocks <= ret->from_bytes / block_bytes)
		return 0;
	if (STEP("fs-grow-ext4", ioctl(dir_fd, EXT4_IOC_RESIZE_FS, &blocks)) < 0)
		return fail("ext4", device, err);
	return read_ext4_bytes(device, &ret->to_bytes, &block_bytes, err);
}

static int read_xfs(const char *device, int dir_fd, struct xfs_fsop_geom_v1 *ret, struct error **err)
{
	if (ioctl(dir_fd, XFS_IOC_FSGEOMETRY_V1, ret) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read the size of the xfs on %s", device);
	return 0;
}

static int grow_xfs(
	const char *device, int dir_fd, uint64_t device_bytes, struct fs_growth *ret, struct error **err)
{
	struct xfs_fsop_geom_v1 geometry;

	if (read_xfs(device, dir_fd, &geometry, err) < 0)
		return -1;
	ret->from_bytes = geometry.datablocks * geometry.blocksize;
	ret->to_bytes = ret->from_bytes;
	const struct xfs_growfs_data q = {
		.newblocks = device_bytes / geometry.blocksize, .imaxpct = geometry.imaxpct};
	if (q.newblocks <= geometry.datablocks)
		return 0;
	if (STEP("fs-grow-xfs", ioctl(dir_fd, XFS_IOC_FSGROWFSDATA, &q)) < 0)
		return fail("xfs", device, err);
	if (read_xfs(device, dir_fd, &geometry, err) < 0)
		return -1;
	ret->to_bytes = geometry.datablocks * geometry.blocksize;
	return 0;
}

int fs_grow(const char *fstype, const char *device, int dir_fd, uint64_t device_bytes, struct fs_growth *ret,
	struct error **err)
{
	if (str_eq(fstype, "ext4"))
		return grow_ext4(device, dir_fd, device_bytes, ret, err);
	if (str_eq(fstype, "xfs"))
		return grow_xfs(device, dir_fd, device_bytes, ret, err);
	return err_set(err, ERR_INVALID_ARGUMENT, "file system type \"%s\" is neither ext4 nor xfs", fstype);
}

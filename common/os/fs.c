#include "os/fs.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>

#include "base/mem.h"
#include "base/step.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/spawn.h"

#define MIB (1024ULL * 1024)

/* mke2fs makes no journal below 2048 blocks (e2fsprogs lib/ext2fs/mkjournal.c,
 * ext2fs_default_journal_size()). */
#define EXT4_MIN_BYTES (8 * MIB)
/* mkfs.xfs since 5.19 (validate_supported()). */
#define XFS_MIN_BYTES   (300 * MIB)
#define XFS_SMALL_BYTES (1024 * MIB)

/* A failing checksum must not turn a damaged file system into an empty device: BADCSUM reports it as what it
 * is. */
static int set_up_probe(blkid_probe pr, int fd)
{
	if (blkid_probe_set_device(pr, fd, 0, 0) != 0)
		return -1;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(pr, 1);
	blkid_probe_set_partitions_flags(pr, BLKID_PARTS_MAGIC);
	return 0;
}

DEFINE_CLEANUP(blkid_probe, blkid_free_probe);

static int name_content(blkid_probe pr, const char *device, char **ret_type, struct error **err)
{
	const char *type = NULL;
	const char *partitions = NULL;

	blkid_probe_lookup_value(pr, "TYPE", &type, NULL);
	blkid_probe_lookup_value(pr, "PTTYPE", &partitions, NULL);
	if (type && partitions)
		return err_set(err, ERR_PRECONDITION, "%s holds both %s and a partition table (%s)", device,
			type, partitions);
	*ret_type = x_strdup(type ? type : "partition table");
	return 0;
}

int fs_probe(const char *device, char **ret_type, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(device, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", device);

	CLEANUP(blkid_free_probep) blkid_probe pr = blkid_new_probe();
	if (!pr || set_up_probe(pr, fd) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "prepare to probe %s", device);

	errno = 0;
	switch (blkid_do_safeprobe(pr)) {
	case 0:
		return name_content(pr, device, ret_type, err);
	case 1:
		*ret_type = x_strdup("");
		return 0;
	case -2:
		return err_set(err, ERR_PRECONDITION, "%s has signatures of several file systems", device);
	default:
		return err_set_errno(err, ERR_INTERNAL, errno ? errno : EIO, "probe %s", device);
	}
}

uint64_t fs_min_bytes(const char *fstype)
{
	if (str_eq(fstype, "ext4"))
		return EXT4_MIN_BYTES;
	return str_eq(fstype, "xfs") ? XFS_MIN_BYTES : 0;
}

bool fs_known(const char *fstype)
{
	return fs_min_bytes(fstype) != 0;
}

/*
 * nodiscard: the caller has decided what happens to old content; persistent memory has no discard anyway.
 * Inode tables are left to the kernel's lazy initialisation. The journal is written: it is recovered by
 * sequence number, which an old one in its place could match (mke2fs(8), lazy_journal_init).
 */
static int make_ext4(const char *device, int timeout_ms, struct error **err)
{
	const char *const argv[] = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-E",
		"stride=512,stripe_width=512,nodiscard,lazy_itable_init=1,lazy_journal_init=0", "--", device,
		NULL};

	return STEP("mkfs-ext4", spawn_check(argv, NULL, timeout_ms, err));
}

/*
 * With a stripe, mkfs.xfs makes 8 allocation groups, and up to 512 MiB none of them has room for a log of the
 * 64 MiB that it demands; two groups do at every size from the minimum on. The log's own stripe would become
 * 32 KiB, to which each log write is padded; memory needs no more than a block. New files inherit from the
 * root an extent size of 512 blocks, so that they can be mapped with huge pages.
 */
static int make_xfs(const char *device, int timeout_ms, struct error **err)
{
	struct blockdev_info info;

	if (blockdev_stat(device, &info, err) < 0)
		return -1;

	const char *const layout = info.size_bytes < XFS_SMALL_BYTES ? "su=2m,sw=1,extszinherit=512,agcount=2"
								     : "su=2m,sw=1,extszinherit=512";
	const char *const argv[] = {"mkfs.xfs", "-q", "-f", "-K", "-b", "size=4096", "-m", "reflink=0", "-d",
		layout, "-l", "su=4k", "--", device, NULL};

	return STEP("mkfs-xfs", spawn_check(argv, NULL, timeout_ms, err));
}

int fs_make(const char *fstype, const char *device, int timeout_ms, struct error **err)
{
	if (str_eq(fstype, "ext4"))
		return make_ext4(device, timeout_ms, err);
	if (str_eq(fstype, "xfs"))
		return make_xfs(device, timeout_ms, err);
	return err_set(err, ERR_INVALID_ARGUMENT, "file system type \"%s\" is neither ext4 nor xfs", fstype);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fs.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/spawn.h"

#define MIB (1024ULL * 1024)

/* mke2fs makes no journal below 2048 blocks (e2fsprogs lib/ext2fs/mkjournal.c,
 * ext2fs_default_journal_size()). */
#define EXT4_MIN_BYTES   (8 * MIB)
#define EXT4_SMALL_BYTES (512 * MIB)
/* mkfs.xfs since 5.19 (validate_supported()). */
#define XFS_MIN_BYTES   (300 * MIB)
#define XFS_SMALL_BYTES (1024 * MIB)

/* All features of a new file system, whatever a release of its mkfs or mke2fs.conf adds: Linux 5.12 mounts
 * them, and guests may have that. */
static const char ext4_features[] =
	"none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,"
	"large_file,huge_file,dir_nlink,extra_isize,metadata_csum";
#define EXT4_EXTENDED "stride=512,stripe_width=512,nodiscard,lazy_itable_init=1,lazy_journal_init=0"
#define XFS_METADATA  "crc=1,finobt=1,inobtcount=1,bigtime=1,reflink=0,rmapbt=0"
#define XFS_INODES    "sparse=1,nrext64=0"
/* mkfs.xfs knows exchange and parent from this version on, and refuses options that it does not know. */
#define XFS_NEW_MAJOR 6
#define XFS_NEW_MINOR 10

#define VERSION_MAX_BYTES 256

/* A device may be held for a moment after close(2): see blockdev_open_unless_held(). */
#define HELD_TRIES    10
#define HELD_PAUSE_NS 50000000

/* A wrong checksum must not make a damaged file system look like an empty device: with BADCSUM it is
 * reported with its type. */
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

/* Files fill a file system to its end, where libblkid finds signatures of members of RAIDs. */
static bool is_at_start(blkid_probe pr)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	const char *offset = NULL;
	uint64_t at;

	if (blkid_probe_lookup_value(pr, "SBMAGIC_OFFSET", &offset, NULL) < 0)
		return blkid_probe_has_value(pr, "PTTYPE") == 1;
	return parse_u64(offset, &at, &ignored) == 0 && at < (uint64_t)blkid_probe_get_size(pr) / 2;
}

/* @ret_in_doubt: what is found, or that there is more than one, may be the content of files */
static int probe(const char *device, char **ret_type, bool *ret_in_doubt, struct error **err)
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
		*ret_in_doubt = !is_at_start(pr);
		return name_content(pr, device, ret_type, err);
	case 1:
		*ret_in_doubt = false;
		*ret_type = x_strdup("");
		return 0;
	case -2:
		return err_set(err, ERR_PRECONDITION, "%s has signatures of several file systems", device);
	default:
		return err_set_errno(err, ERR_INTERNAL, errno ? errno : EIO, "probe %s", device);
	}
}

int fs_probe(const char *device, char **ret_type, struct error **err)
{
	bool in_doubt = false;

	return probe(device, ret_type, &in_doubt, err);
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
 * sequence number, which an old one in its place could match (mke2fs(8), lazy_journal_init). No blocks are
 * kept for root: a claim is to hold what it asks for. From 1 GiB on, mke2fs doubles the journal, and a disk
 * of 1 GiB would not fit into the claim that CDI makes for it. The ratio of inodes is that of mke2fs.conf
 * below 4 TiB.
 */
static int make_ext4(const char *device, uint64_t bytes, const struct fs_layout *layout, int timeout_ms,
	struct error **err)
{
	CLEANUP(free_charp)
	char *features = x_asprintf("%s%s", ext4_features, layout->project_quota ? ",quota,project" : "");
	const char *const journal = bytes >= 1024 * MIB && bytes < 2048 * MIB ? "-Jsize=16" : "-j";
	const char *const argv[] = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", journal, "-I", "256",
		"-i", bytes < EXT4_SMALL_BYTES ? "4096" : "16384", "-O", features, "-U",
		layout->uuid ? layout->uuid : "random", "-E",
		layout->project_quota ? EXT4_EXTENDED ",quotatype=prjquota" : EXT4_EXTENDED, "--", device,
		NULL};

	return STEP("mkfs-ext4", spawn_check(argv, NULL, timeout_ms, err));
}

/* mkfs.xfs prints "mkfs.xfs version 6.1.0". */
static int find_xfs_is_new(int timeout_ms, bool *ret, struct error **err)
{
	static const char *const argv[] = {"mkfs.xfs", "-V", NULL};
	CLEANUP(buf_done) struct buf out = BUF_INIT(VERSION_MAX_BYTES);
	uint64_t major, minor;
	int ignored;

	if (spawn_run(argv, NULL, &out, NULL, timeout_ms, &ignored, err) < 0)
		return -1;

	const char *at = strrchr(buf_str(&out), ' ');
	at = at ? at + 1 : "";
	CLEANUP(free_charp) char *first = x_strndup(at, strcspn(at, "."));
	at += strcspn(at, ".");
	at += *at == '.';
	CLEANUP(free_charp) char *second = x_strndup(at, strspn(at, "0123456789"));
	if (parse_u64(first, &major, err) < 0 || parse_u64(second, &minor, err) < 0) {
		err_recode(err, ERR_INTERNAL);
		return err_wrap(err, "version of mkfs.xfs");
	}
	*ret = major > XFS_NEW_MAJOR || (major == XFS_NEW_MAJOR && minor >= XFS_NEW_MINOR);
	return 0;
}

/*
 * With a stripe, mkfs.xfs makes 8 allocation groups, and up to 512 MiB none of them has room for a log of the
 * 64 MiB that it demands; two groups do at every size from the minimum on. The log's own stripe would become
 * 32 KiB, to which each log write is padded; memory needs no more than a block. New files inherit from the
 * root an extent size of 512 blocks, so that they can be mapped with huge pages; without DAX it would only
 * make each preallocated file take 2 MiB. Linux mounts nrext64 since 5.19, exchange and parent since 6.10,
 * and rmapbt has to be written with each allocation.
 */
static int make_xfs(
	const char *device, uint64_t bytes, const struct fs_layout *l, int timeout_ms, struct error **err)
{
	bool is_new;

	if (find_xfs_is_new(timeout_ms, &is_new, err) < 0)
		return -1;

	CLEANUP(free_charp)
	char *data = x_asprintf("su=2m,sw=1%s%s", l->without_dax ? "" : ",extszinherit=512",
		bytes < XFS_SMALL_BYTES ? ",agcount=2" : "");
	CLEANUP(free_charp)
	char *metadata = l->uuid ? x_asprintf(XFS_METADATA ",uuid=%s", l->uuid) : x_strdup(XFS_METADATA);
	const char *const argv[] = {"mkfs.xfs", "-q", "-f", "-K", "-b", "size=4096", "-m", metadata, "-i",
		is_new ? XFS_INODES ",exchange=0" : XFS_INODES, "-n", is_new ? "ftype=1,parent=0" : "ftype=1",
		"-d", data, "-l", "su=4k", "--", device, NULL};

	return STEP("mkfs-xfs", spawn_check(argv, NULL, timeout_ms, err));
}

/* Whether @text is an error message that mke2fs (misc/util.c, check_mount()) or mkfs.xfs (libxfs/init.c,
 * libxfs_device_open()) prints when another program has opened the device exclusively; their exit status is
 * that of any failure. */
static bool says_device_is_held(const char *text)
{
	return strstr(text, "apparently in use by the system") || strstr(text, "Device or resource busy");
}

static int get_size(const char *device, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(device, O_RDONLY | O_CLOEXEC);
	off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	if (end < 0)
		return err_set_errno(
			err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "size of %s", device);
	*ret_bytes = (uint64_t)end;
	return 0;
}

int fs_make(const char *fstype, const char *device, const struct fs_layout *layout, int timeout_ms,
	struct error **err)
{
	static const struct fs_layout usual = {0};
	uint64_t bytes;

	if (!fs_known(fstype))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "file system type \"%s\" is neither ext4 nor xfs", fstype);
	if (get_size(device, &bytes, err) < 0)
		return -1;

	layout = layout ? layout : &usual;
	for (int tries = 0;; tries++) {
		int rc = str_eq(fstype, "ext4") ? make_ext4(device, bytes, layout, timeout_ms, err)
						: make_xfs(device, bytes, layout, timeout_ms, err);
		if (rc == 0 || (*err)->code != ERR_INTERNAL || !says_device_is_held((*err)->msg))
			return rc;
		if (tries == HELD_TRIES) {
			err_recode(err, ERR_UNAVAILABLE);
			return -1;
		}
		error_clear(err);
		nanosleep(&(struct timespec){.tv_nsec = HELD_PAUSE_NS}, NULL);
	}
}

/* fs/ext4/ext4.h, struct ext4_super_block; fs/xfs/libxfs/xfs_format.h, struct xfs_dsb */
#define EXT4_SUPER_AT     1024
#define EXT4_MOUNT_TIME   0x2c
#define EXT4_MOUNT_COUNT  0x34
#define EXT4_MAGIC        0x38
#define EXT4_STATE        0x3a
#define EXT4_VALID_FS     1 /* of the bits of that */
#define EXT4_ERROR_FS     2
#define EXT4_BLOCKS       0x4
#define EXT4_BLOCK_LOG    0x18 /* of the size of a block, in KiB */
#define EXT4_INCOMPAT     0x60
#define EXT4_64BIT        0x80 /* of these features: EXT4_BLOCKS_H counts */
#define EXT4_RECOVER      0x4  /* of these features: the journal is to be replayed */
#define EXT4_RO_COMPAT    0x64
#define EXT4_CHECKSUMS    0x400   /* of these features */
#define EXT4_HAS_ORPHANS  0x10000 /* likewise */
#define EXT4_LAST_ORPHAN  0xe8
#define EXT4_BLOCKS_H     0x150
#define EXT4_BLOCK_MAX    6
#define EXT4_UUID         0x68
#define EXT4_MOUNT_TIME_H 0x275
#define XFS_BLOCK_SIZE    4
#define XFS_BLOCKS        8
#define XFS_UUID          32
#define XFS_IN_PROGRESS   126
#define SUPER_BYTES       4096

static void format_uuid(const unsigned char *u, char out[static FS_UUID_TEXT_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[n++] = '-';
		out[n++] = digits[u[i] >> 4];
		out[n++] = digits[u[i] & 15];
	}
	out[n] = '\0';
}

static bool is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i])
			return false;
	}
	return true;
}

static uint64_t read_le(const unsigned char *p, size_t n)
{
	uint64_t value = 0;

	while (n > 0)
		value = value << 8 | p[--n];
	return value;
}

static uint64_t read_be(const unsigned char *p, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | p[i];
	return value;
}

/* With checksums of its metadata. A file that was deleted and is still open, an orphan, is in a list. */
static bool is_checksummed_and_clean(const unsigned char *s)
{
	uint64_t state = read_le(s + EXT4_STATE, 2);
	uint64_t features = read_le(s + EXT4_RO_COMPAT, 4);

	return features & EXT4_CHECKSUMS && state & EXT4_VALID_FS && !(state & EXT4_ERROR_FS) &&
	       !(read_le(s + EXT4_INCOMPAT, 4) & EXT4_RECOVER) && !(features & EXT4_HAS_ORPHANS) &&
	       is_zero(s + EXT4_LAST_ORPHAN, 4);
}

static bool read_ext4_super(const unsigned char *head, struct fs_super *ret)
{
	const unsigned char *s = head + EXT4_SUPER_AT;

	format_uuid(s + EXT4_UUID, ret->uuid);
	ret->unused = is_zero(s + EXT4_MOUNT_TIME, 4) && s[EXT4_MOUNT_TIME_H] == 0 &&
		      is_zero(s + EXT4_MOUNT_COUNT, 2);
	uint64_t block_log = read_le(s + EXT4_BLOCK_LOG, 4);
	uint64_t blocks = read_le(s + EXT4_BLOCKS, 4);
	if (read_le(s + EXT4_INCOMPAT, 4) & EXT4_64BIT)
		blocks |= read_le(s + EXT4_BLOCKS_H, 4) << 32;
	ret->block_bytes = block_log <= EXT4_BLOCK_MAX ? 1024U << block_log : 0;
	ret->size_bytes = blocks * ret->block_bytes;
	ret->checksummed_and_clean = is_checksummed_and_clean(s);
	return s[EXT4_MAGIC] == 0x53 && s[EXT4_MAGIC + 1] == 0xef && ret->block_bytes > 0;
}

static bool read_xfs_super(const unsigned char *head, struct fs_super *ret)
{
	format_uuid(head + XFS_UUID, ret->uuid);
	ret->unused = head[XFS_IN_PROGRESS] != 0;
	ret->block_bytes = (uint32_t)read_be(head + XFS_BLOCK_SIZE, 4);
	ret->size_bytes = read_be(head + XFS_BLOCKS, 8) * ret->block_bytes;
	ret->checksummed_and_clean = false;
	return memcmp(head, "XFSB", 4) == 0;
}

static int read_head(int fd, unsigned char *head, size_t *ret_n)
{
	for (*ret_n = 0; *ret_n < SUPER_BYTES;) {
		ssize_t n = pread(fd, head + *ret_n, SUPER_BYTES - *ret_n, (off_t)*ret_n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		*ret_n += (size_t)n;
	}
	return 0;
}

int fs_read_super(const char *fstype, const char *device, struct fs_super *ret, struct error **err)
{
	unsigned char head[SUPER_BYTES];
	CLEANUP(fd_closep) int fd = open(device, O_RDONLY | O_CLOEXEC);
	size_t n;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", device);
	if (read_head(fd, head, &n) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read %s", device);
	if (n != sizeof(head) ||
		!(str_eq(fstype, "xfs") ? read_xfs_super(head, ret) : read_ext4_super(head, ret)))
		return err_set(err, ERR_PRECONDITION, "%s has no superblock of %s", device, fstype);
	return 0;
}

static const char *const types[] = {"ext4", "xfs"};

static int has_super(const char *fstype, const char *device, const char *uuid, bool *ret, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;
	struct fs_super super;

	*ret = false;
	if (fs_read_super(fstype, device, &super, &why) == 0) {
		*ret = super.size_bytes > 0 && (!uuid || str_eq(super.uuid, uuid));
		return 0;
	}
	if (why->code == ERR_PRECONDITION)
		return 0;
	*err = TAKE_PTR(why);
	return -1;
}

/* Looks for superblocks in their places. @uuid: that they must have; NULL: any. @ret_type: of the one that
 * was found, borrowed; NULL unless exactly one was */
static int find_super(const char *device, const char *uuid, const char **ret_type, struct error **err)
{
	size_t n = 0;

	*ret_type = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		bool has;

		if (has_super(types[i], device, uuid, &has, err) < 0)
			return -1;
		if (has)
			*ret_type = ++n == 1 ? types[i] : NULL;
	}
	return 0;
}

int fs_recognise(const char *device, const char *uuid, char **ret_type, struct error **err)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	CLEANUP(free_charp) char *found = NULL;
	const char *known = NULL;
	bool in_doubt = true;

	if (uuid && find_super(device, uuid, &known, err) < 0)
		return -1;
	int rc = known ? 0 : probe(device, &found, &in_doubt, &failure);
	if (!known && in_doubt && find_super(device, /* uuid= */ NULL, &known, err) < 0)
		return -1;
	if (known) {
		*ret_type = x_strdup(known);
		return 0;
	}
	*ret_type = TAKE_PTR(found);
	*err = TAKE_PTR(failure);
	return rc;
}

/* e2fsck has about ten maps of all blocks and inodes (e2fsck(8), scratch_files): with blocks of 1 KiB, 1/800
 * of the device. */
#define TOOL_MIN_BYTES  (1024 * MIB)
#define TOOL_PER_DEVICE 256

int fs_run_tool(const char *const argv[], const char *device, struct buf *output, int timeout_ms,
	int *ret_status, struct error **err)
{
	/* If a device has no file system, e2fsck notes that in the cache of libblkid, which is a regular
	 * file. */
	static const char *const env[] = {"BLKID_FILE=/dev/null", NULL};
	struct blockdev_info info;

	if (blockdev_stat(device, &info, err) < 0)
		return -1;
	return spawn_confined(argv, env, TOOL_MIN_BYTES + info.size_bytes / TOOL_PER_DEVICE, output,
		timeout_ms, ret_status, err);
}

/* e2fsck(8), "EXIT CODE": bits, of which 1 and 2 say that errors were corrected */
#define FSCK_CORRECTED   3
#define FSCK_UNCORRECTED 4
#define FSCK_MAX_BYTES   8192

/* Return: caller frees. */
static int judge(const char *device, int status, struct buf *out, char **ret_verdict, struct error **err)
{
	CLEANUP(free_charp) char *words = spawn_said(buf_str(out));

	if (status & FSCK_UNCORRECTED)
		return err_set(err, ERR_PRECONDITION,
			"e2fsck found errors on %s that need a decision (\"%s\"): "
			"save the data if they matter, then run e2fsck -f %s on the node",
			device, words, device);
	*ret_verdict = status == 0 ? NULL
				   : x_asprintf("%s with status %d: %s",
					     status & ~FSCK_CORRECTED ? "e2fsck failed and ended"
								      : "e2fsck repaired it and ended",
					     status, words);
	return 0;
}

int fs_check(const char *fstype, const char *device, int timeout_ms, char **ret_verdict, struct error **err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(FSCK_MAX_BYTES);
	const char *const argv[] = {"e2fsck", "-p", "--", device, NULL};
	int status;

	*ret_verdict = NULL;
	if (!str_eq(fstype, "ext4"))
		return 0;
	if (STEP("fsck-ext4", fs_run_tool(argv, device, &out, timeout_ms, &status, err)) < 0) {
		if ((*err)->code != ERR_PRECONDITION)
			return -1;
		*ret_verdict = x_strdup((*err)->msg);
		error_clear(err);
		return 0;
	}
	return judge(device, status, &out, ret_verdict, err);
}

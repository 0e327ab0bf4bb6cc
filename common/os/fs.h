/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs.h - file systems: recognise one on a device, create it, check it, and read its superblock. Over
 * libblkid, mkfs.ext4, mkfs.xfs.
 *
 * Threads: safe. Blocks on the device; fs_make() as long as mkfs runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/**
 * fs_probe() - what a device holds of which nothing is known.
 * @device:   block device path
 * @ret_type: "" when nothing is recognised, else the type ("ext4", "xfs", "swap",
 * "LVM2_member", or "partition table"); caller frees
 *
 * A file system with a wrong checksum is reported with its type.
 * Return: 0, or -1 with ERR_INTERNAL (unreadable), ERR_PRECONDITION (several signatures, which are named).
 */
int fs_probe(const char *device, char **ret_type, struct error **err) MUST_CHECK;

/**
 * fs_recognise() - what a device holds of which a record may have the UUID.
 * @device:   block device path
 * @uuid:     of the ext4 or xfs that is recorded; NULL: none
 * @ret_type: as fs_probe()
 *
 * A superblock in its place with the recorded UUID decides: files may have any content, and fill the end of
 * the device, where libblkid looks for members of RAIDs. Without it, libblkid says what is there, which tells
 * ext2 from ext4, and where that is at the end or ambivalent, the only superblock of an ext4 or xfs counts
 * that is in its place. Return: as fs_probe().
 */
int fs_recognise(const char *device, const char *uuid, char **ret_type, struct error **err) MUST_CHECK;

/**
 * fs_min_bytes() - smallest device on which fs_make() works, with a journal.
 * @fstype: any string
 *
 * Return: bytes; 0 for a type that we do not make.
 */
uint64_t fs_min_bytes(const char *fstype);

/** fs_known() - whether @fstype is one that we make: ext4 or xfs. */
bool fs_known(const char *fstype);

#define FS_UUID_TEXT_LEN 36

struct fs_super {
	char uuid[FS_UUID_TEXT_LEN + 1]; /* lower case */
	bool unused;                     /* it was never mounted for writing, so nothing is in it */
	uint32_t block_bytes;
	uint64_t size_bytes; /* of the whole file system */
	/* ext4 with checksums of its metadata that was unmounted or frozen in order, and has noted no errors
	 */
	bool checksummed_and_clean;
};

/**
 * fs_read_super() - read the superblock of a file system that fs_probe() has found.
 * @fstype: "ext4" or "xfs"
 * @device: block device path; an xfs on it must not be mounted, since the kernel then writes late
 * @ret:    filled on success
 *
 * "Unused" is ext4 without a time of mounting, which the kernel writes before a first mount for writing
 * returns (fs/ext4/super.c, ext4_setup_super()), and xfs whose mkfs has not finished (sb_inprogress, with
 * which the kernel refuses to mount: fs/xfs/libxfs/xfs_sb.c, xfs_validate_sb_common()). A finished xfs is
 * never reported as unused: the kernel writes its superblock long after files are in its log. Return: 0, or
 * -1 with ERR_INTERNAL (unreadable), ERR_PRECONDITION (no such superblock).
 */
int fs_read_super(
	const char *fstype, const char *device, struct fs_super *ret, struct error **err) MUST_CHECK;

/**
 * fs_check() - before a mount, repair the errors that need no decision, as `fsck -a` does.
 * @fstype:      "ext4" or "xfs"; for xfs nothing is done, since mounting replays the log
 * @device:      block device path, not mounted
 * @timeout_ms:  bound for e2fsck
 * @ret_verdict: what the program has printed when something was repaired or could not be checked;
 *               NULL: no errors; caller frees
 *
 * A checker that fails or is not installed does not prevent the mount, as in Kubernetes' mount-utils
 * (formatAndMountSensitive()). Source: e2fsck(8), exit codes.
 * Return: 0, or -1 with ERR_PRECONDITION (errors that it does not repair by itself; with its verdict),
 * ERR_DEADLINE, ERR_INTERNAL.
 */
int fs_check(const char *fstype, const char *device, int timeout_ms, char **ret_verdict,
	struct error **err) MUST_CHECK;

/**
 * fs_run_tool() - run a program on a file system that pods and guests wrote to, with spawn_confined().
 * @argv:    as spawn_run()
 * @device:  which it reads; the limit of memory follows from its size
 * @output:  stdout and stderr are appended
 *
 * Return: as spawn_run().
 */
int fs_run_tool(const char *const argv[], const char *device, struct buf *output, int timeout_ms,
	int *ret_status, struct error **err) MUST_CHECK;

/* The properties of a new file system beside its type. */
struct fs_layout {
	const char *uuid;   /* as text; NULL: a random one */
	bool project_quota; /* an ext4 has the features without which the kernel refuses "prjquota"; an xfs
			       needs none */
	bool without_dax;   /* files of an xfs are not allocated in pieces that huge pages can map */
};

/**
 * fs_make() - make a file system, laid out for 2 MiB pages where the device has room (ext4 stride/stripe, xfs
 * su/sw and an extent size that all files inherit, both with 4 KiB blocks; xfs without reflink, which
 * excludes dax on the kernels that we support). No blocks of an ext4 are kept for root. The features are
 * always the same ones, but for those that @layout asks for.
 * @fstype:     "ext4" or "xfs"
 * @device:     block device path; whatever is on it is overwritten, so the caller has probed
 * @layout:     NULL: nothing is asked for
 * @timeout_ms: bound for mkfs
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (unknown type), ERR_NOT_FOUND (no such device), ERR_DEADLINE,
 * ERR_UNAVAILABLE (another program holds the device; nothing was written), ERR_INTERNAL (what mkfs has
 * printed).
 */
int fs_make(const char *fstype, const char *device, const struct fs_layout *layout, int timeout_ms,
	struct error **err) MUST_CHECK;

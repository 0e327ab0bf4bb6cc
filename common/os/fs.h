/*
 * fs.h - file systems: what is on a device, making one, its numbers. Over libblkid, mkfs.ext4, mkfs.xfs.
 *
 * Threads: safe. Blocks on the device; fs_make() as long as mkfs runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/**
 * fs_probe() - what the start of a device holds.
 * @device:   block device path
 * @ret_type: "" when nothing is recognised and nothing is there, else the type ("ext4", "xfs", "swap",
 * "LVM2_member", or "partition table"); caller frees
 * @err:      see docs/ERRORS.md
 *
 * A file system whose checksum is wrong is reported as what it is, never as nothing.
 * Return: 0, or -1 with ERR_INTERNAL (unreadable), ERR_PRECONDITION (ambivalent: several signatures; named).
 */
int fs_probe(const char *device, char **ret_type, struct error **err) MUST_CHECK;

/**
 * fs_min_bytes() - smallest device on which fs_make() works, with a journal.
 * @fstype: any string
 *
 * Return: bytes; 0 for a type that we do not make.
 */
uint64_t fs_min_bytes(const char *fstype);

/** fs_known() - whether @fstype is one that we make: ext4 or xfs. */
bool fs_known(const char *fstype);

/**
 * fs_make() - make a file system, laid out for 2 MiB pages where the device has room (ext4 stride/stripe, xfs
 * su/sw and an extent size that all files inherit, both with 4 KiB blocks; xfs without reflink, which
 * excludes dax on the kernels that we support).
 * @fstype:     "ext4" or "xfs"
 * @device:     block device path; whatever is on it is overwritten, so the caller has probed
 * @timeout_ms: bound for mkfs
 * @err:        see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (unknown type), ERR_DEADLINE, ERR_INTERNAL (mkfs' last line).
 */
int fs_make(const char *fstype, const char *device, int timeout_ms, struct error **err) MUST_CHECK;

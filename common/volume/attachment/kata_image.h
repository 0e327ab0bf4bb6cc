/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata_image.h - the image for Kata Containers in the file system of a volume: the only file there, as large
 * as fits.
 *
 * It has the head of kata_layout.h and, behind that, a file system of the same type as the one it lies in. No
 * pod sees the file system in which it lies, so size and place of the file are ours; what is in the file may
 * have been written by the root of a guest, and is never trusted. Source: the Go driver's pkg/imagefile,
 * whose images are used as they are.
 *
 * Threads: safe under the volume's lock. Blocks on the file system, and as long as mkfs runs.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct fs_layout;

#define KATA_IMAGE_NAME "kata-containers-pmem-csi-vm.img"

/**
 * kata_image_open() - open the image.
 * @dir_fd:    root of the volume's file system
 * @ret_fd:    for reading and writing, caller closes; -1: no image was made yet
 * @ret_bytes: its size
 *
 * Return: 0, or -1 with ERR_PRECONDITION (something else has its name: a link, no regular file, one with a
 * second name or a size that no image has), ERR_INTERNAL.
 */
int kata_image_open(int dir_fd, int *ret_fd, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/** kata_image_check() - the file @image_fd begins as an image does. Return: 0, or -1 with ERR_PRECONDITION,
 * ERR_INTERNAL. */
int kata_image_check(int image_fd, struct error **err) MUST_CHECK;

/** kata_image_find() - look for an image in a file system that is mounted for reading, and that need not
 * belong to a volume with an image.
 * @ret_bytes: its size; 0: no image was found. Return: 0, or -1 with ERR_INTERNAL. */
int kata_image_find(int dir_fd, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/**
 * kata_image_make() - make the image, with an empty file system in it.
 * @fs_type:         "ext4" or "xfs"
 * @layout:          of that
 * @mkfs_timeout_ms: bound for mkfs
 *
 * It gets its name when all of it is durable: whatever is cut off before leaves nothing. Return: 0, or -1
 * with ERR_EXHAUSTED (too little space), ERR_EXISTS, ERR_UNAVAILABLE (no loop device), ERR_DEADLINE,
 * ERR_INTERNAL.
 */
int kata_image_make(int dir_fd, const char *fs_type, const struct fs_layout *layout, int mkfs_timeout_ms,
	struct error **err) MUST_CHECK;

/**
 * kata_image_grow() - make the image as large as fits now, and its file system with it.
 * @image_fd:  of kata_image_open(); nothing uses it
 * @bytes:     its size when it was made, or when it had grown last; if the file is larger, a growth was cut
 *             off, and is finished. Its new size afterwards; the same: there is no further space
 *
 * Idempotent. Return: 0, or -1 as kata_image_make() and fs_grow(); then @bytes is as before.
 */
int kata_image_grow(
	int dir_fd, int image_fd, const char *fs_type, uint64_t *bytes, struct error **err) MUST_CHECK;

/*
 * blockdev.h - block devices: size, dax, exclusive use, zeroing; device-mapper's open count.
 *
 * Threads: safe. Blocks on the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct blockdev_info {
	dev_t dev;
	uint64_t size_bytes;
	bool has_dax; /* queue/dax in sysfs */
};

/** blockdev_stat() - facts of @path. Return: 0, or -1 with ERR_NOT_FOUND, ERR_PRECONDITION (no block device). */
int blockdev_stat(const char *path, struct blockdev_info *ret, struct error **err) MUST_CHECK;

/** blockdev_wait() - until @path is a block device that can be opened, polling; udev may not exist here.
 * Return: 0, or -1 with ERR_DEADLINE after @timeout_ms. */
int blockdev_wait(const char *path, int timeout_ms, struct error **err) MUST_CHECK;

/**
 * blockdev_open_exclusive() - open for writing with O_EXCL: fails while it is mounted or held by the kernel.
 * Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_NOT_FOUND, ERR_INTERNAL.
 */
int blockdev_open_exclusive(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * blockdev_zero() - write zeros over a range and flush it.
 * @fd:      open for writing
 * @offset, @length: bytes, multiples of 512
 *
 * Uses write(2), never a mapping, so that poison on persistent memory is cleared (drivers/nvdimm/pmem.c).
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int blockdev_zero(int fd, uint64_t offset, uint64_t length, struct error **err) MUST_CHECK;

/**
 * dm_open_count() - how many openers a device-mapper device has (mounts included), without opening it.
 * @dev: its number
 * @ret: count; 0 for a device that is not device-mapper's
 *
 * Source: linux/dm-ioctl.h DM_DEV_STATUS. Return: 0, or -1 with ERR_INTERNAL.
 */
int dm_open_count(dev_t dev, unsigned *ret, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockdev.h - block devices: size, dax, exclusive use, zeroing; the state of device-mapper devices.
 *
 * Threads: safe. Blocks on the device. Properties are read from sysfs, without opening the device.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct blockdev_info {
	dev_t dev;
	uint64_t size_bytes;
	bool has_dax; /* queue/dax in sysfs */
};

/**
 * blockdev_stat() - properties of a block device, without opening it.
 * @path: device path; symlinks are followed
 * @ret:  filled on success
 *
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_PRECONDITION (no block device), ERR_INTERNAL.
 */
int blockdev_stat(const char *path, struct blockdev_info *ret, struct error **err) MUST_CHECK;

/** blockdev_stat_if_there() - blockdev_stat() of a device that may have gone. @ret_there: false, and @ret is
 * unchanged, where no block device is at @path. Return: 0, or -1 with ERR_INTERNAL. */
int blockdev_stat_if_there(
	const char *path, struct blockdev_info *ret, bool *ret_there, struct error **err) MUST_CHECK;

/**
 * blockdev_wait() - wait until a path is a block device that can be opened, polling; udev may not exist here.
 * @path:       device path to come
 * @timeout_ms: how long; 0 tries once
 *
 * Return: 0, or -1 with ERR_DEADLINE (the reason of the last try is named).
 */
int blockdev_wait(const char *path, int timeout_ms, struct error **err) MUST_CHECK;

/**
 * blockdev_open_unless_held() - open with O_EXCL.
 * @path:    device path
 * @flags:   of open(2)
 * @wait_ms: how long the end of another use is waited for; 0 tries once. A child that another thread starts
 *           has copies of our descriptors until it runs its program, so that a device can be held for a
 *           moment after close(2); with many such children, 100 ms were seen
 *
 * Return: a descriptor, which the caller closes, or -1 with errno (EBUSY: mounted or held).
 */
int blockdev_open_unless_held(const char *path, int flags, int wait_ms);

/**
 * blockdev_open_exclusive() - open for reading and writing with O_EXCL: fails while it is mounted or held
 * otherwise, also after half a second.
 * @path:   device path
 * @ret_fd: keeps others from mounting it; caller closes
 *
 * Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_NOT_FOUND, ERR_INTERNAL.
 */
int blockdev_open_exclusive(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * blockdev_refuse_held() - refuse a device that is mounted, in whichever mount namespace, or held
 * exclusively.
 * @path:    device path, which is opened exclusively for a moment
 * @wait_ms: as blockdev_open_unless_held()
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (mounted or held), ERR_INTERNAL.
 */
int blockdev_refuse_held(const char *path, int wait_ms, struct error **err) MUST_CHECK;

/**
 * blockdev_starts_zero() - whether a device begins with zeros.
 * @path:    device path
 * @n_bytes: how many bytes are read; all of them on a smaller device
 * @ret:     whether all are zero
 *
 * Return: 0, or -1 with ERR_INTERNAL (cannot be read).
 */
int blockdev_starts_zero(const char *path, size_t n_bytes, bool *ret, struct error **err) MUST_CHECK;

/**
 * blockdev_zero() - write zeros over a range and flush it.
 * @fd:     block device, open for writing
 * @offset: bytes, a multiple of the logical block size
 * @length: bytes, likewise
 *
 * BLKZEROOUT, not a mapping: where a device has no command for zeros, as persistent memory, the kernel
 * submits writes of the zero page (block/blk-lib.c, __blkdev_issue_zero_pages()), and a write clears poison
 * (drivers/nvdimm/pmem.c, pmem_do_write()), or fails where the platform cannot repair the memory. The page
 * cache is neither filled nor left stale. Idempotent. Return: 0, or -1 with ERR_EXHAUSTED (a block cannot be
 * written; the first one is named), ERR_INTERNAL.
 */
int blockdev_zero(int fd, uint64_t offset, uint64_t length, struct error **err) MUST_CHECK;

/** blockdev_path() - the path of the node that the kernel names for a device ("/dev/pmem0"). @ret: caller
 * frees. Return: 0, or -1 with ERR_NOT_FOUND (no such device), ERR_INTERNAL. */
int blockdev_path(dev_t dev, char **ret, struct error **err) MUST_CHECK;

/** blockdev_count_users() - how many block devices lie on the one at @path, such as logical volumes that are
 * active; 0 for what is no block device. Return: 0, or -1 with ERR_INTERNAL. */
int blockdev_count_users(const char *path, size_t *ret, struct error **err) MUST_CHECK;

/**
 * blockdev_find_user() - find another process that has a block device open, for whatever use, and still
 * does after a second: programs as udev look at a device for a moment.
 * @dev:     its number
 * @ret_pid: 0: our /proc shows no such process; that of a container without hostPID shows few
 *
 * Opens nothing but /proc: exclusively or not, as hypervisors open their disks, makes no difference. Return:
 * 0, or -1 with ERR_INTERNAL.
 */
int blockdev_find_user(dev_t dev, pid_t *ret_pid, struct error **err) MUST_CHECK;

/**
 * dm_wait_unused() - wait at most a second until no process has a device-mapper device open (mounts count,
 * too).
 * @path: a path that is not, or no longer, a device-mapper device is accepted
 *
 * Does not open the device. Source: linux/dm-ioctl.h DM_DEV_STATUS. Return: 0, or -1 with ERR_PRECONDITION
 * (in use), ERR_INTERNAL.
 */
int dm_wait_unused(const char *path, struct error **err) MUST_CHECK;

/**
 * dm_refuse_shared() - refuse a mapped device whose data another mapped device also shows, as a snapshot
 * does.
 * @dev: device number; a device that is not a device-mapper device, or lies on no other one, is accepted
 *
 * LVM puts origin and snapshot on one hidden device (lvmsnapshot(7), NAME-real), and removes snapshots with
 * their origin. The memory below plain volumes is no mapped device, so that they do not count as sharing it.
 * Does not open anything but sysfs. Return: 0, or -1 with ERR_PRECONDITION (shared), ERR_INTERNAL.
 */
int dm_refuse_shared(dev_t dev, struct error **err) MUST_CHECK;

/**
 * dm_require_on() - make sure that a mapped device lies on nothing but some devices.
 * @path:  a path that is not, or no longer, a mapped device is accepted
 * @bases: paths of block devices ("/dev/pmem0"): strv
 *
 * LVM finds a volume's mapped device by its UUID (lib/activate/dev_manager.c, _build_dlid()), which a volume
 * on a copy of the disk has, too. The devices below mapped devices are checked, too. Opens nothing but sysfs.
 * Return: 0, or -1 with ERR_UNAVAILABLE (it lies on another one, which is named), ERR_INTERNAL.
 */
int dm_require_on(const char *path, char *const *bases, struct error **err) MUST_CHECK;

/**
 * dm_require_uuid() - make sure that a mapped device is the one with a UUID.
 * @path: a path at which nothing is is accepted, as that of a volume that is not active
 * @uuid: in the form of device-mapper; LVM gives its volumes "LVM-" with the UUIDs of group and volume behind
 * it, without hyphens (lib/activate/dev_manager.c, _build_dlid())
 *
 * Does not open the device. Return: 0, or -1 with ERR_PRECONDITION (another one, or no mapped device),
 * ERR_INTERNAL.
 */
int dm_require_uuid(const char *path, const char *uuid, struct error **err) MUST_CHECK;

/**
 * dm_refuse_suspended() - refuse a suspended device: every access to it would wait, and no signal would end
 * the wait.
 * @path: a path that is not a device yet is accepted
 *
 * Does not open the device. Source: linux/dm-ioctl.h DM_SUSPEND_FLAG. Return: 0, or -1 with ERR_UNAVAILABLE
 * (suspended), ERR_INTERNAL.
 */
int dm_refuse_suspended(const char *path, struct error **err) MUST_CHECK;

/**
 * dm_suspend() - make all who read or write a mapped device wait, once what they have begun has ended.
 * @dev: device number; nothing of it may be mounted, since no file system is frozen
 *
 * What its page cache has is not written: fsync(2) before does that. Nothing can read the device until
 * dm_resume(), this process neither, but the devices below can (dm_list_segments()). Does not open the
 * device. Source: linux/dm-ioctl.h DM_DEV_SUSPEND; drivers/md/dm-ioctl.c, do_suspend(), which takes one that
 * is suspended already for success. Return: 0, or -1 with ERR_ABORTED (another program has suspended it),
 * ERR_PRECONDITION (no mapped device), ERR_INTERNAL.
 */
int dm_suspend(dev_t dev, struct error **err) MUST_CHECK;

/** dm_resume() - let those who wait for a suspended device go on. @ret_was_suspended: whether it was.
 * Idempotent. Return: 0, or -1 with ERR_INTERNAL. */
int dm_resume(dev_t dev, bool *ret_was_suspended, struct error **err) MUST_CHECK;

/* A part of a mapped device. */
struct dm_segment {
	dev_t dev;             /* the device below */
	uint64_t start_bytes;  /* of the part on the device below */
	uint64_t length_bytes; /* of the part */
	uint64_t offset_bytes; /* of the part in the mapped device */
};

/**
 * dm_list_segments() - list on which parts of which devices a mapped device lies, by its live table.
 * @dev: device number; a device that is not, or no longer, a mapped device has none
 * @ret: array of @ret_n, free(); only of targets "linear", which LVM's plain volumes consist of
 *
 * Does not open the device, and does not wait if it is suspended. Source: linux/dm-ioctl.h DM_TABLE_STATUS;
 * drivers/md/dm-ioctl.c, retrieve_status(); drivers/md/dm-linear.c, linear_status(). Return: 0, or -1 with
 * ERR_INTERNAL, ERR_EXHAUSTED (a table of more than 4 MiB).
 */
int dm_list_segments(dev_t dev, struct dm_segment **ret, size_t *ret_n, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/erase.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/step.h"
#include "os/blockdev.h"

int erase_head(int fd, uint64_t size_bytes, struct error **err)
{
	if (size_bytes <= 2 * ERASE_HEAD_BYTES)
		return erase_range(fd, 0, size_bytes, err);
	if (blockdev_zero(fd, 0, ERASE_HEAD_BYTES, err) < 0)
		return -1;
	return blockdev_zero(fd, size_bytes - ERASE_HEAD_BYTES, ERASE_HEAD_BYTES, err);
}

/* Zeros without writing, where the device gives blocks back and then reads as zeros; a loop device's file
 * stays sparse. The kernel does not fall back to writing here (block/fops.c, blkdev_fallocate()): persistent
 * memory answers EOPNOTSUPP. */
static bool punch(int fd, uint64_t offset, uint64_t length)
{
	return STEP("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				     (off_t)length)) == 0 &&
	       STEP("punch-sync", fdatasync(fd)) == 0;
}

int erase_range(int fd, uint64_t offset, uint64_t length, struct error **err)
{
	if (punch(fd, offset, length))
		return 0;
	return blockdev_zero(fd, offset, length, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/zero_range.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "os/blockdev.h"

int zero_ends(int fd, uint64_t size_bytes, struct error **err)
{
	if (size_bytes <= 2 * ZERO_ENDS_BYTES)
		return zero_range(fd, 0, size_bytes, err);
	if (blockdev_zero(fd, 0, ZERO_ENDS_BYTES, err) < 0)
		return -1;
	return blockdev_zero(fd, size_bytes - ZERO_ENDS_BYTES, ZERO_ENDS_BYTES, err);
}

/* Zeros without writing, if the device can release blocks that then read as zeros, so that a loop device's
 * file stays sparse. The kernel does not fall back to writing here (block/fops.c, blkdev_fallocate()):
 * persistent memory answers EOPNOTSUPP. */
static bool punch(int fd, uint64_t offset, uint64_t length)
{
	return STEP("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				     (off_t)length)) == 0 &&
	       STEP("punch-sync", fdatasync(fd)) == 0;
}

int zero_range(int fd, uint64_t offset, uint64_t length, struct error **err)
{
	if (punch(fd, offset, length))
		return 0;
	return blockdev_zero(fd, offset, length, err);
}

#include "pmem/erase.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/step.h"
#include "os/blockdev.h"

#define PUNCH_STEP_BYTES (1ULL << 30)

int erase_head(int fd, uint64_t size_bytes, struct error **err)
{
	if (size_bytes <= 2 * ERASE_HEAD_BYTES)
		return erase_all(fd, size_bytes, err);
	if (blockdev_zero(fd, 0, ERASE_HEAD_BYTES, err) < 0)
		return -1;
	return blockdev_zero(fd, size_bytes - ERASE_HEAD_BYTES, ERASE_HEAD_BYTES, err);
}

/* Zeros without writing, where the device gives blocks back and then reads as zeros; a loop device's file
 * stays sparse. The kernel does not fall back to writing here (block/fops.c, blkdev_fallocate()): persistent
 * memory answers EOPNOTSUPP. */
static bool punch(int fd, uint64_t size_bytes)
{
	for (uint64_t at = 0; at < size_bytes; at += PUNCH_STEP_BYTES) {
		uint64_t step = size_bytes - at < PUNCH_STEP_BYTES ? size_bytes - at : PUNCH_STEP_BYTES;
		if (STEP("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
					  (off_t)step)) < 0)
			return false;
	}
	return STEP("punch-sync", fdatasync(fd)) == 0;
}

int erase_all(int fd, uint64_t size_bytes, struct error **err)
{
	if (punch(fd, size_bytes))
		return 0;
	return blockdev_zero(fd, 0, size_bytes, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/zero_range.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "os/blockdev.h"

/* Around blocks that fail, zeros are written in pieces of this size, and where that fails, too, in blocks of
 * the device's smallest size. */
#define PIECE_BYTES 4096

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

/* Reads past the page cache (O_DIRECT), because the page cache reads whole pages. If the read cannot be
 * tried, the block counts as readable. */
static bool is_readable(int fd, uint64_t offset, uint64_t length)
{
	_Alignas(PIECE_BYTES) uint8_t block[PIECE_BYTES];
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
		return true;
	ssize_t n = pread(fd, block, length, (off_t)offset);
	bool fails = n < 0 && (errno == EIO || errno == ENODATA);
	return fcntl(fd, F_SETFL, flags) < 0 || !fails;
}

/* Zeroes a piece of at most PIECE_BYTES, in blocks of @block_bytes. */
static int zero_blocks_around(int fd, uint64_t offset, uint64_t length, uint64_t block_bytes,
	uint64_t *may_skip_bytes, struct error **err)
{
	for (uint64_t end = offset + length; offset < end; offset += block_bytes) {
		if (blockdev_zero(fd, offset, block_bytes, err) == 0)
			continue;
		if ((*err)->code != ERR_EXHAUSTED || *may_skip_bytes < block_bytes ||
			is_readable(fd, offset, block_bytes))
			return -1;
		error_clear(err);
		*may_skip_bytes -= block_bytes;
	}
	return 0;
}

int zero_around(int fd, uint64_t offset, uint64_t length, uint64_t *may_skip_bytes, struct error **err)
{
	int block_bytes = 0;

	if (zero_range(fd, offset, length, err) == 0)
		return 0;
	if ((*err)->code != ERR_EXHAUSTED || *may_skip_bytes == 0 || ioctl(fd, BLKSSZGET, &block_bytes) < 0 ||
		block_bytes <= 0 || block_bytes > PIECE_BYTES)
		return -1;
	error_clear(err);
	for (uint64_t end = offset + length; offset < end;) {
		uint64_t piece = end - offset < PIECE_BYTES ? end - offset : PIECE_BYTES;

		if (blockdev_zero(fd, offset, piece, err) < 0) {
			if ((*err)->code != ERR_EXHAUSTED)
				return -1;
			error_clear(err);
			if (zero_blocks_around(
				    fd, offset, piece, (uint64_t)block_bytes, may_skip_bytes, err) < 0)
				return -1;
		}
		offset += piece;
	}
	return 0;
}

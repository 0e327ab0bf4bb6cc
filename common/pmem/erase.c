#include "pmem/erase.h"

#include "os/blockdev.h"

int erase_head(int fd, uint64_t size_bytes, struct error **err)
{
	if (size_bytes <= 2 * ERASE_HEAD_BYTES)
		return erase_all(fd, size_bytes, err);
	if (blockdev_zero(fd, 0, ERASE_HEAD_BYTES, err) < 0)
		return -1;
	return blockdev_zero(fd, size_bytes - ERASE_HEAD_BYTES, ERASE_HEAD_BYTES, err);
}

int erase_all(int fd, uint64_t size_bytes, struct error **err)
{
	return blockdev_zero(fd, 0, size_bytes, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nosync.c - a library to preload: everything that makes file content durable succeeds and does nothing, so
 * that a test of durability must fail.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags)
{
	(void)fd;
	(void)offset;
	(void)length;
	(void)flags;
	return 0;
}

int syncfs(int fd)
{
	(void)fd;
	return 0;
}

void sync(void)
{
}

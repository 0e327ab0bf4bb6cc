/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soiled.c - a library to preload into a driver with fake devices: new images get what a used medium has
 * instead of zeros, stamps that name the image. An image that grows gets zeros behind its old end, as the
 * fake promises.
 *
 * Each is STAMP of world.py and the inode in eight digits. Large images get fewer, so that they stay sparse.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STAMP_BYTES  16
#define PAGE_BYTES   4096
#define DENSE_BYTES  (32LL << 20)
#define SPARSE_BYTES 65536
/* Stamps move within their page, so that not only its beginning is looked at. */
#define MOVE_BYTES 80

static int is_image(int fd)
{
	char link[32], path[4096];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path));
	return n > 6 && memcmp(path + n - 6, ".image", 6) == 0;
}

static int soil(int fd, off64_t size, uint64_t inode)
{
	off64_t step = size > DENSE_BYTES ? SPARSE_BYTES : PAGE_BYTES;
	char stamp[STAMP_BYTES + 1];

	snprintf(stamp, sizeof(stamp), "\xb5medium:%08jx", (uintmax_t)(inode & UINT32_MAX));
	for (off64_t at = 0; at + PAGE_BYTES <= size; at += step) {
		off64_t move = at / step * MOVE_BYTES % (PAGE_BYTES - STAMP_BYTES);

		if (pwrite64(fd, stamp, STAMP_BYTES, at + move) != STAMP_BYTES)
			return -1;
	}
	return 0;
}

int ftruncate64(int fd, off64_t size)
{
	struct stat64 before;

	if (fstat64(fd, &before) < 0 || syscall(SYS_ftruncate, fd, size) < 0)
		return -1;
	return is_image(fd) && before.st_size == 0 ? soil(fd, size, before.st_ino) : 0;
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

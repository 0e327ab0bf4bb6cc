/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/volume/content.h"

#include <fcntl.h>
#include <unistd.h>

#include "unit/unit.h"

void content_fill(const struct device *d, char value)
{
	CLEANUP(fd_closep) int fd = open(d->path, O_WRONLY | O_CLOEXEC);
	char block[CONTENT_BLOCK];

	memset(block, value, sizeof(block));
	for (uint64_t at = 0; at < d->size_bytes; at += sizeof(block))
		ck_assert_int_eq(pwrite(fd, block, sizeof(block), (off_t)at), sizeof(block));
	ck_assert_int_eq(fsync(fd), 0);
}

size_t content_count(const struct device *d, char value)
{
	CLEANUP(fd_closep) int fd = open(d->path, O_RDONLY | O_CLOEXEC);
	char block[CONTENT_BLOCK];
	char expected[CONTENT_BLOCK];
	size_t n = 0;

	memset(expected, value, sizeof(expected));
	for (uint64_t at = 0; at < d->size_bytes; at += sizeof(block)) {
		ck_assert_int_eq(pread(fd, block, sizeof(block), (off_t)at), sizeof(block));
		n += memcmp(block, expected, sizeof(block)) == 0;
	}
	return n;
}

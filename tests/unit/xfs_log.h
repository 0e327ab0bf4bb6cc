/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfs_log.h - finds the log of an xfs, for tests that change it.
 */
#pragma once

#include <unistd.h>

#include "os/copy/fs_extents.h"
#include "unit/unit.h"

static inline uint64_t xfs_number(const uint8_t *at, size_t n)
{
	uint64_t number = 0;

	for (size_t i = 0; i < n; i++)
		number = number << 8 | at[i];
	return number;
}

/** xfs_log_of() - read place and size of the log from the superblock on the device @fd
 * (fs/xfs/libxfs/xfs_format.h, struct xfs_dsb). */
static inline struct fs_extent xfs_log_of(int fd)
{
	uint8_t super[512];

	ck_assert_int_eq(pread(fd, super, sizeof(super), 0), sizeof(super));
	uint64_t block_bytes = xfs_number(super + 4, 4);
	uint64_t start = xfs_number(super + 48, 8);
	uint64_t in_group = start & ((1ULL << super[124]) - 1);
	uint64_t block = (start >> super[124]) * xfs_number(super + 84, 4) + in_group;

	return (struct fs_extent){block * block_bytes, xfs_number(super + 96, 4) * block_bytes};
}

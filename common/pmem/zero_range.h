/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zero_range.h - zeroes a device, or what identifies its content.
 *
 * The caller holds the exclusive descriptor. Threads: safe. Blocks for as long as the device needs.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define ZERO_ENDS_BYTES (1ULL << 20)
#define ZERO_UNIT_BYTES (64ULL << 10)

/** zero_ends() - zero the first and last MiB (file system, LVM and partition signatures). Return: 0, or -1
 * as blockdev_zero(). */
int zero_ends(int fd, uint64_t size_bytes, struct error **err) MUST_CHECK;

/** zero_range() - zero a range, durably. @offset, @length: multiples of ZERO_UNIT_BYTES, but for the end
 * of the device. Idempotent. Return: 0, or -1 as blockdev_zero(). */
int zero_range(int fd, uint64_t offset, uint64_t length, struct error **err) MUST_CHECK;

/**
 * zero_around() - zero a range as zero_range() does, but for blocks that can be neither written nor read,
 * because the memory below them has lost its content and the platform cannot repair it.
 * @may_skip_bytes: how many such bytes the device has at most, as the kernel's list of bad blocks says; those
 *                  that are left out are subtracted
 *
 * Return: 0, or -1 with ERR_EXHAUSTED (a block cannot be written, but can be read, or more fail than may), or
 * as blockdev_zero().
 */
int zero_around(
	int fd, uint64_t offset, uint64_t length, uint64_t *may_skip_bytes, struct error **err) MUST_CHECK;

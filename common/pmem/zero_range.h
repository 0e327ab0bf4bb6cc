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
 * with ERR_INTERNAL. */
int zero_ends(int fd, uint64_t size_bytes, struct error **err) MUST_CHECK;

/** zero_range() - zero a range, durably. @offset, @length: multiples of ZERO_UNIT_BYTES, but for the end
 * of the device. Idempotent. Return: 0, or -1 with ERR_INTERNAL. */
int zero_range(int fd, uint64_t offset, uint64_t length, struct error **err) MUST_CHECK;

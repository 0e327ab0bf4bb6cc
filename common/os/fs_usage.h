/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_usage.h - how full a file system is, asked under a deadline.
 *
 * statfs(2) of a file system whose device hangs cannot be interrupted. So helper threads ask, at most one per
 * file system and a fixed number in all: whoever asks meanwhile for the same one waits for the same answer,
 * and one that hangs costs one thread, whatever the number of callers. A helper that comes back ends.
 * Threads: safe. Blocks up to the deadline.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct fs_usage_helpers;

struct fs_usage {
	uint64_t total_bytes;
	uint64_t used_bytes;
	uint64_t available_bytes; /* to users without privileges */
	uint64_t total_inodes;
	uint64_t used_inodes;
	uint64_t available_inodes;
};

/** fs_usage_helpers_new() - @max: threads at most. None is started yet. Return: never NULL;
 * fs_usage_helpers_free(). */
struct fs_usage_helpers *fs_usage_helpers_new(size_t max);

/** fs_usage_helpers_free() - nobody may wait any more. Helpers that hang are left behind, and release what is
 * theirs should they come back. NULL is allowed. */
void fs_usage_helpers_free(struct fs_usage_helpers *h);

/**
 * fs_usage_read() - ask for the numbers of a file system.
 * @h:          helpers
 * @fd:         O_PATH descriptor in it; borrowed
 * @dev:        its device number, by which questions are joined
 * @timeout_ms: how long to wait
 * @ret:        filled on success
 * @err:        see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_DEADLINE (no answer in time), ERR_UNAVAILABLE (all helpers hang), ERR_INTERNAL.
 */
int fs_usage_read(struct fs_usage_helpers *h, int fd, dev_t dev, int timeout_ms, struct fs_usage *ret,
	struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_usage.h - reads how full a file system is, with a deadline.
 *
 * statfs(2) of a file system whose device hangs cannot be interrupted. So helper threads make the call, at
 * most one per file system and a fixed number in all. Further callers for the same file system wait for the
 * same answer, so a file system that hangs costs one thread, whatever the number of callers. A helper ends
 * when its call returns. Threads: safe. Blocks up to the deadline.
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
	int refusal; /* errno with which its folder cannot be opened, EIO if xfs has shut itself down; 0: it
			can */
};

/** fs_usage_helpers_new() - @max: threads at most. None is started yet. Return: never NULL;
 * fs_usage_helpers_free(). */
struct fs_usage_helpers *fs_usage_helpers_new(size_t max);

/** fs_usage_helpers_free() - to be called when no caller waits. Helpers that hang stay, and release their
 * memory if their call ever returns. NULL is allowed. */
void fs_usage_helpers_free(struct fs_usage_helpers *h);

/**
 * fs_usage_read() - read the size and free space of a file system.
 * @fd:         O_PATH descriptor in it; borrowed
 * @dev:        its device number, by which callers share one call
 * @timeout_ms: how long to wait
 * @ret:        filled on success
 *
 * Return: 0, or -1 with ERR_DEADLINE (no answer in time), ERR_UNAVAILABLE (all helpers hang), ERR_INTERNAL.
 */
int fs_usage_read(struct fs_usage_helpers *h, int fd, dev_t dev, int timeout_ms, struct fs_usage *ret,
	struct error **err) MUST_CHECK;

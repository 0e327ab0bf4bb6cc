/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_sync.h - asks the kernel whether it maps files of a file system with MAP_SYNC.
 *
 * A file without a name (O_TMPFILE) is made, mapped and closed: no folder shows it at any time, none of its
 * blocks are allocated, and after a crash the file system frees it by itself. Making it can hang with the
 * device, and cannot be interrupted then: a thread does it, which is left behind when it is not done in
 * time.
 */
#pragma once

#include "base/error.h"
#include "pmem/durability.h"

/**
 * map_sync_try() - map one page of a file with MAP_SYNC.
 * @dir_fd:     a folder of a file system that is mounted with DAX, and not read-only; borrowed
 * @timeout_ms: how long to wait
 * @ret:        DURABILITY_UNKNOWN: files of that file system have no DAX, so that it says nothing
 *
 * Threads: safe. Blocks for at most @timeout_ms. Idempotent. Return: 0, or -1 with ERR_DEADLINE (a thread
 * that has a descriptor of the file system goes on to wait), ERR_UNAVAILABLE (no thread), ERR_INTERNAL (no
 * file can be made, such as on a full file system). Source: mmap(2); fs/ext4/file.c, ext4_file_mmap().
 */
int map_sync_try(int dir_fd, int timeout_ms, enum durability *ret, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - flock(2) between processes. The lock lives as long as the descriptor. Threads: safe.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/**
 * host_lock() - take an exclusive lock on file @name in @dir_fd, creating it with mode 0600.
 * @dir_fd:     directory, or AT_FDCWD with an absolute @name
 * @timeout_ms: 0 tries once; otherwise waits that long
 * @ret_fd:     holds the lock until closed
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (held by another process; the message names the file and, where it
 * can be seen, the process), ERR_INTERNAL.
 */
int host_lock(int dir_fd, const char *name, int timeout_ms, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * host_lock_holder() - find the process that has the lock, without trying to take it, which could make
 * another process fail.
 * @dir_fd: as host_lock()
 * @ret:    0: no holder is found, because the lock is free, or because our /proc does not show the holder
 *
 * Source: proc(5), /proc/locks. Return: 0, or -1 with ERR_INTERNAL.
 */
int host_lock_holder(int dir_fd, const char *name, pid_t *ret, struct error **err) MUST_CHECK;

/**
 * host_lock_run() - host_lock() on file @name in /run/pmem-csi, the folder that all our programs on a host
 * share. It is made (mode 0700) if it is missing. It must belong to the user of this process, must not be a
 * symbolic link, and must not be writable for other users: in a folder like /run/lock every user could hold
 * the lock for ever.
 *
 * Parameters as host_lock(). Return: 0, or -1 with ERR_UNAVAILABLE (the folder cannot be made or is not safe;
 * held by another process, which the message names as far as it can be known), ERR_INTERNAL.
 */
int host_lock_run(const char *name, int timeout_ms, int *ret_fd, struct error **err) MUST_CHECK;

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
 * @err:        see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (held by another process; the message names the file), ERR_INTERNAL.
 */
int host_lock(int dir_fd, const char *name, int timeout_ms, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * host_lock_holder() - which process has that lock, without trying it: a try could make another fail.
 * @dir_fd: as host_lock()
 * @ret:    0: none is seen, because it is free, or its holder is out of sight of our /proc
 *
 * Source: proc(5), /proc/locks. Return: 0, or -1 with ERR_INTERNAL.
 */
int host_lock_holder(int dir_fd, const char *name, pid_t *ret, struct error **err) MUST_CHECK;

/**
 * host_lock_run() - host_lock() on file @name in /run/lock/pmem-csi, the folder that all our programs share;
 * it is made if it is missing. Parameters and return as host_lock().
 */
int host_lock_run(const char *name, int timeout_ms, int *ret_fd, struct error **err) MUST_CHECK;

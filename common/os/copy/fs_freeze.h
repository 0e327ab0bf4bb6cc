/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_freeze.h - keeps a mounted file system, or a mapped device, still for a moment, so that it can be
 * copied.
 *
 * A frozen file system makes every process wait that writes to it, and not even SIGKILL ends that wait. So a
 * watchdog thaws it after a fixed time, also when the caller hangs in a read of the device. What ends the
 * process ends the watchdog, too: a caller records that it is going to freeze, and fs_thaw() is for the next
 * process that finds such a record. Threads: one owner of a struct fs_freeze at a time. Blocks on the file
 * system.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct fs_freeze;

/**
 * fs_freeze_begin() - write what is in the page cache, and make all writers wait.
 * @dir_fd:       directory of the file system, open for reading; borrowed until the call returns
 * @max_pause_ms: writers wait so long at most, from the beginning of this call on
 * @ret:          fs_freeze_end()
 *
 * Stores through mappings of an xfs with DAX may go on: fs_flush_files() stops those. Return: 0, or -1 with
 * ERR_ABORTED (frozen by another program), ERR_DEADLINE (freezing took longer than @max_pause_ms; it is
 * thawed again), ERR_PRECONDITION (it cannot be frozen), ERR_UNAVAILABLE (no thread for the watchdog),
 * ERR_INTERNAL.
 */
int fs_freeze_begin(int dir_fd, int max_pause_ms, struct fs_freeze **ret, struct error **err) MUST_CHECK;

/** fs_freeze_begin_device() - the same by suspending a mapped device that is not mounted, which nothing can
 * read then; what its page cache has is not written. The other functions say "resumed" instead of "thawed".
 * Return: 0, or -1 with ERR_ABORTED (suspended by another program), ERR_DEADLINE, ERR_PRECONDITION (no mapped
 * device), ERR_UNAVAILABLE, ERR_INTERNAL. */
int fs_freeze_begin_device(
	dev_t dev, int max_pause_ms, struct fs_freeze **ret, struct error **err) MUST_CHECK;

/** fs_freeze_holds() - whether writers still wait: false once the watchdog has begun to thaw, and what is
 * read from then on is worthless. Threads: safe. */
bool fs_freeze_holds(const struct fs_freeze *f);

/**
 * fs_freeze_end() - thaw the file system and release @f, also after failure.
 * @ret_pause_ns: how long writers had to wait at most, also after failure; nanoseconds; NULL: not needed
 *
 * Return: 0: it was frozen until this call; or -1: what was read meanwhile is worthless: ERR_DEADLINE (the
 * watchdog has thawed it), ERR_ABORTED (another program has), ERR_INTERNAL (it cannot be thawed, and writers
 * still wait).
 */
int fs_freeze_end(struct fs_freeze *f, uint64_t *ret_pause_ns, struct error **err) MUST_CHECK;

/**
 * fs_thaw() - thaw a file system that another process may have left frozen.
 * @dir_fd:         directory of the file system, open for reading, through whichever mount
 * @ret_was_frozen: whether it was
 *
 * A file system stays frozen when it is unmounted and mounted again. Idempotent. Return: 0, or -1 with
 * ERR_INTERNAL.
 */
int fs_thaw(int dir_fd, bool *ret_was_frozen, struct error **err) MUST_CHECK;

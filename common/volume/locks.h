/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.h - one lock per volume ID. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct volume_locks;
struct volume_lock;

/** volume_locks_new() - make a table in which nothing is locked. Return: never NULL; volume_locks_free(). */
struct volume_locks *volume_locks_new(void);

/** volume_locks_free() - release @t, of which no lock may be held. NULL is allowed. */
void volume_locks_free(struct volume_locks *t);
DEFINE_CLEANUP(struct volume_locks *, volume_locks_free);

/**
 * volume_lock() - take the lock of @id.
 * @wait_ms: 0 for create, delete, stage, unstage; publish and unpublish wait up to 2000 for each other
 * @ret:     volume_unlock()
 * Return: 0, or -1 with ERR_ABORTED ("an operation on volume ... is in progress", and what it is doing).
 */
int volume_lock(struct volume_locks *t, const char *id, int wait_ms, struct volume_lock **ret,
	struct error **err) MUST_CHECK;

/**
 * volume_lock_if() - take the lock of @id if it is free and @wanted returns true. Both are checked
 * atomically, so that background work that has nothing to do never makes a call fail because the volume is
 * locked.
 * @wanted: must not take a lock of this table
 * @ret:    volume_unlock()
 * Return: whether the lock was taken. Never waits.
 */
bool volume_lock_if(struct volume_locks *t, const char *id, bool (*wanted)(void *user, const char *id),
	void *user, struct volume_lock **ret);

/** volume_lock_set_step() - record what the holder of the lock of @id is doing now, for
 * volume_lock_current_step(). @what: static, as "mkfs.ext4". Nothing happens when the lock is free. */
void volume_lock_set_step(struct volume_locks *t, const char *id, const char *what);

/**
 * volume_lock_current_step() - describe what the holder of the lock of @id is doing, and for how long:
 * "volume ID: mkfs.ext4 for 130 s". @id: NULL: of the lock that is held longest, with the number of other
 * locks. Never waits. Return: caller frees; NULL: not held.
 */
char *volume_lock_current_step(struct volume_locks *t, const char *id);

/** volume_unlock() - release @l and wake the threads that wait for it. NULL is allowed. */
void volume_unlock(struct volume_lock *l);
DEFINE_CLEANUP(struct volume_lock *, volume_unlock);

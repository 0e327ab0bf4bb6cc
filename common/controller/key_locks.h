/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_locks.h - which volumes this process works on, by their keys: calls for one volume exclude each other.
 *
 * Replicas of the controller exclude each other by the version of the volume's record (volume_records.h).
 * Threads: one owner. Nothing blocks.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "controller/volume_key.h"

struct key_locks;

/** key_locks_new() - without any. Return: never NULL; key_locks_free(). */
struct key_locks *key_locks_new(void);
void key_locks_free(struct key_locks *l);
DEFINE_CLEANUP(struct key_locks *, key_locks_free);

/** key_lock() - the volume is being worked on, until key_unlock(). Return: false if it is already. */
bool key_lock(struct key_locks *l, const struct volume_key *key) MUST_CHECK;
void key_unlock(struct key_locks *l, const struct volume_key *key);

/** key_is_locked() - whether it is being worked on. */
bool key_is_locked(const struct key_locks *l, const struct volume_key *key);

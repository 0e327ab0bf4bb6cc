/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempts.h - which volume is being worked on, and which nodes may have begun to make it although nobody has
 * heard so: a retry has to go there again.
 *
 * A volume is known by its key, which its name and all IDs that are made of that name have in common. A node
 * is in its list from before the first call until the node's answer is final. Lists that nobody asked for in
 * ATTEMPT_KEPT_NS are dropped: by then a node has reported what it has. Threads: one owner. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define ATTEMPT_KEPT_NS 3600000000000ULL

/* Hex digits of sha224(name) that every form of ID has (volume/id.h). */
#define VOLUME_KEY_LEN 47

struct volume_key {
	char hex[VOLUME_KEY_LEN + 1];
};

/** volume_key_of_name() - of the volume that is or will be made for @name. */
struct volume_key volume_key_of_name(const char *name);

/** volume_key_of_handle() - of the volume with ID @handle; of a handle in another form one of its own. */
struct volume_key volume_key_of_handle(const char *handle);

struct attempts;

/** attempts_new() - without any. Return: never NULL; attempts_free(). */
struct attempts *attempts_new(void);
void attempts_free(struct attempts *a);
DEFINE_CLEANUP(struct attempts *, attempts_free);

/** attempts_lock() - the volume is being worked on, until attempts_unlock(). Return: false if it is already.
 */
bool attempts_lock(struct attempts *a, const struct volume_key *key, uint64_t now_ns) MUST_CHECK;
void attempts_unlock(struct attempts *a, const struct volume_key *key);

/** attempts_locked() - whether it is being worked on. */
bool attempts_locked(const struct attempts *a, const struct volume_key *key);

/** attempts_begin() - @node_id is about to be asked. Return: false if it was in the list already. */
bool attempts_begin(struct attempts *a, const struct volume_key *key, const char *node_id, uint64_t now_ns);

/** attempts_end() - @node_id has nothing of the volume that its caller does not know of. */
void attempts_end(struct attempts *a, const struct volume_key *key, const char *node_id);

/** attempts_nodes() - the list of @key. Return: strv, borrowed until the next change; NULL: empty. */
char *const *attempts_nodes(const struct attempts *a, const struct volume_key *key);

/** attempts_expire() - drop what was kept long enough, at most once a minute. */
void attempts_expire(struct attempts *a, uint64_t now_ns);

/** attempts_count() - volumes that are being worked on, or have a list. */
size_t attempts_count(const struct attempts *a);

/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/key_locks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/name_index.h"

struct key_lock {
	struct name_link link; /* by key */
	LIST_ENTRY(key_lock) all;
	struct volume_key key;
};

struct key_locks {
	struct name_index index;
	LIST_HEAD(, key_lock) held;
};

struct key_locks *key_locks_new(void)
{
	struct key_locks *l = x_calloc(1, sizeof(*l));

	name_index_init(&l->index);
	LIST_INIT(&l->held);
	return l;
}

static void release(struct key_locks *l, struct key_lock *held)
{
	name_index_remove(&l->index, &held->link);
	LIST_REMOVE(held, all);
	free(held);
}

void key_locks_free(struct key_locks *l)
{
	if (!l)
		return;
	for (struct key_lock *at = LIST_FIRST(&l->held), *next; at; at = next) {
		next = LIST_NEXT(at, all);
		release(l, at);
	}
	name_index_done(&l->index);
	free(l);
}

static struct key_lock *find(const struct key_locks *l, const struct volume_key *key)
{
	return (struct key_lock *)name_index_first(&l->index, key->hex);
}

bool key_lock(struct key_locks *l, const struct volume_key *key)
{
	struct key_lock *held;

	if (find(l, key))
		return false;
	held = x_calloc(1, sizeof(*held));
	held->key = *key;
	LIST_INSERT_HEAD(&l->held, held, all);
	name_index_add(&l->index, &held->link, held->key.hex);
	return true;
}

void key_unlock(struct key_locks *l, const struct volume_key *key)
{
	struct key_lock *held = find(l, key);

	assert(held);
	release(l, held);
}

bool key_is_locked(const struct key_locks *l, const struct volume_key *key)
{
	return find(l, key) != NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/attempts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "volume/id.h"

#define EXPIRE_EVERY_NS (60 * NS_PER_S)

struct attempt {
	struct name_link link;
	struct attempt *next;
	struct attempt *previous;
	struct volume_key key;
	char **nodes; /* strv */
	bool locked;
	uint64_t used_ns;
};

struct attempts {
	struct name_index index;
	struct attempt *first;
	uint64_t expired_ns;
};

struct volume_key volume_key_of_name(const char *name)
{
	struct volume_key key = {0};
	char hex[SHA224_HEX_LEN + 1];

	sha224_hex(name, strlen(name), hex);
	memcpy(key.hex, hex, VOLUME_KEY_LEN);
	return key;
}

struct volume_key volume_key_of_handle(const char *handle)
{
	struct volume_key key = {0};

	if (!volume_id_minted(handle))
		return volume_key_of_name(handle);
	memcpy(key.hex, strrchr(handle, '-') + 1, VOLUME_KEY_LEN);
	return key;
}

struct attempts *attempts_new(void)
{
	struct attempts *a = x_calloc(1, sizeof(*a));

	name_index_init(&a->index);
	return a;
}

static void attempt_free(struct attempts *a, struct attempt *t)
{
	name_index_remove(&a->index, &t->link);
	if (t->next)
		t->next->previous = t->previous;
	*(t->previous ? &t->previous->next : &a->first) = t->next;
	strv_free(t->nodes);
	free(t);
}

void attempts_free(struct attempts *a)
{
	if (!a)
		return;
	while (a->first)
		attempt_free(a, a->first);
	name_index_done(&a->index);
	free(a);
}

static struct attempt *find(const struct attempts *a, const struct volume_key *key)
{
	return (struct attempt *)name_index_first(&a->index, key->hex);
}

static struct attempt *find_or_add(struct attempts *a, const struct volume_key *key, uint64_t now_ns)
{
	struct attempt *t = find(a, key);

	if (!t) {
		t = x_calloc(1, sizeof(*t));
		t->key = *key;
		t->next = a->first;
		if (t->next)
			t->next->previous = t;
		a->first = t;
		name_index_add(&a->index, &t->link, t->key.hex);
	}
	t->used_ns = now_ns;
	return t;
}

static void drop_if_unused(struct attempts *a, struct attempt *t)
{
	if (!t->locked && strv_len(t->nodes) == 0)
		attempt_free(a, t);
}

bool attempts_lock(struct attempts *a, const struct volume_key *key, uint64_t now_ns)
{
	struct attempt *t = find_or_add(a, key, now_ns);

	if (t->locked)
		return false;
	t->locked = true;
	return true;
}

void attempts_unlock(struct attempts *a, const struct volume_key *key)
{
	struct attempt *t = find(a, key);

	assert(t && t->locked);
	t->locked = false;
	drop_if_unused(a, t);
}

bool attempts_locked(const struct attempts *a, const struct volume_key *key)
{
	const struct attempt *t = find(a, key);

	return t && t->locked;
}

bool attempts_begin(struct attempts *a, const struct volume_key *key, const char *node_id, uint64_t now_ns)
{
	struct attempt *t = find_or_add(a, key, now_ns);

	if (strv_contains(t->nodes, node_id))
		return false;
	strv_add(&t->nodes, node_id);
	return true;
}

void attempts_end(struct attempts *a, const struct volume_key *key, const char *node_id)
{
	struct attempt *t = find(a, key);
	size_t n = t ? strv_len(t->nodes) : 0;

	for (size_t i = 0; i < n; i++) {
		if (!str_eq(t->nodes[i], node_id))
			continue;
		free(t->nodes[i]);
		t->nodes[i] = t->nodes[n - 1];
		t->nodes[n - 1] = NULL;
		break;
	}
	if (t)
		drop_if_unused(a, t);
}

char *const *attempts_nodes(const struct attempts *a, const struct volume_key *key)
{
	const struct attempt *t = find(a, key);

	return t && strv_len(t->nodes) > 0 ? t->nodes : NULL;
}

void attempts_expire(struct attempts *a, uint64_t now_ns)
{
	if (now_ns - a->expired_ns < EXPIRE_EVERY_NS)
		return;
	a->expired_ns = now_ns;
	for (struct attempt *t = a->first, *next; t; t = next) {
		next = t->next;
		if (!t->locked && now_ns - t->used_ns >= ATTEMPT_KEPT_NS)
			attempt_free(a, t);
	}
}

size_t attempts_count(const struct attempts *a)
{
	return a->index.n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/volume_concerns.h"

#include <string.h>

#include "base/str.h"

void volume_concerns_init(struct volume_concerns *c)
{
	c->memory = slabs_new();
	name_index_init(&c->index);
	LIST_INIT(&c->all);
}

void volume_concerns_done(struct volume_concerns *c)
{
	for (struct concern *at = LIST_FIRST(&c->all), *next; at; at = next) {
		next = LIST_NEXT(at, all);
		volume_concerns_free(c, at);
	}
	slabs_free(c->memory);
	name_index_done(&c->index);
}

struct concern *volume_concerns_find(const struct volume_concerns *c, const char *key)
{
	struct name_link *link = name_index_first(&c->index, key);

	return link ? OWNER_OF(link, struct concern, link) : NULL;
}

static char *copy_text(struct volume_concerns *c, const char *text)
{
	size_t n = strlen(text) + 1;

	return memcpy(slabs_alloc(c->memory, n), text, n);
}

struct concern *volume_concerns_note(struct volume_concerns *c, const char *key, uint64_t now_ns)
{
	struct concern *concern = volume_concerns_find(c, key);
	size_t n = strlen(key) + 1;

	if (concern)
		return concern;
	concern = slabs_alloc(c->memory, sizeof(*concern) + n);
	memcpy(concern->key, key, n);
	concern->since_ns = now_ns;
	LIST_INSERT_HEAD(&c->all, concern, all);
	name_index_add(&c->index, &concern->link, concern->key);
	return concern;
}

void volume_concerns_note_handle(
	struct volume_concerns *c, const char *key, const char *handle, uint64_t now_ns)
{
	struct concern *concern = volume_concerns_note(c, key, now_ns);

	slabs_release(c->memory, concern->handle);
	concern->handle = copy_text(c, handle);
}

struct concern *volume_concerns_note_version(
	struct volume_concerns *c, const char *key, const char *version, uint64_t now_ns)
{
	struct concern *concern = volume_concerns_find(c, key);

	if (concern && str_eq(concern->version, version))
		return concern;
	volume_concerns_forget(c, key);
	concern = volume_concerns_note(c, key, now_ns);
	concern->version = version ? copy_text(c, version) : NULL;
	return concern;
}

void volume_concerns_free(struct volume_concerns *c, struct concern *concern)
{
	name_index_remove(&c->index, &concern->link);
	LIST_REMOVE(concern, all);
	slabs_release(c->memory, concern->handle);
	slabs_release(c->memory, concern->version);
	slabs_release(c->memory, concern);
}

void volume_concerns_forget(struct volume_concerns *c, const char *key)
{
	struct concern *concern = volume_concerns_find(c, key);

	if (concern)
		volume_concerns_free(c, concern);
}

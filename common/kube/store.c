/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void kube_store_init(struct kube_store *s, const struct kube_kind *kind)
{
	*s = (struct kube_store){.kind = kind};
	name_index_init(&s->index);
}

void kube_store_done(struct kube_store *s)
{
	while (s->first)
		kube_object_free(s->kind, kube_store_remove(s, s->first));
	name_index_done(&s->index);
}

/* The link is the first member. */
struct kube_stored *kube_store_get(const struct kube_store *s, const char *key)
{
	return (struct kube_stored *)name_index_first(&s->index, key);
}

/* Most objects have no namespace: their name is the key. */
static void add(struct kube_store *s, const char *key, void *object)
{
	const struct kube_meta *meta = object;
	bool is_name = str_eq(key, meta->name);
	size_t n = is_name ? 0 : strlen(key) + 1;
	struct kube_stored *e = x_calloc(1, sizeof(*e) + n);

	memcpy(e->key, key, n);
	e->object = object;
	e->seen = true;
	e->next = s->first;
	e->place = &s->first;
	if (e->next)
		e->next->place = &e->next;
	s->first = e;
	name_index_add(&s->index, &e->link, is_name ? meta->name : e->key);
}

void *kube_store_put(struct kube_store *s, const char *key, void *object)
{
	struct kube_stored *e = kube_store_get(s, key);
	void *old = e ? kube_store_remove(s, e) : NULL;

	add(s, key, object);
	return old;
}

void *kube_store_remove(struct kube_store *s, struct kube_stored *e)
{
	void *object = e->object;

	name_index_remove(&s->index, &e->link);
	*e->place = e->next;
	if (e->next)
		e->next->place = e->place;
	free(e);
	return object;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

static struct kube_stored *add(struct kube_store *s, const char *key)
{
	size_t n = strlen(key) + 1;
	struct kube_stored *e = x_calloc(1, sizeof(*e) + n);

	memcpy(e->key, key, n);
	e->next = s->first;
	e->place = &s->first;
	if (e->next)
		e->next->place = &e->next;
	s->first = e;
	name_index_add(&s->index, &e->link, e->key);
	return e;
}

struct kube_stored *kube_store_put(struct kube_store *s, const char *key, void *object, void **ret_old)
{
	struct kube_stored *e = kube_store_get(s, key);

	*ret_old = e ? e->object : NULL;
	if (!e)
		e = add(s, key);
	e->object = object;
	e->seen = true;
	return e;
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

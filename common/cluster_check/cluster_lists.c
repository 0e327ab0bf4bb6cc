/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sorted.h"

static void list_done(struct cluster_list *l, const struct kube_kind *kind)
{
	for (size_t i = 0; i < l->n; i++)
		kube_object_free(kind, l->objects[i]);
	free(l->objects);
	*l = (struct cluster_list){0};
}

void cluster_lists_done(struct cluster_lists *l)
{
	list_done(&l->pvs, &kube_kind_volumes);
	list_done(&l->claims, &kube_kind_claims);
	list_done(&l->classes, &kube_kind_classes);
	list_done(&l->nodes, &kube_kind_nodes);
	list_done(&l->chosen, &kube_kind_nodes);
	list_done(&l->csi_nodes, &kube_kind_csi_nodes);
	list_done(&l->capacities, &kube_kind_capacities);
	list_done(&l->pmem_nodes, &kube_kind_pmem_nodes);
	list_done(&l->pmem_volumes, &kube_kind_pmem_volumes);
}

void cluster_list_add(struct cluster_list *l, void *object)
{
	l->objects = x_realloc(l->objects, l->n + 1, sizeof(*l->objects));
	l->objects[l->n++] = object;
}

static int compare_slots(const void *a, const void *b)
{
	const struct cluster_slot *x = a;
	const struct cluster_slot *y = b;

	return strcmp(x->key, y->key);
}

static int compare_key(const void *element, const void *key)
{
	const struct cluster_slot *s = element;

	return strcmp(s->key, key);
}

struct cluster_index cluster_index_make(const struct cluster_list *l,
	const char *(*key_of)(const void *object, const void *user), const void *user)
{
	struct cluster_index x = {.slots = x_calloc(l->n + 1, sizeof(*x.slots))};

	for (size_t i = 0; i < l->n; i++) {
		const char *key = key_of(l->objects[i], user);

		if (key)
			x.slots[x.n++] = (struct cluster_slot){key, l->objects[i]};
	}
	qsort(x.slots, x.n, sizeof(*x.slots), compare_slots);
	return x;
}

const void *cluster_index_get(const struct cluster_index *x, const char *key)
{
	bool found;
	size_t at = sorted_find(x->slots, x->n, sizeof(*x->slots), key, compare_key, &found);

	return found ? x->slots[at].object : NULL;
}

void cluster_index_done(struct cluster_index *x)
{
	free(x->slots);
	*x = (struct cluster_index){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/convert.h"

#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"

Csi__V1__Topology *csi_topology(const char *driver_name, const char *node_id, struct arena *arena)
{
	Csi__V1__Topology *t = arena_alloc(arena, sizeof(*t));
	Csi__V1__Topology__SegmentsEntry *entry = arena_alloc(arena, sizeof(*entry));
	CLEANUP(free_charp) char *key = name_topology_key(driver_name);

	csi__v1__topology__init(t);
	csi__v1__topology__segments_entry__init(entry);
	entry->key = arena_strdup(arena, key);
	entry->value = arena_strdup(arena, node_id);
	t->n_segments = 1;
	t->segments = arena_alloc(arena, sizeof(*t->segments));
	t->segments[0] = entry;
	return t;
}

const char *csi_topology_node(const char *driver_name, const Csi__V1__Topology *t)
{
	CLEANUP(free_charp) char *key = name_topology_key(driver_name);

	for (size_t i = 0; i < t->n_segments; i++) {
		if (str_eq(t->segments[i]->key, key))
			return t->segments[i]->value;
	}
	return NULL;
}

int csi_topology_check(const char *driver_name, const Csi__V1__Topology *t, struct error **err)
{
	CLEANUP(free_charp) char *key = name_topology_key(driver_name);

	for (size_t i = 0; t && i < t->n_segments; i++) {
		if (!str_eq(t->segments[i]->key, key))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"topology key \"%s\" is not this driver's: allowedTopologies of its StorageClasses "
				"can only name nodes, with the key \"%s\"",
				t->segments[i]->key, key);
	}
	return 0;
}

int csi_accessibility_check(
	const char *driver_name, const Csi__V1__TopologyRequirement *t, struct error **err)
{
	for (size_t i = 0; t && i < t->n_requisite; i++) {
		if (csi_topology_check(driver_name, t->requisite[i], err) < 0)
			return -1;
	}
	for (size_t i = 0; t && i < t->n_preferred; i++) {
		if (csi_topology_check(driver_name, t->preferred[i], err) < 0)
			return -1;
	}
	return 0;
}

bool csi_topology_is_ours(const struct csi *csi, const Csi__V1__Topology *t)
{
	const char *node_id = csi_topology_node(csi->driver_name, t);

	return !node_id || str_eq(node_id, csi->node_id);
}

static Csi__V1__Volume__VolumeContextEntry *context_entry(
	const char *key, const char *value, struct arena *arena)
{
	Csi__V1__Volume__VolumeContextEntry *entry = arena_alloc(arena, sizeof(*entry));

	csi__v1__volume__volume_context_entry__init(entry);
	entry->key = arena_strdup(arena, key);
	entry->value = arena_strdup(arena, value);
	return entry;
}

void csi_add_claim(Csi__V1__Volume *v, const char *text, const char *namespace_key, const char *name_key,
	struct arena *arena)
{
	if (!text)
		return;
	const char *name = strchr(text, '/') + 1;
	CLEANUP(free_charp) char *namespace = x_strndup(text, (size_t)(name - 1 - text));
	Csi__V1__Volume__VolumeContextEntry **more =
		arena_alloc(arena, (v->n_volume_context + 2) * sizeof(*more));

	for (size_t i = 0; i < v->n_volume_context; i++)
		more[i] = v->volume_context[i];
	more[v->n_volume_context++] = context_entry(namespace_key, namespace, arena);
	more[v->n_volume_context++] = context_entry(name_key, name, arena);
	v->volume_context = more;
}

Csi__V1__Volume *csi_volume(const struct csi *csi, struct arena *arena, const struct volume_info *info)
{
	Csi__V1__Volume *v = arena_alloc(arena, sizeof(*v));

	csi__v1__volume__init(v);
	v->volume_id = arena_strdup(arena, info->id);
	v->capacity_bytes = (int64_t)info->size_bytes;
	v->volume_context = arena_alloc(arena, info->context.n * sizeof(*v->volume_context));
	for (size_t i = 0; i < info->context.n; i++)
		v->volume_context[v->n_volume_context++] =
			context_entry(info->context.entries[i].key, info->context.entries[i].value, arena);
	v->n_accessible_topology = 1;
	v->accessible_topology = arena_alloc(arena, sizeof(*v->accessible_topology));
	v->accessible_topology[0] = csi_topology(csi->driver_name, csi->node_id, arena);
	return v;
}

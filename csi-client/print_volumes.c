/* SPDX-License-Identifier: Apache-2.0 */
#include "print_volumes.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/table.h"

static const char *context_of(const Csi__V1__Volume *v, const char *key)
{
	for (size_t i = 0; i < v->n_volume_context; i++) {
		if (str_eq(v->volume_context[i]->key, key))
			return v->volume_context[i]->value;
	}
	return NULL;
}

/* Both names, or nothing. Return: caller frees. */
static char *pair_of(const Csi__V1__Volume *v, const char *namespace_key, const char *name_key)
{
	const char *namespace = context_of(v, namespace_key);
	const char *name = context_of(v, name_key);

	return namespace && name ? x_asprintf("%s/%s", namespace, name) : NULL;
}

/* Values of all topologies: one per node that has the volume. Return: caller frees. */
static char *nodes_of(const Csi__V1__Volume *v)
{
	CLEANUP(buf_done) struct buf nodes = BUF_INIT(1U << 20);

	for (size_t i = 0; i < v->n_accessible_topology; i++) {
		const Csi__V1__Topology *t = v->accessible_topology[i];

		for (size_t k = 0; k < t->n_segments; k++)
			buf_addf(&nodes, "%s%s", nodes.len > 0 ? "," : "", t->segments[k]->value);
	}
	return x_strdup(buf_str(&nodes));
}

static void add_row(const Csi__V1__ListVolumesResponse__Entry *e, struct table *t)
{
	const Csi__V1__Volume *v = e->volume;
	const Csi__V1__VolumeCondition *c = e->status ? e->status->volume_condition : NULL;

	if (!v)
		return;
	CLEANUP(free_charp) char *nodes = nodes_of(v);
	CLEANUP(free_charp)
	char *claim = pair_of(v, "csi.storage.k8s.io/pvc/namespace", "csi.storage.k8s.io/pvc/name");
	CLEANUP(free_charp)
	char *pod = pair_of(v, "csi.storage.k8s.io/pod.namespace", "csi.storage.k8s.io/pod.name");
	table_cell(t, v->volume_id);
	table_bytes(t, v->capacity_bytes > 0 ? (uint64_t)v->capacity_bytes : 0);
	table_cell(t, nodes);
	table_cell(t, claim ? claim : pod);
	table_cell(t, c && c->abnormal ? c->message : "ok");
}

void list_text(const Csi__V1__ListVolumesResponse *page, struct buf *out)
{
	static const char *const heading[] = {"ID", "SIZE", "NODE", "CLAIM", "CONDITION"};
	CLEANUP(table_done) struct table t = {.n_columns = ARRAY_SIZE(heading)};

	for (size_t i = 0; i < ARRAY_SIZE(heading); i++)
		table_cell(&t, heading[i]);
	for (size_t i = 0; i < page->n_entries; i++)
		add_row(page->entries[i], &t);
	if (page->n_entries > 0)
		table_write(&t, out);
	else
		buf_adds(out, "no volumes\n");
	if (!str_empty(page->next_token))
		buf_addf(out, "more follow: -token %s\n", page->next_token);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The health of volumes, as their nodes have reported it. The health in the last report of a node stays valid
 * when the node is not connected any more: CSI permits that a status is dropped only when its cause has
 * ended. */
#include <stdlib.h>

#include "base/str.h"
#include "controller/controller_private.h"
#include "csi/csi_health.h"
#include "csi/field_limits.h"
#include "csi/reply.h"

static bool exists(const struct volume_report *v)
{
	return !v->snapshot &&
	       (v->phase == PHASE_READY || v->phase == PHASE_MISSING || v->phase == PHASE_DAMAGED);
}

/* Merges the health that several nodes report for a cache volume into one list, with the name of the node in
 * each message. */
static void add_report(struct volume_health *to, const struct node *node, const struct volume_report *v)
{
	CLEANUP(health_done) struct volume_health h = {0};

	health_copy(&h, &v->health);
	health_add_phase(&h, v->phase);
	for (size_t i = 0; i < h.n; i++) {
		if (!health_find(to, h.list[i].reason))
			health_add(to, h.list[i].severity, h.list[i].reason, "node %s: %s",
				node->report.node_id, h.list[i].message);
	}
}

static void add_node(struct health_table *t, const struct node *node)
{
	const struct volume_report *v;
	size_t at = 0;

	while ((v = node_next_volume(node, &at)) != NULL) {
		struct volume_health h = {0};

		if (exists(v))
			add_report(&h, node, v);
		health_table_add(t, v->id, &h);
	}
}

/* Into the first of those with the same ID. */
static void merge(struct health_entry *to, struct health_entry *from)
{
	for (size_t i = 0; i < from->health.n; i++) {
		const struct health_status *s = &from->health.list[i];

		if (!health_find(&to->health, s->reason))
			health_add(&to->health, s->severity, s->reason, "%s", s->message);
	}
	free(from->id);
	health_done(&from->health);
}

static void sort_and_merge(struct health_table *t)
{
	size_t n = 0;

	health_table_sort(t);
	for (size_t i = 0; i < t->n; i++) {
		if (n > 0 && str_eq(t->list[n - 1].id, t->list[i].id))
			merge(&t->list[n - 1], &t->list[i]);
		else
			t->list[n++] = t->list[i];
	}
	t->n = n;
}

int controller_list_health(struct controller *c, struct arena *arena,
	const Csi__V1__ControllerListVolumeHealthRequest *request,
	Csi__V1__ControllerListVolumeHealthResponse *reply, struct error **err)
{
	CLEANUP(health_table_done) struct health_table t = {0};
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->config.nodes, &nodes);

	if (controller_require_inventories(c, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		add_node(&t, nodes[i]);
	sort_and_merge(&t);
	return csi_fill_health_page(request, &t, reply, arena, err);
}

int controller_get_health(struct controller *c, struct arena *arena,
	const Csi__V1__ControllerGetVolumeHealthRequest *request,
	Csi__V1__ControllerGetVolumeHealthResponse *reply, struct error **err)
{
	CLEANUP(health_done) struct volume_health h = {0};
	struct node_hit *hits;
	size_t n_found = 0;

	if (csi_require(request->volume_id, "volume_id", err) < 0)
		return -1;
	size_t n = node_table_find_volume(c->config.nodes, request->volume_id, &hits);
	for (size_t i = 0; i < n; i++) {
		if (!exists(hits[i].volume))
			continue;
		n_found++;
		add_report(&h, hits[i].node, hits[i].volume);
	}
	free(hits);
	if (n_found == 0) {
		if (controller_require_inventories(c, err) < 0)
			return -1;
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", request->volume_id);
	}
	reply->volume_health = csi_volume_health(request->volume_id, &h, arena);
	return 0;
}

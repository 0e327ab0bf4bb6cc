/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/trouble_events.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "nodes/class_capacity.h"
#include "pacing/claim_waits.h"
#include "volume/id.h"

/* Volumes whose claims are looked for at a time: the walk over the claims is multiplied by them. */
#define MAX_TROUBLED 64

/* Limit for the volumes of one node that get Events, so that one node does not use up the limit for all. */
#define MAX_TROUBLED_OF_NODE 8

/* A volume with which something is wrong. */
struct troubled {
	const struct node *node;
	const struct volume_report *volume;
	const struct kube_meta *claim; /* NULL: not found; valid during a tick */
};

/* How many volumes of a node are in trouble, and the first one of each kind, but the worst of those that are
 * ailing. */
struct troubled_node {
	const struct node *node;
	const struct volume_report *worst[MAX_TROUBLED_OF_NODE]; /* by severity_of(), descending */
	size_t n_worst;
	const struct volume_report *missing;
	const struct volume_report *damaged;
	const struct volume_report *ailing;
	size_t n_missing;
	size_t n_damaged;
	size_t n_ailing; /* of those that are neither missing nor damaged */
};

struct trouble_events {
	struct trouble_events_config config;
	struct claim_waits waits; /* of Nodes and claims, by what is_due() makes of them */
	struct troubled troubled[MAX_TROUBLED];
	size_t n_troubled;
	bool has_nameless; /* among the troubled */
	struct troubled_node *troubled_nodes;
	size_t n_troubled_nodes;
	uint64_t now_ns;
};

static bool is_due(struct trouble_events *e, const char *who, const char *reason, const char *message)
{
	CLEANUP(free_charp) char *key = x_asprintf("%s/%s", reason, who);

	return claim_waits_see(&e->waits, key, message, e->now_ns);
}

static void __attribute__((format(printf, 4, 5))) tell_node(
	struct trouble_events *e, const struct node *node, const char *reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP(free_charp) char *message = x_vasprintf(fmt, ap);
	va_end(ap);
	if (is_due(e, node->report.node_id, reason, message))
		e->config.tell_node(e->config.user, node->report.node_id, reason, message, e->now_ns);
}

static void add_troubled(struct trouble_events *e, const struct node *node, const struct volume_report *v)
{
	if (e->n_troubled == MAX_TROUBLED)
		return;
	e->troubled[e->n_troubled++] = (struct troubled){.node = node, .volume = v};
	e->has_nameless = e->has_nameless || str_empty(v->name);
}

/* 0: it is not in trouble. A volume without a device, or with a damaged state file, is as bad as lost
 * data. */
static int severity_of(const struct volume_report *v)
{
	if (v->phase == PHASE_MISSING || v->phase == PHASE_DAMAGED)
		return HEALTH_DATA_LOSS;
	return v->phase == PHASE_READY && v->health.n > 0 ? (int)health_worst(&v->health)->severity : 0;
}

/* After those that are as bad. */
static void note_worst(struct troubled_node *t, const struct volume_report *v)
{
	size_t at = t->n_worst;

	while (at > 0 && severity_of(t->worst[at - 1]) < severity_of(v))
		at--;
	if (at == MAX_TROUBLED_OF_NODE)
		return;
	if (t->n_worst < MAX_TROUBLED_OF_NODE)
		t->n_worst++;
	memmove(&t->worst[at + 1], &t->worst[at], (t->n_worst - 1 - at) * sizeof(t->worst[0]));
	t->worst[at] = v;
}

static void check_volumes(struct trouble_events *e, const struct node *node)
{
	struct troubled_node t = {.node = node};
	const struct volume_report *v;
	size_t at = 0;

	while ((v = node_next_volume(node, &at))) {
		if (severity_of(v) == 0)
			continue;
		note_worst(&t, v);
		if (v->phase == PHASE_READY && (t.n_ailing++ == 0 || severity_of(v) > severity_of(t.ailing)))
			t.ailing = v;
		if (v->phase == PHASE_MISSING && t.n_missing++ == 0)
			t.missing = v;
		if (v->phase == PHASE_DAMAGED && t.n_damaged++ == 0)
			t.damaged = v;
	}
	if (t.n_missing + t.n_damaged + t.n_ailing == 0)
		return;
	e->troubled_nodes = x_realloc(e->troubled_nodes, e->n_troubled_nodes + 1, sizeof(*e->troubled_nodes));
	e->troubled_nodes[e->n_troubled_nodes++] = t;
}

/* The worst of all nodes first. */
static void choose_troubled(struct trouble_events *e)
{
	for (int severity = HEALTH_DATA_LOSS; severity >= HEALTH_DEGRADED; severity--) {
		for (size_t i = 0; i < e->n_troubled_nodes; i++) {
			const struct troubled_node *t = &e->troubled_nodes[i];

			for (size_t k = 0; k < t->n_worst; k++) {
				if (severity_of(t->worst[k]) == severity)
					add_troubled(e, t->node, t->worst[k]);
			}
		}
	}
}

/* A node knows the claim that the volume was made for, unless the state file cannot be read; another one may
 * have it by now. Return: caller frees. */
static char *volume_and_claim(const struct trouble_events *e, const struct volume_report *v)
{
	for (size_t i = 0; i < e->n_troubled; i++) {
		const struct troubled *t = &e->troubled[i];

		if (t->volume == v && t->claim)
			return x_asprintf(
				"volume %s of claim %s/%s", v->id, t->claim->namespace, t->claim->name);
	}
	return v->claim ? x_asprintf("volume %s of claim %s", v->id, v->claim)
			: x_asprintf("volume %s", v->id);
}

static void tell_node_about_volumes(struct trouble_events *e, const struct troubled_node *t)
{
	if (t->missing) {
		CLEANUP(free_charp) char *first = volume_and_claim(e, t->missing);
		tell_node(e, t->node, "VolumeDevicesMissing",
			"the devices of %zu volumes are missing, among them that of %s: a DIMM, namespace "
			"or volume group is missing; pmem-csi-driver doctor on the node says more",
			t->n_missing, first);
	}
	if (t->damaged) {
		CLEANUP(free_charp) char *first = volume_and_claim(e, t->damaged);
		tell_node(e, t->node, "VolumeStateDamaged",
			"%zu state files cannot be read, among them that of %s; pmem-csi-driver check on the "
			"node says what to do",
			t->n_damaged, first);
	}
}

static void tell_node_about_health(struct trouble_events *e, const struct troubled_node *t)
{
	if (!t->ailing)
		return;
	CLEANUP(free_charp) char *first = volume_and_claim(e, t->ailing);
	CLEANUP(free_charp) char *text = health_text(&t->ailing->health);
	tell_node(e, t->node, "VolumesUnhealthy",
		"something is wrong with %zu volumes, among them %s: %s; their PmemVolumes say more",
		t->n_ailing, first, text);
}

static void look_at_pools(struct trouble_events *e, const struct node *node)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < node->report.n_pools; i++) {
		if (node->report.pools[i].incomplete && n++ == 0)
			first = node->report.pools[i].name;
	}
	if (first)
		tell_node(e, node, "PoolIncomplete",
			"%zu pools lack a device, among them %s: nothing new is made there; pmem-csi-driver "
			"doctor "
			"on the node says more",
			n, first);
}

/* A damaged state file has no name, but IDs are made of names. @ids: of @name, unless all have names */
static bool is_of(const struct troubled *t, const char *name, const struct volume_ids *ids)
{
	if (!str_empty(t->volume->name))
		return str_eq(t->volume->name, name);
	return volume_ids_have(ids, t->volume->id, t->node->hash);
}

static const char *reason_of(const struct volume_report *v)
{
	if (v->phase == PHASE_READY)
		return "VolumeUnhealthy";
	return v->phase == PHASE_MISSING ? "VolumeDeviceMissing" : "VolumeStateDamaged";
}

/* Return: caller frees. */
static char *message_of(const struct troubled *t)
{
	if (t->volume->phase == PHASE_READY) {
		CLEANUP(free_charp) char *text = health_text(&t->volume->health);

		return x_asprintf("volume %s on node %s: %s", t->volume->id, t->node->report.node_id, text);
	}
	return x_asprintf(
		t->volume->phase == PHASE_MISSING
			? "node %s does not find the device of volume %s: a DIMM, namespace or volume "
			  "group is "
			  "missing; pmem-csi-driver doctor there says more"
			: "node %s cannot read the state file of volume %s: pods that use it are not "
			  "affected; pmem-csi-driver check there says what to do",
		t->node->report.node_id, t->volume->id);
}

static void tell_claim(struct trouble_events *e, const struct kube_claim *claim, const struct troubled *t)
{
	const char *reason = reason_of(t->volume);
	CLEANUP(free_charp) char *who = x_asprintf("%s/%s", claim->meta.uid, t->node->report.node_id);
	CLEANUP(free_charp) char *message = message_of(t);

	if (is_due(e, who, reason, message))
		e->config.tell_claim(e->config.user, &claim->meta, reason, message, e->now_ns);
}

/* A class may be deleted while its claims stay; static PVs need none. */
static bool is_of_another_driver(const struct trouble_events *e, const struct kube_claim *claim)
{
	const struct kube_class *class;

	if (str_empty(claim->storage_class))
		return false;
	class = informer_get(e->config.classes, claim->storage_class);
	return class && !class_is_ours(class, e->config.driver_name);
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct trouble_events *e = user;
	struct volume_ids ids = {0};

	if (str_empty(claim->volume_name) || is_of_another_driver(e, claim))
		return;
	/* On the loop's thread, of each claim of the cluster: not once more than needed. */
	if (e->has_nameless)
		volume_id_mint_all(claim->volume_name, &ids);
	for (size_t i = 0; i < e->n_troubled; i++) {
		if (!is_of(&e->troubled[i], claim->volume_name, &ids))
			continue;
		e->troubled[i].claim = &claim->meta;
		tell_claim(e, claim, &e->troubled[i]);
	}
}

void trouble_events_tick(struct trouble_events *e, uint64_t now_ns)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(e->config.nodes, &nodes);

	e->now_ns = now_ns;
	e->n_troubled = 0;
	e->n_troubled_nodes = 0;
	e->has_nameless = false;
	for (size_t i = 0; i < n; i++) {
		if (!nodes[i]->live)
			continue;
		check_volumes(e, nodes[i]);
		look_at_pools(e, nodes[i]);
	}
	choose_troubled(e);
	if (e->n_troubled > 0 && informer_is_synced(e->config.claims) &&
		informer_is_synced(e->config.classes))
		informer_each(e->config.claims, visit_claim, e);
	for (size_t i = 0; i < e->n_troubled_nodes; i++) {
		tell_node_about_volumes(e, &e->troubled_nodes[i]);
		tell_node_about_health(e, &e->troubled_nodes[i]);
	}
	claim_waits_end(&e->waits);
}

struct trouble_events *trouble_events_new(const struct trouble_events_config *config)
{
	struct trouble_events *e = x_calloc(1, sizeof(*e));

	e->config = *config;
	return e;
}

void trouble_events_free(struct trouble_events *e)
{
	if (!e)
		return;
	claim_waits_done(&e->waits);
	free(e->troubled_nodes);
	free(e);
}

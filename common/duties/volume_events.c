/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/volume_events.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "volume/durability/volume_dax.h"

/* A volume whose claim is looked for. */
struct subject {
	const struct volume_events *events;
	const struct pmem_volume *volume;
	const struct kube_claim *claim; /* that was found */
};

static bool is_unreachable(const struct pmem_volume *v)
{
	return str_eq(v->phase, "Unreachable");
}

/* The first status of a record does not count: it may repeat that of a record that was removed. */
static bool was_reachable(const struct pmem_volume *v)
{
	return v->phase && !is_unreachable(v) && !str_eq(v->phase, PMEM_VOLUME_LOST);
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct subject *u = user;

	if (str_eq(claim->volume_name, u->volume->volume_name))
		u->claim = claim;
}

/* The claim that the record shows is looked at first: walking over all of them takes long. */
static const struct kube_claim *find_claim(struct subject *u)
{
	const struct kube_claim *claim =
		u->volume->claim ? informer_get(u->events->claims, u->volume->claim) : NULL;

	if (claim && str_eq(claim->volume_name, u->volume->volume_name))
		return claim;
	informer_each(u->events->claims, visit_claim, u);
	return u->claim;
}

static bool lacked_sync(const struct pmem_volume *before, const char *node)
{
	for (size_t i = 0; i < before->n_copies; i++) {
		if (str_eq(before->copies[i].node, node))
			return before->copies[i].lacks_sync;
	}
	return false;
}

static void tell_lack(const struct volume_events *e, const struct pmem_volume *v,
	const struct pmem_volume_copy *c, uint64_t now_ns)
{
	const struct kube_claim *claim = find_claim(&(struct subject){.events = e, .volume = v});
	bool has_dax = str_eq(c->dax, volume_dax_name(VOLUME_DAX_FSYNC));

	if (!claim)
		return;
	CLEANUP(free_charp)
	char *message = x_asprintf(
		has_dax ? "the kernel of node %s refuses MAP_SYNC on the memory of volume %s: what its programs store "
			  "through mappings is durable after fsync only; a StorageClass with durability=fsync "
			  "says that this will do"
			: "on node %s, volume %s with usage=AppDirect is mounted without DAX",
		c->node, v->handle);
	e->tell_claim(
		e->user, &claim->meta, has_dax ? "MapSyncRefused" : "MountedWithoutDAX", message, now_ns);
}

/* Again with each time that it is mounted. */
static void tell_lacks(const struct volume_events *e, const struct pmem_volume *before,
	const struct pmem_volume *after, uint64_t now_ns)
{
	for (size_t i = 0; !str_empty(after->volume_name) && i < after->n_copies; i++) {
		const struct pmem_volume_copy *c = &after->copies[i];

		if (c->lacks_sync && !lacked_sync(before, c->node))
			tell_lack(e, after, c, now_ns);
	}
}

void volume_events_changed(const struct volume_events *e, const struct pmem_volume *before,
	const struct pmem_volume *after, uint64_t now_ns)
{
	const struct pmem_condition *ready;
	const struct kube_claim *claim;
	CLEANUP(free_charp) char *message = NULL;

	if (before && after)
		tell_lacks(e, before, after, now_ns);
	if (!before || !after || !was_reachable(before) || !is_unreachable(after) ||
		str_empty(after->volume_name))
		return;
	ready = pmem_condition_find(&after->conditions, "Ready");
	message = x_asprintf("volume %s on %s is unreachable: %s", after->handle, after->location,
		ready ? ready->message : "no node reports it");
	claim = find_claim(&(struct subject){.events = e, .volume = after});
	if (claim)
		e->tell_claim(e->user, &claim->meta, "VolumeUnreachable", message, now_ns);
}

/* A node that the record does not name is not believed. */
static void tell_pause(const struct volume_events *e, const struct pmem_volume *record,
	const struct node *node, const struct volume_report *v, uint64_t now_ns)
{
	const char *node_id = node->report.node_id;
	const struct kube_claim *claim;

	if (!record || str_empty(record->volume_name) || !pmem_volume_has_node(record, node_id))
		return;
	claim = find_claim(&(struct subject){.events = e, .volume = record});
	if (!claim)
		return;
	CLEANUP(free_charp)
	char *message =
		x_asprintf("the writers of volume %s on node %s stood still for %ju ms, so that it could be "
			   "copied",
			v->id, node_id, (uintmax_t)v->pause.ms);
	e->inform_claim(e->user, &claim->meta, "WritersPaused", message, now_ns);
}

void volume_events_reported(const struct volume_events *e, const struct node *node,
	const struct pmem_volume *(*find)(void *user, const char *handle), void *user, uint64_t now_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < node->report.n_volumes && n < VOLUME_EVENTS_PAUSES_MAX; i++) {
		const struct volume_report *v = &node->report.volumes[i];

		if (!v->pause_is_new)
			continue;
		tell_pause(e, find(user, v->id), node, v, now_ns);
		n++;
	}
}

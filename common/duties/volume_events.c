/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/volume_events.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"

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

void volume_events_changed(const struct volume_events *e, const struct pmem_volume *before,
	const struct pmem_volume *after, uint64_t now_ns)
{
	const struct pmem_condition *ready;
	const struct kube_claim *claim;
	CLEANUP(free_charp) char *message = NULL;

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

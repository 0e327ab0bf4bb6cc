/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/volume_events.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"

struct unreachable {
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
	struct unreachable *u = user;

	if (str_eq(claim->volume_name, u->volume->volume_name))
		u->claim = claim;
}

/* The claim that the record shows is looked at first: walking over all of them takes long. */
static const struct kube_claim *find_claim(struct unreachable *u)
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
	claim = find_claim(&(struct unreachable){.events = e, .volume = after});
	if (claim)
		e->tell_claim(e->user, &claim->meta, "VolumeUnreachable", message, now_ns);
}

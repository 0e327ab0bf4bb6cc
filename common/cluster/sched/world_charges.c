/* SPDX-License-Identifier: Apache-2.0 */
/* What the watches say of volumes on their way. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/sched/world_private.h"

static bool is_bound(const struct kube_claim *claim)
{
	return !str_empty(claim->volume_name);
}

static void undecided(struct sched_world *w, const struct kube_claim *claim)
{
	CLEANUP(free_charp) char *name = x_asprintf("pvc-%s", claim->meta.uid);

	sched_charges_undecided(w->charges, name);
}

static void need_done(struct sched_need *need)
{
	free(need->name);
	free(need->what);
}

static void decided(struct sched_world *w, const struct kube_claim *claim, const char *node_id)
{
	CLEANUP(need_done) struct sched_need need = {0};
	const struct kube_class *class = world_class(w, claim);

	if (!class || str_empty(node_id))
		return;
	world_claim_need(claim, class, &need);
	sched_charges_decided(w->charges, need.name, node_id, need.size_bytes, need.sector);
}

/* What a pod or a claim says, the claim itself and the inventory come by different ways. */
static void keep_for_a_while(struct sched_world *w, const struct kube_claim *claim)
{
	struct bound_claim *b = x_calloc(1, sizeof(*b));

	b->name = x_asprintf("pvc-%s", claim->meta.uid);
	b->until_ns = clock_ns() + SCHED_CHARGE_NS;
	*w->bound_end = b;
	w->bound_end = &b->next;
}

/* @old: the same claim, or NULL */
static void claim_is(struct sched_world *w, const struct kube_claim *old, const struct kube_claim *new)
{
	if (old && !str_eq(old->meta.uid, new->meta.uid)) {
		undecided(w, old);
		old = NULL;
	}
	if (is_bound(new)) {
		/* of others the inventories tell */
		if (!old || is_bound(old) || !world_class(w, new))
			return;
		decided(w, new, new->selected_node);
		keep_for_a_while(w, new);
		return;
	}
	if (!str_empty(new->selected_node))
		decided(w, new, new->selected_node);
	else if (old && !str_empty(old->selected_node))
		undecided(w, new);
}

void world_claim_changed(void *user, const char *key, const void *old, const void *new)
{
	struct sched_world *w = user;

	(void)key;
	if (!sched_world_is_synced(w))
		return;
	if (new)
		claim_is(w, old, new);
	else
		undecided(w, old);
}

static void for_each_inline(struct sched_world *w, const struct kube_pod *pod,
	void (*fn)(struct sched_world *w, const struct kube_pod *pod, const struct sched_need *need))
{
	for (size_t i = 0; i < pod->n_volumes; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(need_done) struct sched_need need = {0};

		/* what has no size, the node does not make either */
		if (world_is_inline(w, &pod->volumes[i]) &&
			world_inline_need(pod, &pod->volumes[i], &need, &err) == 0)
			fn(w, pod, &need);
	}
}

static void decide_inline(struct sched_world *w, const struct kube_pod *pod, const struct sched_need *need)
{
	sched_charges_decided(w->charges, need->name, pod->node_name, need->size_bytes, need->sector);
}

static void forget_inline(struct sched_world *w, const struct kube_pod *pod, const struct sched_need *need)
{
	(void)pod;
	sched_charges_undecided(w->charges, need->name);
}

/* Claims without a selected node of their own go where the pod goes. It may have been put there by hand: then
 * nobody makes their volumes. */
static void decide_claims(struct sched_world *w, const struct kube_pod *pod)
{
	for (size_t i = 0; i < pod->n_volumes; i++) {
		CLEANUP(free_charp) char *name = kube_pod_claim(pod, &pod->volumes[i]);
		CLEANUP(free_charp) char *key = NULL;
		const struct kube_claim *claim;

		if (!name)
			continue;
		key = x_asprintf("%s/%s", pod->meta.namespace, name);
		claim = informer_get(w->claims, key);
		if (!claim || is_bound(claim))
			continue;
		decided(w, claim, pod->node_name);
		if (str_empty(claim->selected_node))
			keep_for_a_while(w, claim);
	}
}

static void pod_is(struct sched_world *w, const struct kube_pod *old, const struct kube_pod *new)
{
	bool had_node = old && !str_empty(old->node_name);

	if (!str_empty(new->node_name) && !had_node) {
		for_each_inline(w, new, decide_inline);
		decide_claims(w, new);
	}
	if (str_empty(new->node_name) && new->unscheduled && (!old || old->unscheduled != new->unscheduled))
		sched_charges_unscheduled(w->charges, new->meta.uid, world_version(&new->meta),
			new->unscheduled_since, old && old->unscheduled);
}

static void see_pod(void *user, const void *object)
{
	const struct kube_pod *pod = object;
	const struct sched_world *w = user;

	sched_charges_seen(w->charges, pod->meta.uid, w->now_ns);
}

void world_see_pods(struct sched_world *w, uint64_t now_ns)
{
	w->now_ns = now_ns;
	informer_each(w->pods, see_pod, w);
}

static void pod_is_gone(struct sched_world *w, const struct kube_pod *pod)
{
	for_each_inline(w, pod, forget_inline);
	sched_charges_drop(w->charges, pod->meta.uid);
}

void world_pod_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct kube_pod *pod = new;
	const struct kube_pod *before = old;
	struct sched_world *w = user;

	(void)key;
	if (!sched_world_is_synced(w))
		return;
	if (before && (!pod || !str_eq(pod->meta.uid, before->meta.uid))) {
		pod_is_gone(w, before);
		before = NULL;
	}
	if (pod)
		pod_is(w, before, pod);
}

static void visit_claim(void *user, const void *object)
{
	claim_is(user, NULL, object);
}

static void visit_pod(void *user, const void *object)
{
	pod_is(user, NULL, object);
}

/* Only now is it known which claims are our driver's. */
void world_class_changed(void *user, const char *key, const void *old, const void *new)
{
	struct sched_world *w = user;

	(void)key;
	if (sched_world_is_synced(w) && !old && new)
		informer_each(w->claims, visit_claim, w);
}

void world_synced(void *user)
{
	struct sched_world *w = user;

	if (!sched_world_is_synced(w))
		return;
	informer_each(w->claims, visit_claim, w);
	informer_each(w->pods, visit_pod, w);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cluster_view_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/informer.h"
#include "nodes/class_capacity.h"

/* How long after a node has made a volume its PmemNode shows a report with it: the time until a new leader is
 * elected, and several pauses between two changes of the object. */
#define SHOWN_NS (30 * NS_PER_S)

const struct kube_class *cluster_view_class(const struct cluster_view *w, const struct kube_claim *claim)
{
	const struct kube_class *class =
		str_empty(claim->storage_class) ? NULL : informer_get(w->classes, claim->storage_class);

	return class_is_ours(class, w->driver_name) ? class : NULL;
}

const struct pmem_volume *cluster_view_record(const struct cluster_view *w, const char *name)
{
	CLEANUP(free_charp) char *object = pmem_volume_object_name_for(name, w->driver_name);

	return informer_get(w->pmem_volumes, object);
}

/* A node that was asked and has reported neither size nor number may have nothing. */
bool cluster_view_has_copy(const struct pmem_volume_copy *c)
{
	return c->node && !str_eq(c->phase, "Erasing") && (c->size_bytes > 0 || c->report > 0);
}

/* Whether the node does not show yet what the copy takes. */
static bool is_unshown(const struct cluster_view *w, const struct pmem_volume_copy *c)
{
	const struct sched_node *node = c->node ? sched_nodes_get(w->nodes, span_of(c->node)) : NULL;

	return cluster_view_has_copy(c) && node && c->report > node->report;
}

static bool is_on_its_way(void *user, const char *name)
{
	const struct cluster_view *w = user;
	const struct pmem_volume *v = cluster_view_record(w, name);

	for (size_t i = 0; v && i < v->n_copies; i++) {
		if (is_unshown(w, &v->copies[i]))
			return true;
	}
	return false;
}

uint64_t cluster_view_version(const struct kube_meta *m)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t version;

	return m->resource_version && parse_u64(m->resource_version, &version, &ignored) == 0 ? version : 0;
}

static bool is_bound(const struct kube_claim *claim)
{
	return !str_empty(claim->volume_name);
}

static uint64_t for_a_while(void)
{
	return clock_ns() + RESERVATION_NS;
}

/* Ends the reservation for the volume of @claim, which is not made on that node, or is deleted. If PmemVolume
 * names a copy that the node's PmemNode does not show yet, the reservation lasts for RESERVATION_NS more,
 * because the PmemNode still shows the space of that copy as free. */
static void withdraw(struct cluster_view *w, const struct kube_claim *claim)
{
	CLEANUP(free_charp) char *name = kube_claim_volume_name(claim);

	if (is_on_its_way(w, name))
		reservations_end_at(w->reservations, name, for_a_while());
	else
		reservations_withdraw(w->reservations, name);
}

static void note_copies(struct cluster_view *w, const struct pmem_volume *v)
{
	for (size_t i = 0; i < v->n_copies; i++) {
		const struct pmem_volume_copy *c = &v->copies[i];

		if (cluster_view_has_copy(c) && c->report > 0)
			reservations_made(w->reservations, v->volume_name, c->node, c->report);
	}
}

/* The object of the node may show the volume already. */
static void note_new_volume(struct cluster_view *w, const char *name, const char *node_id)
{
	CLEANUP(free_charp) char *object = pmem_node_object_name(node_id, w->driver_name);
	const struct pmem_node *n = informer_get(w->pmem_nodes, object);

	if (n && strv_contains(n->new_volumes, name))
		reservations_made(w->reservations, name, node_id, n->report);
}

/* An object says that the volume of @need is made on @node_id. The node may have made it already. */
static void place(struct cluster_view *w, const struct pod_need *need, const char *node_id, uint64_t until_ns)
{
	const struct sched_item item = {need->size_bytes, need->sector, need->sync};
	const struct pmem_volume *v;

	reservations_place(w->reservations, need->name, node_id, &item, until_ns);
	v = cluster_view_record(w, need->name);
	if (v && v->volume_name)
		note_copies(w, v);
	note_new_volume(w, need->name, node_id);
}

static void place_claim(
	struct cluster_view *w, const struct kube_claim *claim, const char *node_id, uint64_t until_ns)
{
	CLEANUP(pod_need_done) struct pod_need need = {0};
	const struct kube_class *class = cluster_view_class(w, claim);

	if (!class || str_empty(node_id))
		return;
	cluster_view_claim_need(claim, class, &need);
	place(w, &need, node_id, until_ns);
}

/* Nodes report the volumes of others. The objects of a new one come by different routes. */
static void claim_is_bound(struct cluster_view *w, const struct kube_claim *old, const struct kube_claim *new)
{
	CLEANUP(free_charp) char *name = kube_claim_volume_name(new);

	if (!str_eq(new->volume_name, name)) {
		reservations_withdraw(w->reservations, name);
		return;
	}
	if (old && !is_bound(old))
		place_claim(w, new, new->selected_node, for_a_while());
	reservations_end_at(w->reservations, name, for_a_while());
}

/* @old: the same claim, or NULL */
static void claim_is(struct cluster_view *w, const struct kube_claim *old, const struct kube_claim *new)
{
	if (old && !str_eq(old->meta.uid, new->meta.uid)) {
		withdraw(w, old);
		old = NULL;
	}
	if (is_bound(new)) {
		claim_is_bound(w, old, new);
		return;
	}
	bool is_filled = prime_claim_find(w->claims, new) != NULL;
	if (!is_filled && !str_empty(new->selected_node))
		place_claim(w, new, new->selected_node, RESERVATION_FOR_EVER);
	else if (is_filled || (old && !str_empty(old->selected_node)))
		withdraw(w, new);
}

/* A volume is not reserved for a claim while a prime claim fills it. So the target of @prime is examined
 * again when @prime has changed. */
static void target_is(struct cluster_view *w, const struct kube_claim *prime)
{
	const char *uid = prime_claim_target(prime);
	const char *key = uid ? key_index_get(w->unbound, uid) : NULL;
	const struct kube_claim *target = key ? informer_get(w->claims, key) : NULL;

	if (target && str_eq(target->meta.namespace, prime->meta.namespace))
		claim_is(w, /* old= */ NULL, target);
}

static void claim_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct kube_claim *claim = new;
	struct cluster_view *w = user;

	key_index_set(w->unbound, key, claim && !is_bound(claim) ? claim->meta.uid : NULL);
	if (!cluster_view_is_synced(w))
		return;
	if (new)
		claim_is(w, old, new);
	else
		withdraw(w, old);
	target_is(w, new ? new : old);
}

static void for_each_inline(struct cluster_view *w, const struct kube_pod *pod,
	void (*fn)(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need))
{
	for (size_t i = 0; i < pod->n_volumes; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(pod_need_done) struct pod_need need = {0};

		/* what has no size, the node does not make either */
		if (cluster_view_is_inline(w, &pod->volumes[i]) &&
			cluster_view_inline_need(pod, &pod->volumes[i], &need, &err) == 0)
			fn(w, pod, &need);
	}
}

static void place_inline(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need)
{
	place(w, need, pod->node_name, for_a_while());
}

/* A pod that runs has its volumes, and the controller shows what nodes report soon. */
static void end_inline(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need)
{
	(void)pod;
	reservations_end_at(w->reservations, need->name, clock_ns() + SHOWN_NS);
}

static void forget_inline(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need)
{
	(void)pod;
	reservations_withdraw(w->reservations, need->name);
}

/* Claims without a selected node of their own go where the pod goes. If it was put there by
 * hand, their volumes are not made. */
static void place_claims(struct cluster_view *w, const struct kube_pod *pod)
{
	for (size_t i = 0; i < pod->n_volumes; i++) {
		CLEANUP(free_charp) char *name = kube_pod_claim(pod, &pod->volumes[i]);
		CLEANUP(free_charp) char *key = NULL;
		const struct kube_claim *claim;

		if (!name)
			continue;
		key = x_asprintf("%s/%s", pod->meta.namespace, name);
		claim = informer_get(w->claims, key);
		if (claim && !is_bound(claim))
			place_claim(w, claim, pod->node_name,
				str_empty(claim->selected_node) ? for_a_while() : RESERVATION_FOR_EVER);
	}
}

static void pod_is(struct cluster_view *w, const struct kube_pod *old, const struct kube_pod *new)
{
	bool has_node = !str_empty(new->node_name);
	bool had_node = old && !str_empty(old->node_name);

	if (has_node && !had_node)
		place_claims(w, new);
	/* Inline volumes of pods that were already running when this process began are in the reports of the
	 * nodes, and are not reserved. */
	if (has_node && !had_node && (old || !new->is_running))
		for_each_inline(w, new, place_inline);
	if (new->is_running)
		for_each_inline(w, new, end_inline);
	if (!has_node && new->unscheduled && (!old || old->unscheduled != new->unscheduled))
		reservations_unscheduled(w->reservations, new->meta.uid, cluster_view_version(&new->meta),
			new->unscheduled_since, old && old->unscheduled);
}

static void see_pod(void *user, const void *object)
{
	const struct kube_pod *pod = object;
	const struct cluster_view *w = user;

	if (str_empty(pod->node_name))
		reservations_seen(w->reservations, pod->meta.uid, w->now_ns);
}

/* Report to the reservations which pods still exist. */
static void see_pods(struct cluster_view *w, uint64_t now_ns)
{
	w->now_ns = now_ns;
	informer_each(w->pods, see_pod, w);
}

static void pod_is_gone(struct cluster_view *w, const struct kube_pod *pod)
{
	for_each_inline(w, pod, forget_inline);
	reservations_drop_pod(w->reservations, pod->meta.uid);
}

/* Implements struct informer_events; @user: the cluster view. */
static void pod_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct kube_pod *pod = new;
	const struct kube_pod *before = old;
	struct cluster_view *w = user;

	(void)key;
	if (!cluster_view_is_synced(w))
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

/* Volumes that were bound before this process began, and that their nodes do not show yet. */
static void visit_record(void *user, const void *object)
{
	const struct pmem_volume *v = object;
	struct cluster_view *w = user;

	for (size_t i = 0; v->volume_name && i < v->n_copies; i++) {
		const struct pmem_volume_copy *c = &v->copies[i];
		const struct sched_item item = {.size_bytes = c->size_bytes};

		if (!is_unshown(w, c))
			continue;
		reservations_place(w->reservations, v->volume_name, c->node, &item, for_a_while());
		reservations_made(w->reservations, v->volume_name, c->node, c->report);
	}
}

/* Claims of the class may have come before it. */
static void class_changed(void *user, const char *key, const void *old, const void *new)
{
	struct cluster_view *w = user;

	(void)key;
	if (cluster_view_is_synced(w) && !old && new)
		informer_each(w->claims, visit_claim, w);
}

/* One more informer has synced; @user: the cluster view. */
static void on_synced(void *user)
{
	struct cluster_view *w = user;

	if (!cluster_view_is_synced(w))
		return;
	informer_each(w->pmem_volumes, visit_record, w);
	informer_each(w->claims, visit_claim, w);
	informer_each(w->pods, visit_pod, w);
}

static enum webhook_claim find_claim(
	void *user, const char *namespace, const char *name, const char **ret_class)
{
	CLEANUP(free_charp) char *key = x_asprintf("%s/%s", namespace, name);
	const struct cluster_view *w = user;
	const struct kube_claim *claim = informer_get(w->claims, key);

	if (!claim)
		return WEBHOOK_CLAIM_UNKNOWN;
	*ret_class = claim->storage_class;
	return str_empty(claim->volume_name) ? WEBHOOK_CLAIM_UNBOUND : WEBHOOK_CLAIM_BOUND;
}

static bool is_ours(const struct cluster_view *w, const struct kube_class *class)
{
	return class_is_ours(class, w->driver_name) && class->waits_for_consumer;
}

struct default_search {
	const struct cluster_view *cluster;
	bool found;
};

static void visit_class(void *user, const void *object)
{
	const struct kube_class *class = object;
	struct default_search *s = user;

	s->found |= class->is_default && is_ours(s->cluster, class);
}

static enum webhook_class judge_class(void *user, const char *name)
{
	const struct cluster_view *w = user;
	struct default_search search = {.cluster = w};
	const struct kube_class *class;

	if (!name) {
		informer_each(w->classes, visit_class, &search);
		return search.found ? WEBHOOK_CLASS_OURS : WEBHOOK_CLASS_OTHER;
	}
	class = informer_get(w->classes, name);
	if (!class)
		return WEBHOOK_CLASS_UNKNOWN;
	return is_ours(w, class) ? WEBHOOK_CLASS_OURS : WEBHOOK_CLASS_OTHER;
}

struct webhook_cluster cluster_view_webhook(struct cluster_view *w)
{
	return (struct webhook_cluster){.claim = find_claim, .class = judge_class, .user = w};
}

#define SEE_NS (RESERVATION_NS / 3)

static void node_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct pmem_node *n = new ? new : old;
	struct cluster_view *w = user;
	CLEANUP(free_charp) char *name = n->node ? pmem_node_object_name(n->node, w->driver_name) : NULL;

	/* A PmemNode object that a user made may name a node that its own name does not belong to: it is
	 * ignored. */
	if (!str_eq(name, key))
		return;
	if (!new) {
		sched_nodes_remove(w->nodes, n->node);
		return;
	}
	sched_nodes_put(w->nodes, n);
	for (char **volume = n->new_volumes; volume && *volume; volume++)
		reservations_made(w->reservations, *volume, n->node, n->report);
}

static void record_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct pmem_volume *v = new;

	(void)key;
	(void)old;
	if (v && v->volume_name)
		note_copies(user, v);
}

/* Clusters have tens of thousands of objects: the fields that are not read are released. */
static void trim_claim(void *object)
{
	struct kube_claim *c = object;

	free(TAKE_PTR(c->phase));
}

static void trim_volume(void *object)
{
	struct kube_volume *v = object;

	free(TAKE_PTR(v->meta.uid));
	free(TAKE_PTR(v->meta.annotations.block));
	free(TAKE_PTR(v->handle));
	strv_free(TAKE_PTR(v->node_values));
	free(TAKE_PTR(v->storage_class));
	free(TAKE_PTR(v->claim_namespace));
	free(TAKE_PTR(v->claim_name));
	free(TAKE_PTR(v->claim_uid));
	free(TAKE_PTR(v->phase));
}

static void trim_record(void *object)
{
	struct pmem_volume *v = object;

	strv_free(TAKE_PTR(v->meta.finalizers));
	free(TAKE_PTR(v->meta.uid));
	free(TAKE_PTR(v->driver));
	free(TAKE_PTR(v->origin));
	free(TAKE_PTR(v->handle));
	free(TAKE_PTR(v->claim));
	free(TAKE_PTR(v->location));
	strv_free(TAKE_PTR(v->nodes));
	pmem_conditions_done(&v->conditions);
}

static bool keeps_volume(const void *user, const void *object)
{
	const struct kube_volume *v = object;

	return str_eq(v->driver, user);
}

/* A pod that has a node has passed; only its inline volumes may still be on their way. */
static bool keeps_pod(const void *user, const void *object)
{
	const struct kube_pod *p = object;

	for (size_t i = 0; i < p->n_volumes; i++) {
		const struct kube_pod_volume *v = &p->volumes[i];

		if (v->driver ? str_eq(v->driver, user) : str_empty(p->node_name))
			return true;
	}
	return false;
}

/* Watches Pods and PersistentVolumes, which only the requests of kube-scheduler need. */
static void watch_pods_and_volumes(struct cluster_view *w, struct kube_client *client)
{
	static const struct informer_events of_pods = {pod_changed, on_synced};
	static const struct informer_events of_others = {NULL, on_synced};

	w->pod_kind = kube_kind_pods;
	w->pod_kind.keeps = keeps_pod;
	w->pod_kind.keeps_user = w->driver_name;
	w->volume_kind = kube_kind_volumes;
	w->volume_kind.trim = trim_volume;
	w->volume_kind.keeps = keeps_volume;
	w->volume_kind.keeps_user = w->driver_name;
	w->driver_selector = x_asprintf("metadata.name=%s", w->driver_name);
	w->driver_kind = kube_kind_csi_drivers;
	w->driver_kind.field_selector = w->driver_selector;
	w->pods = informer_new(client, &w->pod_kind, &of_pods, w);
	w->volumes = informer_new(client, &w->volume_kind, &of_others, w);
	w->drivers = informer_new(client, &w->driver_kind, &of_others, w);
}

/* Watches the PmemNodes and PmemVolumes that the controllers write. */
static void watch_resources(struct cluster_view *w, struct kube_client *client)
{
	static const struct informer_events of_nodes = {node_changed, on_synced};
	static const struct informer_events of_volumes = {record_changed, on_synced};

	w->label_selector = x_asprintf(PMEM_LABEL_DRIVER "=%s", w->driver_name);
	w->pmem_node_kind = kube_kind_pmem_nodes;
	w->pmem_node_kind.label_selector = w->label_selector;
	w->pmem_volume_kind = kube_kind_pmem_volumes;
	w->pmem_volume_kind.label_selector = w->label_selector;
	w->pmem_volume_kind.trim = trim_record;
	w->pmem_nodes = informer_new(client, &w->pmem_node_kind, &of_nodes, w);
	w->pmem_volumes = informer_new(client, &w->pmem_volume_kind, &of_volumes, w);
}

static void watch_claims_and_classes(struct cluster_view *w, struct kube_client *client)
{
	static const struct informer_events of_claims = {claim_changed, on_synced};
	static const struct informer_events of_classes = {class_changed, on_synced};
	static const struct informer_events none = {NULL, NULL};

	w->unbound = key_index_new();
	w->claim_kind = kube_kind_claims;
	w->claim_kind.trim = trim_claim;
	w->claims = informer_new(client, &w->claim_kind, w->reservations ? &of_claims : &none, w);
	w->classes = informer_new(client, &kube_kind_classes, w->reservations ? &of_classes : &none, w);
}

struct cluster_view *cluster_view_new(struct kube_client *client, const char *driver_name,
	struct sched_nodes *nodes, struct reservations *reservations)
{
	struct cluster_view *w = x_calloc(1, sizeof(*w));

	w->driver_name = x_strdup(driver_name);
	w->nodes = nodes;
	w->reservations = reservations;
	watch_claims_and_classes(w, client);
	if (reservations) {
		watch_resources(w, client);
		watch_pods_and_volumes(w, client);
	}
	return w;
}

void cluster_view_free(struct cluster_view *w)
{
	if (!w)
		return;
	informer_free(w->pods);
	informer_free(w->claims);
	informer_free(w->volumes);
	informer_free(w->classes);
	informer_free(w->drivers);
	informer_free(w->pmem_nodes);
	informer_free(w->pmem_volumes);
	key_index_free(w->unbound);
	free(w->label_selector);
	free(w->driver_selector);
	free(w->driver_name);
	free(w);
}

/* Kinds that are not watched count as synced. */
static bool is_synced(const struct informer *i)
{
	return !i || informer_is_synced(i);
}

bool cluster_view_is_synced(const struct cluster_view *w)
{
	return is_synced(w->pods) && is_synced(w->claims) && is_synced(w->volumes) && is_synced(w->classes) &&
	       is_synced(w->drivers) && is_synced(w->pmem_nodes) && is_synced(w->pmem_volumes);
}

bool cluster_view_is_silent(
	const struct cluster_view *w, uint64_t now_ns, const char **ret_kind, uint64_t *ret_ns)
{
	const struct {
		const struct informer *informer;
		const char *kind;
	} parts[] = {
		{w->pods, "pods"},
		{w->claims, "persistentvolumeclaims"},
		{w->volumes, "persistentvolumes"},
		{w->classes, "storageclasses"},
		{w->drivers, "csidrivers"},
		{w->pmem_nodes, "pmemnodes"},
		{w->pmem_volumes, "pmemvolumes"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct informer *informer = parts[i].informer;
		uint64_t failing_ns = informer ? informer_failing_ns(informer) : 0;

		if (failing_ns == 0 || now_ns - failing_ns <= SCHED_SILENT_NS)
			continue;
		*ret_kind = parts[i].kind;
		*ret_ns = now_ns - failing_ns;
		return true;
	}
	return false;
}

void cluster_view_tick(struct cluster_view *w, uint64_t now_ns)
{
	if (w->reservations)
		reservations_expire(w->reservations, now_ns, is_on_its_way, w);
	if (!w->pods || now_ns - w->seen_ns < SEE_NS)
		return;
	w->seen_ns = now_ns;
	see_pods(w, now_ns);
}

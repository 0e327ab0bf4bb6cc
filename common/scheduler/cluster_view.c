/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cluster_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/informer.h"
#include "kube/objects/objects.h"
#include "nodes/class_capacity.h"
#include "os/fs.h"
#include "pmem/usage.h"

/* A claim that was bound while it counted on a node. */
struct bound_claim {
	struct bound_claim *next;
	char *name;
	uint64_t until_ns;
};

struct cluster_view {
	char *driver_name;
	struct sched_charges *charges; /* NULL: the webhook's part only */
	char *driver_selector;
	struct kube_kind pod_kind;
	struct kube_kind claim_kind;
	struct kube_kind volume_kind;
	struct kube_kind driver_kind;
	struct informer *pods;
	struct informer *claims;
	struct informer *volumes;
	struct informer *classes;
	struct informer *drivers;
	struct bound_claim *bound; /* oldest first */
	struct bound_claim **bound_end;
	uint64_t seen_ns; /* when the charges last got the pods that exist */
	uint64_t now_ns;  /* while they are */
};

static void world_class_changed(void *user, const char *key, const void *old, const void *new);

#define DEFAULT_FS    "ext4" /* as the node's */
#define UID_MAX_BYTES 128    /* of a UUID it is 36 */

/* The class of @claim if it is there and our driver's, or NULL. */
static const struct kube_class *world_class(const struct cluster_view *w, const struct kube_claim *claim)
{
	const struct kube_class *class =
		str_empty(claim->storage_class) ? NULL : informer_get(w->classes, claim->storage_class);

	return class_is_ours(class, w->driver_name) ? class : NULL;
}

/* The name is external-provisioner's (makeVolumeName()). */
static void world_claim_need(
	const struct kube_claim *claim, const struct kube_class *class, struct pod_need *ret)
{
	uint64_t size_bytes = claim->request_bytes ? claim->request_bytes : SCHED_DEFAULT_BYTES;

	*ret = (struct pod_need){
		.name = x_asprintf("pvc-%s", claim->meta.uid),
		.what = x_asprintf("claim %s/%s", claim->meta.namespace, claim->meta.name),
		.size_bytes = class_least_bytes(class, size_bytes, claim->is_block),
		.sector = volume_usage_is_file_io(kube_pairs_get(&class->parameters, "usage")),
	};
}

/* Source: Kubernetes pkg/volume/csi/csi_plugin.go, supportsVolumeLifecycleMode(). */
static bool world_is_inline(const struct cluster_view *w, const struct kube_pod_volume *v)
{
	const struct kube_csi_driver *driver;

	if (!str_eq(v->driver, w->driver_name))
		return false;
	driver = informer_get(w->drivers, w->driver_name);
	return !driver || strv_contains(driver->modes, "Ephemeral");
}

/* Source: Kubernetes pkg/volume/csi/csi_mounter.go, makeVolumeHandle(). */
static char *inline_handle(const struct kube_pod *pod, const struct kube_pod_volume *v)
{
	CLEANUP(free_charp) char *text = x_asprintf("%s%s", pod->meta.uid, v->name);
	char hex[SHA256_HEX_LEN + 1];

	sha256_hex(text, strlen(text), hex);
	return x_asprintf("csi-%s", hex);
}

/* That volume. Return: 0, or -1 with ERR_INVALID_ARGUMENT. @ret: members are the caller's to free. */
static int world_inline_need(
	const struct kube_pod *pod, const struct kube_pod_volume *v, struct pod_need *ret, struct error **err)
{
	const char *size = kube_pairs_get(&v->attributes, "size");
	uint64_t least_bytes = fs_min_bytes(str_empty(v->fs_type) ? DEFAULT_FS : v->fs_type);
	uint64_t size_bytes;

	if (!size)
		return err_set(err, ERR_INVALID_ARGUMENT, "inline volume \"%s\" has no \"size\"", v->name);
	if (parse_quantity(size, &size_bytes, err) < 0)
		return err_wrap(err, "inline volume \"%s\"", v->name);
	if (size_bytes == 0)
		size_bytes = SCHED_DEFAULT_BYTES;
	*ret = (struct pod_need){
		.name = inline_handle(pod, v),
		.what = x_asprintf("inline volume \"%s\"", v->name),
		.size_bytes = size_bytes > least_bytes ? size_bytes : least_bytes,
		.sector = volume_usage_is_file_io(kube_pairs_get(&v->attributes, "usage")),
	};
	return 0;
}

static bool has_need(const struct pod_needs *needs, const char *name)
{
	for (size_t i = 0; i < needs->n; i++) {
		if (str_eq(needs->v[i].name, name))
			return true;
	}
	return false;
}

/* @need: taken, also after a failure */
static int add_need(struct pod_needs *needs, const struct pod_need *need, struct error **err)
{
	bool again = has_need(needs, need->name); /* a pod may name a claim twice */

	if (again || needs->n == POD_NEEDS_MAX) {
		free(need->name);
		free(need->what);
		return again ? 0
			     : err_set(err, ERR_INVALID_ARGUMENT, "a pod of more than %d new volumes",
				       POD_NEEDS_MAX);
	}
	needs->v = x_realloc(needs->v, needs->n + 1, sizeof(*needs->v));
	needs->v[needs->n++] = *need;
	return 0;
}

/* A volume of our driver is on the nodes that its affinity names. */
static int add_home(const struct cluster_view *w, const struct kube_claim *claim, struct pod_needs *needs,
	struct error **err)
{
	const struct kube_volume *volume = informer_get(w->volumes, claim->volume_name);
	CLEANUP(free_charp) char *made = x_asprintf("pvc-%s", claim->meta.uid);
	char **home = NULL;

	/* a claim of our class may have been bound to another driver's volume by hand */
	if (!volume && str_eq(claim->provisioner, w->driver_name) && str_eq(claim->volume_name, made))
		return err_set(err, ERR_UNAVAILABLE, "volume %s of claim %s/%s is not known yet",
			claim->volume_name, claim->meta.namespace, claim->meta.name);
	if (!volume || !volume->node_values)
		return 0;
	for (char **node = volume->node_values; *node; node++)
		strv_add(&home, *node);
	needs->homes = x_realloc(needs->homes, needs->n_homes + 1, sizeof(*needs->homes));
	needs->homes[needs->n_homes++] = home;
	return 0;
}

static int add_claim(const struct cluster_view *w, const struct kube_claim *claim, struct pod_needs *needs,
	struct error **err)
{
	const struct kube_class *class;
	struct pod_need need;

	if (!str_empty(claim->volume_name))
		return add_home(w, claim, needs, err);
	if (str_empty(claim->storage_class))
		return 0;
	if (!informer_get(w->classes, claim->storage_class))
		return err_set(err, ERR_UNAVAILABLE, "storage class %s of claim %s/%s is not known yet",
			claim->storage_class, claim->meta.namespace, claim->meta.name);
	class = world_class(w, claim);
	if (!class || !class->waits_for_consumer)
		return 0;
	world_claim_need(claim, class, &need);
	return add_need(needs, &need, err);
}

static int add_volume(const struct cluster_view *w, const struct kube_pod *pod,
	const struct kube_pod_volume *v, struct pod_needs *needs, struct error **err)
{
	CLEANUP(free_charp) char *name = kube_pod_claim(pod, v);
	CLEANUP(free_charp) char *key = NULL;
	const struct kube_claim *claim;
	struct pod_need need;

	if (!name) {
		if (!world_is_inline(w, v))
			return 0;
		if (world_inline_need(pod, v, &need, err) < 0)
			return -1;
		return add_need(needs, &need, err);
	}
	key = x_asprintf("%s/%s", pod->meta.namespace, name);
	claim = informer_get(w->claims, key);
	if (!claim)
		return err_set(err, ERR_UNAVAILABLE, "claim %s is not known yet", key);
	if (v->is_ephemeral && !str_eq(claim->meta.owner_uid, pod->meta.uid))
		return err_set(err, ERR_PRECONDITION, "claim %s was not made for this pod", key);
	return add_claim(w, claim, needs, err);
}

static void pod_freep(struct kube_pod **p)
{
	if (*p)
		kube_kind_pods.free(*p);
}

/* The resourceVersion as a number, or 0 if it is not one. */
static uint64_t world_version(const struct kube_meta *m)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t version;

	return m->resource_version && parse_u64(m->resource_version, &version, &ignored) == 0 ? version : 0;
}

int cluster_view_pod_needs(const struct cluster_view *w, struct span pod_json, struct pod_needs *ret,
	char **ret_pod_uid, struct error **err)
{
	CLEANUP(pod_freep) struct kube_pod *pod = NULL;
	CLEANUP(pod_needs_done) struct pod_needs needs = {0};
	char now[KUBE_TIME_LEN + 1];

	if (!cluster_view_is_synced(w))
		return err_set(err, ERR_UNAVAILABLE, "the cluster's objects are still being read");
	pod = kube_pod_decode(pod_json, err);
	if (!pod)
		return -1;
	if (str_empty(pod->meta.uid) || str_empty(pod->meta.namespace))
		return err_set(err, ERR_INVALID_ARGUMENT, "a pod without uid or namespace");
	if (strlen(pod->meta.uid) > UID_MAX_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "the uid of a pod is too long");
	for (size_t i = 0; i < pod->n_volumes; i++) {
		if (add_volume(w, pod, &pod->volumes[i], &needs, err) < 0)
			return -1;
	}
	needs.pod_version = world_version(&pod->meta);
	kube_now_format(now);
	memcpy(needs.looked_at, now, SCHED_TIME_LEN);
	*ret = needs;
	needs = (struct pod_needs){0};
	*ret_pod_uid = TAKE_PTR(pod->meta.uid);
	return 0;
}

static bool is_bound(const struct kube_claim *claim)
{
	return !str_empty(claim->volume_name);
}

static void undecided(struct cluster_view *w, const struct kube_claim *claim)
{
	CLEANUP(free_charp) char *name = x_asprintf("pvc-%s", claim->meta.uid);

	sched_charges_undecided(w->charges, name);
}

static void need_done(struct pod_need *need)
{
	free(need->name);
	free(need->what);
}

static void decided(struct cluster_view *w, const struct kube_claim *claim, const char *node_id)
{
	CLEANUP(need_done) struct pod_need need = {0};
	const struct kube_class *class = world_class(w, claim);

	if (!class || str_empty(node_id))
		return;
	world_claim_need(claim, class, &need);
	sched_charges_decided(w->charges, need.name, node_id, need.size_bytes, need.sector);
}

/* What a pod or a claim says, the claim itself and the inventory come by different ways. */
static void keep_for_a_while(struct cluster_view *w, const struct kube_claim *claim)
{
	struct bound_claim *b = x_calloc(1, sizeof(*b));

	b->name = x_asprintf("pvc-%s", claim->meta.uid);
	b->until_ns = clock_ns() + SCHED_CHARGE_NS;
	*w->bound_end = b;
	w->bound_end = &b->next;
}

/* @old: the same claim, or NULL */
static void claim_is(struct cluster_view *w, const struct kube_claim *old, const struct kube_claim *new)
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

static void world_claim_changed(void *user, const char *key, const void *old, const void *new)
{
	struct cluster_view *w = user;

	(void)key;
	if (!cluster_view_is_synced(w))
		return;
	if (new)
		claim_is(w, old, new);
	else
		undecided(w, old);
}

static void for_each_inline(struct cluster_view *w, const struct kube_pod *pod,
	void (*fn)(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need))
{
	for (size_t i = 0; i < pod->n_volumes; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(need_done) struct pod_need need = {0};

		/* what has no size, the node does not make either */
		if (world_is_inline(w, &pod->volumes[i]) &&
			world_inline_need(pod, &pod->volumes[i], &need, &err) == 0)
			fn(w, pod, &need);
	}
}

static void decide_inline(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need)
{
	sched_charges_decided(w->charges, need->name, pod->node_name, need->size_bytes, need->sector);
}

static void forget_inline(struct cluster_view *w, const struct kube_pod *pod, const struct pod_need *need)
{
	(void)pod;
	sched_charges_undecided(w->charges, need->name);
}

/* Claims without a selected node of their own go where the pod goes. It may have been put there by hand: then
 * nobody makes their volumes. */
static void decide_claims(struct cluster_view *w, const struct kube_pod *pod)
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

static void pod_is(struct cluster_view *w, const struct kube_pod *old, const struct kube_pod *new)
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
	const struct cluster_view *w = user;

	sched_charges_seen(w->charges, pod->meta.uid, w->now_ns);
}

/* Tell the charges which pods are still there. */
static void world_see_pods(struct cluster_view *w, uint64_t now_ns)
{
	w->now_ns = now_ns;
	informer_each(w->pods, see_pod, w);
}

static void pod_is_gone(struct cluster_view *w, const struct kube_pod *pod)
{
	for_each_inline(w, pod, forget_inline);
	sched_charges_drop(w->charges, pod->meta.uid);
}

/* The following three tell the charges what an event means, as of struct informer_events; @user: the cluster.
 */
static void world_pod_changed(void *user, const char *key, const void *old, const void *new)
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

/* Only now is it known which claims are our driver's. */
static void world_class_changed(void *user, const char *key, const void *old, const void *new)
{
	struct cluster_view *w = user;

	(void)key;
	if (cluster_view_is_synced(w) && !old && new)
		informer_each(w->claims, visit_claim, w);
}

/* One more informer is; @user: the cluster. */
static void world_synced(void *user)
{
	struct cluster_view *w = user;

	if (!cluster_view_is_synced(w))
		return;
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

#define SEE_NS (SCHED_CHARGE_NS / 3)

/* Of tens of thousands only what is looked at is kept. */
static void *decode_claim(struct json_reader *r, struct error **err)
{
	struct kube_claim *c = kube_kind_claims.decode(r, err);

	if (!c)
		return NULL;
	free(TAKE_PTR(c->phase));
	return c;
}

static void *decode_volume(struct json_reader *r, struct error **err)
{
	struct kube_volume *v = kube_kind_volumes.decode(r, err);

	if (!v)
		return NULL;
	free(TAKE_PTR(v->meta.uid));
	free(TAKE_PTR(v->meta.annotations.block));
	free(TAKE_PTR(v->handle));
	free(TAKE_PTR(v->storage_class));
	free(TAKE_PTR(v->claim_namespace));
	free(TAKE_PTR(v->claim_name));
	free(TAKE_PTR(v->claim_uid));
	free(TAKE_PTR(v->phase));
	return v;
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

/* What only kube-scheduler's questions need. */
static void watch_pods_and_volumes(struct cluster_view *w, struct kube_client *client)
{
	static const struct informer_events of_pods = {world_pod_changed, world_synced};
	static const struct informer_events of_others = {NULL, world_synced};

	w->pod_kind = kube_kind_pods;
	w->pod_kind.keeps = keeps_pod;
	w->pod_kind.keeps_user = w->driver_name;
	w->volume_kind = kube_kind_volumes;
	w->volume_kind.decode = decode_volume;
	w->volume_kind.keeps = keeps_volume;
	w->volume_kind.keeps_user = w->driver_name;
	w->driver_selector = x_asprintf("metadata.name=%s", w->driver_name);
	w->driver_kind = kube_kind_csi_drivers;
	w->driver_kind.field_selector = w->driver_selector;
	w->pods = informer_new(client, &w->pod_kind, &of_pods, w);
	w->volumes = informer_new(client, &w->volume_kind, &of_others, w);
	w->drivers = informer_new(client, &w->driver_kind, &of_others, w);
}

static void watch_claims_and_classes(struct cluster_view *w, struct kube_client *client)
{
	static const struct informer_events of_claims = {world_claim_changed, world_synced};
	static const struct informer_events of_classes = {world_class_changed, world_synced};
	static const struct informer_events none = {NULL, NULL};

	w->claim_kind = kube_kind_claims;
	w->claim_kind.decode = decode_claim;
	w->claims = informer_new(client, &w->claim_kind, w->charges ? &of_claims : &none, w);
	w->classes = informer_new(client, &kube_kind_classes, w->charges ? &of_classes : &none, w);
}

struct cluster_view *cluster_view_new(
	struct kube_client *client, const char *driver_name, struct sched_charges *charges)
{
	struct cluster_view *w = x_calloc(1, sizeof(*w));

	w->driver_name = x_strdup(driver_name);
	w->charges = charges;
	w->bound_end = &w->bound;
	watch_claims_and_classes(w, client);
	if (charges)
		watch_pods_and_volumes(w, client);
	return w;
}

static void forget_first(struct cluster_view *w)
{
	struct bound_claim *b = w->bound;

	w->bound = b->next;
	if (!w->bound)
		w->bound_end = &w->bound;
	free(b->name);
	free(b);
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
	while (w->bound)
		forget_first(w);
	free(w->driver_selector);
	free(w->driver_name);
	free(w);
}

/* The parts that are not watched count as known. */
static bool is_synced(const struct informer *i)
{
	return !i || informer_is_synced(i);
}

bool cluster_view_is_synced(const struct cluster_view *w)
{
	return is_synced(w->pods) && is_synced(w->claims) && is_synced(w->volumes) && is_synced(w->classes) &&
	       is_synced(w->drivers);
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
	while (w->bound && now_ns >= w->bound->until_ns) {
		sched_charges_undecided(w->charges, w->bound->name);
		forget_first(w);
	}
	if (!w->pods || now_ns - w->seen_ns < SEE_NS)
		return;
	w->seen_ns = now_ns;
	world_see_pods(w, now_ns);
}

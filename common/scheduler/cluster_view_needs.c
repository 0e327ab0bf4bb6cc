/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what a pod needs: its new volumes, and the nodes that have its existing ones. */
#include "scheduler/cluster_view_private.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/informer.h"
#include "nodes/class_capacity.h"
#include "os/fs.h"
#include "pmem/usage.h"
#include "volume/params.h"

#define DEFAULT_FS    "ext4" /* as the node's */
#define UID_MAX_BYTES 128    /* of a UUID it is 36 */

/* Return: strv of the nodes that have a copy of the volume @name; caller frees. */
static char **nodes_with(const struct cluster_view *w, const char *name)
{
	const struct pmem_volume *v = cluster_view_record(w, name);
	char **nodes = NULL;

	for (size_t i = 0; v && i < v->n_copies; i++) {
		if (cluster_view_has_copy(&v->copies[i]))
			strv_add(&nodes, v->copies[i].node);
	}
	return nodes;
}

void cluster_view_claim_need(
	const struct kube_claim *claim, const struct kube_class *class, struct pod_need *ret)
{
	uint64_t size_bytes = claim->request_bytes ? claim->request_bytes : SCHED_DEFAULT_BYTES;

	*ret = (struct pod_need){
		.name = kube_claim_volume_name(claim),
		.what = x_asprintf("claim %s/%s", claim->meta.namespace, claim->meta.name),
		.size_bytes = class_least_bytes(class, size_bytes, claim->is_block),
		.sector = volume_usage_is_file_io(kube_pairs_get(&class->parameters, "usage")),
		.sync = class_needs_sync(class),
	};
}

/* Source: Kubernetes pkg/volume/csi/csi_plugin.go, supportsVolumeLifecycleMode(). */
bool cluster_view_is_inline(const struct cluster_view *w, const struct kube_pod_volume *v)
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

int cluster_view_inline_need(
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
		.sync = durability_needs_sync(kube_pairs_get(&v->attributes, PARAMS_USAGE),
			kube_pairs_get(&v->attributes, PARAMS_DURABILITY)),
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
static int add_need(struct pod_needs *needs, struct pod_need *need, struct error **err)
{
	bool again = has_need(needs, need->name); /* a pod may name a claim twice */

	if (again || needs->n == POD_NEEDS_MAX) {
		pod_need_done(need);
		return again ? 0
			     : err_set(err, ERR_INVALID_ARGUMENT, "the pod has more than %d new volumes",
				       POD_NEEDS_MAX);
	}
	needs->v = x_realloc(needs->v, needs->n + 1, sizeof(*needs->v));
	needs->v[needs->n++] = *need;
	return 0;
}

/* @ret: the volume that @claim is bound to, NULL: it is not our driver's. Return: 0, or -1 with
 * ERR_UNAVAILABLE. */
static int find_volume(const struct cluster_view *w, const struct kube_claim *claim,
	const struct kube_volume **ret, struct error **err)
{
	CLEANUP(free_charp) char *made = kube_claim_volume_name(claim);

	*ret = informer_get(w->volumes, claim->volume_name);
	/* a claim of our class may have been bound to another driver's volume by hand */
	if (!*ret && str_eq(claim->provisioner, w->driver_name) && str_eq(claim->volume_name, made))
		return err_set(err, ERR_UNAVAILABLE, "volume %s of claim %s/%s is not known yet",
			claim->volume_name, claim->meta.namespace, claim->meta.name);
	return 0;
}

/* A volume of our driver is on the nodes that its affinity names by the driver's key. Other keys are compared
 * with labels of Nodes by kube-scheduler. */
static int add_home(const struct cluster_view *w, const struct kube_claim *claim, struct pod_needs *needs,
	struct error **err)
{
	const struct kube_volume *volume;

	if (find_volume(w, claim, &volume, err) < 0)
		return -1;
	if (volume && volume->node_ids)
		pod_needs_add_home(needs, &(struct pod_home){.nodes = strv_dup(volume->node_ids)});
	return 0;
}

/* Return: caller frees. */
static char *why_there(const struct pod_need *clone, char *const *nodes)
{
	return x_asprintf("%s is to be a clone of claim %s, which is only on node %s%s", clone->what,
		clone->source, nodes[0], nodes[1] ? " and others" : "");
}

/* @ret: strv of the nodes that have the volume of the claim that @clone is to be a clone of; NULL: any node
 * may. Borrowed. Return: 0, or -1 with ERR_UNAVAILABLE: that is not known yet. */
static int find_source_nodes(const struct cluster_view *w, const struct pod_needs *needs,
	const struct pod_need *clone, char *const **ret, struct error **err)
{
	const struct kube_claim *source = informer_get(w->claims, clone->source);
	const struct kube_volume *volume;
	CLEANUP(free_charp) char *made = NULL;

	*ret = clone->nodes;
	if (clone->nodes)
		return 0; /* it was made, whatever has become of its source */
	if (!source)
		return err_set(err, ERR_UNAVAILABLE, "claim %s, the source of %s, is not known yet",
			clone->source, clone->what);
	if (str_empty(source->volume_name)) {
		made = kube_claim_volume_name(source);
		if (has_need(needs, made))
			return 0; /* both are made on the node of the pod */
		return err_set(err, ERR_UNAVAILABLE, "claim %s, the source of %s, is not bound yet",
			clone->source, clone->what);
	}
	if (find_volume(w, source, &volume, err) < 0)
		return -1;
	*ret = volume ? volume->node_ids : NULL;
	return 0;
}

struct snapshot_search {
	const char *name;   /* "namespace/name" of the VolumeSnapshot */
	char **nodes;       /* strv */
	size_t n_snapshots; /* that were made for one of that name */
};

static void visit_record(void *user, const void *object)
{
	struct snapshot_search *search = user;
	const struct pmem_volume *v = object;

	if (!v->snapshot || v->deleting || v->retained || !str_eq(v->volume_snapshot, search->name))
		return;
	search->n_snapshots++;
	for (size_t i = 0; i < v->n_copies; i++) {
		if (cluster_view_has_copy(&v->copies[i]))
			strv_add(&search->nodes, v->copies[i].node);
	}
}

/* Restricts the pod to the nodes that have the snapshot, if exactly one snapshot is recorded for the
 * VolumeSnapshot. None is recorded if the snapshot is not made yet, or was made for another VolumeSnapshot;
 * there are several if the snapshot of an earlier VolumeSnapshot of that name was retained. Then no node is
 * excluded here, and the call of CreateVolume that restores the snapshot refuses the wrong ones. */
static void add_snapshot_home(
	const struct cluster_view *w, struct pod_needs *needs, const struct pod_need *need)
{
	struct snapshot_search search = {.name = need->snapshot};

	informer_each(w->pmem_volumes, visit_record, &search);
	if (!search.nodes || search.n_snapshots > 1) {
		strv_free(search.nodes);
		return;
	}
	char *why = x_asprintf("%s is to be restored from VolumeSnapshot %s, which is only on node %s%s",
		need->what, need->snapshot, search.nodes[0], search.nodes[1] ? " and others" : "");
	pod_needs_add_home(needs, &(struct pod_home){.nodes = search.nodes, .why = why});
}

/* Only a node that has the source can make a copy of it. */
static int add_source_homes(const struct cluster_view *w, struct pod_needs *needs, struct error **err)
{
	for (size_t i = 0; i < needs->n; i++) {
		const struct pod_need *need = &needs->v[i];
		char *const *nodes;

		if (need->snapshot && !need->nodes)
			add_snapshot_home(w, needs, need);
		if (!need->source)
			continue;
		if (find_source_nodes(w, needs, need, &nodes, err) < 0)
			return -1;
		if (nodes)
			pod_needs_add_home(needs,
				&(struct pod_home){.nodes = strv_dup(nodes), .why = why_there(need, nodes)});
	}
	return 0;
}

/* Whether CreateVolume has succeeded for the volume @name, or a node has reported it, and its node is not
 * lost.
 */
static bool was_made(const struct cluster_view *w, const char *name)
{
	static const char *const phases[] = {"Ready", "Missing", "Damaged"};
	const struct pmem_volume *v = cluster_view_record(w, name);
	bool found = false;

	for (size_t i = 0; v && i < ARRAY_SIZE(phases); i++)
		found = found || str_eq(v->phase, phases[i]);
	return found;
}

/* The controller makes a volume that was in use on no other node, and the record does not say whether it was
 * in use. Each copy of a cache volume is a cache of its own. */
static void add_made_home(const struct cluster_view *w, const struct kube_class *class,
	const struct pod_need *need, struct pod_needs *needs)
{
	if (!need->nodes || class_is_cache(class) || !was_made(w, need->name))
		return;
	char *why = x_asprintf("%s has a volume already, which is only on node %s%s", need->what,
		need->nodes[0], need->nodes[1] ? " and others" : "");
	pod_needs_add_home(needs, &(struct pod_home){.nodes = strv_dup(need->nodes), .why = why});
}

/* A claim that a populator fills gets the volume of its prime claim. */
static int add_claim(const struct cluster_view *w, const struct kube_claim *claim, struct pod_needs *needs,
	struct error **err)
{
	const struct kube_claim *prime = prime_claim_find(w->claims, claim);
	const struct kube_class *class;
	struct pod_need need;

	if (str_empty(claim->volume_name) && prime)
		claim = prime;
	if (!str_empty(claim->volume_name))
		return add_home(w, claim, needs, err);
	if (str_empty(claim->storage_class))
		return 0;
	if (!informer_get(w->classes, claim->storage_class))
		return err_set(err, ERR_UNAVAILABLE, "storage class %s of claim %s/%s is not known yet",
			claim->storage_class, claim->meta.namespace, claim->meta.name);
	class = cluster_view_class(w, claim);
	if (!class || !class->waits_for_consumer)
		return 0;
	cluster_view_claim_need(claim, class, &need);
	need.nodes = nodes_with(w, need.name);
	need.source = x_strdup(claim->source_claim);
	need.snapshot = x_strdup(claim->source_snapshot);
	add_made_home(w, class, &need, needs);
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
		if (!cluster_view_is_inline(w, v))
			return 0;
		if (cluster_view_inline_need(pod, v, &need, err) < 0)
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
		kube_object_free(&kube_kind_pods, *p);
}

int cluster_view_pod_needs(const struct cluster_view *w, struct span pod_json, struct pod_needs *ret,
	char **ret_pod_uid, struct error **err)
{
	CLEANUP(pod_freep) struct kube_pod *pod = NULL;
	CLEANUP(pod_needs_done) struct pod_needs needs = {0};
	char now[KUBE_TIME_LEN + 1];

	if (!cluster_view_is_synced(w))
		return err_set(err, ERR_UNAVAILABLE, "the cluster's objects are still being read");
	pod = kube_object_decode(&kube_kind_pods, pod_json, err);
	if (!pod)
		return -1;
	if (str_empty(pod->meta.uid) || str_empty(pod->meta.namespace))
		return err_set(err, ERR_INVALID_ARGUMENT, "the pod has no uid or no namespace");
	if (strlen(pod->meta.uid) > UID_MAX_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "the pod's uid is too long");
	for (size_t i = 0; i < pod->n_volumes; i++) {
		if (add_volume(w, pod, &pod->volumes[i], &needs, err) < 0)
			return -1;
	}
	if (add_source_homes(w, &needs, err) < 0)
		return -1;
	needs.pod_version = cluster_view_version(&pod->meta);
	kube_now_format(now);
	memcpy(needs.looked_at, now, SCHED_TIME_LEN);
	*ret = needs;
	needs = (struct pod_needs){0};
	*ret_pod_uid = TAKE_PTR(pod->meta.uid);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What volumes a pod needs. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "cluster/class_room.h"
#include "cluster/sched/world_private.h"
#include "os/fs.h"

#define DEFAULT_FS    "ext4" /* as the node's */
#define UID_MAX_BYTES 128    /* of a UUID it is 36 */

static bool is_file_io(const struct kube_pairs *parameters)
{
	return str_eq(kube_pairs_get(parameters, "usage"), "FileIO");
}

const struct kube_class *world_class(const struct sched_world *w, const struct kube_claim *claim)
{
	const struct kube_class *class =
		str_empty(claim->storage_class) ? NULL : informer_get(w->classes, claim->storage_class);

	return class_is_ours(class, w->driver_name) ? class : NULL;
}

/* The name is external-provisioner's (makeVolumeName()). */
void world_claim_need(const struct kube_claim *claim, const struct kube_class *class, struct sched_need *ret)
{
	uint64_t size_bytes = claim->request_bytes ? claim->request_bytes : SCHED_DEFAULT_BYTES;

	*ret = (struct sched_need){
		.name = x_asprintf("pvc-%s", claim->meta.uid),
		.what = x_asprintf("claim %s/%s", claim->meta.namespace, claim->meta.name),
		.size_bytes = class_least_bytes(class, size_bytes, claim->is_block),
		.sector = is_file_io(&class->parameters),
	};
}

/* Source: Kubernetes pkg/volume/csi/csi_plugin.go, supportsVolumeLifecycleMode(). */
bool world_is_inline(const struct sched_world *w, const struct kube_pod_volume *v)
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

int world_inline_need(const struct kube_pod *pod, const struct kube_pod_volume *v, struct sched_need *ret,
	struct error **err)
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
	*ret = (struct sched_need){
		.name = inline_handle(pod, v),
		.what = x_asprintf("inline volume \"%s\"", v->name),
		.size_bytes = size_bytes > least_bytes ? size_bytes : least_bytes,
		.sector = is_file_io(&v->attributes),
	};
	return 0;
}

static bool has_need(const struct sched_needs *needs, const char *name)
{
	for (size_t i = 0; i < needs->n; i++) {
		if (str_eq(needs->v[i].name, name))
			return true;
	}
	return false;
}

/* @need: taken, also after a failure */
static int add_need(struct sched_needs *needs, const struct sched_need *need, struct error **err)
{
	bool again = has_need(needs, need->name); /* a pod may name a claim twice */

	if (again || needs->n == SCHED_NEEDS_MAX) {
		free(need->name);
		free(need->what);
		return again ? 0
			     : err_set(err, ERR_INVALID_ARGUMENT, "a pod of more than %d new volumes",
				       SCHED_NEEDS_MAX);
	}
	needs->v = x_realloc(needs->v, needs->n + 1, sizeof(*needs->v));
	needs->v[needs->n++] = *need;
	return 0;
}

/* A volume of our driver is on the nodes that its affinity names. */
static int add_home(const struct sched_world *w, const struct kube_claim *claim, struct sched_needs *needs,
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

static int add_claim(const struct sched_world *w, const struct kube_claim *claim, struct sched_needs *needs,
	struct error **err)
{
	const struct kube_class *class;
	struct sched_need need;

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

static int add_volume(const struct sched_world *w, const struct kube_pod *pod,
	const struct kube_pod_volume *v, struct sched_needs *needs, struct error **err)
{
	CLEANUP(free_charp) char *name = kube_pod_claim(pod, v);
	CLEANUP(free_charp) char *key = NULL;
	const struct kube_claim *claim;
	struct sched_need need;

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

uint64_t world_version(const struct kube_meta *m)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t version;

	return m->resource_version && parse_u64(m->resource_version, &version, &ignored) == 0 ? version : 0;
}

int sched_world_needs(const struct sched_world *w, struct span pod_json, struct sched_needs *ret,
	char **ret_pod_uid, struct error **err)
{
	CLEANUP(pod_freep) struct kube_pod *pod = NULL;
	CLEANUP(sched_needs_done) struct sched_needs needs = {0};
	char now[KUBE_TIME_LEN + 1];

	if (!sched_world_is_synced(w))
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
	needs = (struct sched_needs){0};
	*ret_pod_uid = TAKE_PTR(pod->meta.uid);
	return 0;
}

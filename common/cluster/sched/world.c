/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/sched/world.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cluster/sched/world_private.h"

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
static void watch_pods_and_volumes(struct sched_world *w, struct kube_client *client)
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

static void watch_claims_and_classes(struct sched_world *w, struct kube_client *client)
{
	static const struct informer_events of_claims = {world_claim_changed, world_synced};
	static const struct informer_events of_classes = {world_class_changed, world_synced};
	static const struct informer_events none = {NULL, NULL};

	w->claim_kind = kube_kind_claims;
	w->claim_kind.decode = decode_claim;
	w->claims = informer_new(client, &w->claim_kind, w->charges ? &of_claims : &none, w);
	w->classes = informer_new(client, &kube_kind_classes, w->charges ? &of_classes : &none, w);
}

struct sched_world *sched_world_new(
	struct kube_client *client, const char *driver_name, struct sched_charges *charges)
{
	struct sched_world *w = x_calloc(1, sizeof(*w));

	w->driver_name = x_strdup(driver_name);
	w->charges = charges;
	w->bound_end = &w->bound;
	watch_claims_and_classes(w, client);
	if (charges)
		watch_pods_and_volumes(w, client);
	return w;
}

static void forget_first(struct sched_world *w)
{
	struct bound_claim *b = w->bound;

	w->bound = b->next;
	if (!w->bound)
		w->bound_end = &w->bound;
	free(b->name);
	free(b);
}

void sched_world_free(struct sched_world *w)
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

bool sched_world_is_synced(const struct sched_world *w)
{
	return is_synced(w->pods) && is_synced(w->claims) && is_synced(w->volumes) && is_synced(w->classes) &&
	       is_synced(w->drivers);
}

bool sched_world_is_silent(
	const struct sched_world *w, uint64_t now_ns, const char **ret_kind, uint64_t *ret_ns)
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

void sched_world_tick(struct sched_world *w, uint64_t now_ns)
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_private.h - inside of world*.c. Threads: the loop's.
 */
#pragma once

#include "cluster/kube/informer.h"
#include "cluster/kube/objects.h"
#include "cluster/sched/world.h"

/* A claim that was bound while it counted on a node. */
struct bound_claim {
	struct bound_claim *next;
	char *name;
	uint64_t until_ns;
};

struct sched_world {
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
	uint64_t seen_ns; /* when the charges were told of pods last */
	uint64_t now_ns;  /* while they are */
};

/* world_needs.c */

/** world_claim_need() - the volume of @claim, made by @class, which is ours. @ret: members are the caller's
 * to free. */
void world_claim_need(const struct kube_claim *claim, const struct kube_class *class, struct sched_need *ret);

/** world_is_inline() - @v is an inline volume of our driver that kubelet would have made. */
bool world_is_inline(const struct sched_world *w, const struct kube_pod_volume *v);

/** world_inline_need() - that volume. Return: 0, or -1 with ERR_INVALID_ARGUMENT. @ret: members are the
 * caller's to free. */
int world_inline_need(const struct kube_pod *pod, const struct kube_pod_volume *v, struct sched_need *ret,
	struct error **err) MUST_CHECK;

/** world_class() - the class of @claim if it is there and our driver's, or NULL. */
const struct kube_class *world_class(const struct sched_world *w, const struct kube_claim *claim);

/** world_version() - resourceVersion as a number; 0: it is none. */
uint64_t world_version(const struct kube_meta *m);

/* world_charges.c */

/** world_see_pods() - tell the charges which pods are still there. */
void world_see_pods(struct sched_world *w, uint64_t now_ns);

/** world_pod_changed(), world_claim_changed(), world_class_changed() - tell the charges what an event means,
 * as of struct informer_events; @user: the world. */
void world_pod_changed(void *user, const char *key, const void *old, const void *new);
void world_claim_changed(void *user, const char *key, const void *old, const void *new);
void world_class_changed(void *user, const char *key, const void *old, const void *new);

/** world_synced() - one more informer is; @user: the world. */
void world_synced(void *user);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_view_private.h - what the parts of cluster_view.h share. See there for threads.
 */
#pragma once

#include "kube/key_index.h"
#include "kube/objects/objects.h"
#include "resources/pmem_volume.h"
#include "scheduler/cluster_view.h"
#include "scheduler/prime_claims.h"

struct cluster_view {
	char *driver_name;
	struct sched_nodes *nodes;
	struct reservations *reservations; /* NULL: the webhook's part only */
	char *driver_selector;
	char *label_selector;
	struct kube_kind pod_kind;
	struct kube_kind claim_kind;
	struct kube_kind volume_kind;
	struct kube_kind driver_kind;
	struct kube_kind pmem_node_kind;
	struct kube_kind pmem_volume_kind;
	struct informer *pods;
	struct informer *claims;
	struct informer *volumes;
	struct informer *classes;
	struct informer *drivers;
	struct informer *pmem_nodes;
	struct informer *pmem_volumes;
	struct key_index *unbound; /* claims without a volume, by their UID */
	uint64_t seen_ns;          /* when the reservations last got the pods that exist */
	uint64_t now_ns;           /* while they are */
};

/** cluster_view_class() - the class of @claim. Return: NULL: it is not there, or another driver's. */
const struct kube_class *cluster_view_class(const struct cluster_view *w, const struct kube_claim *claim);

/** cluster_view_version() - the resourceVersion as a number. Return: 0: it is not a number. */
uint64_t cluster_view_version(const struct kube_meta *m);

/** cluster_view_record() - of the volume that CreateVolume makes for @name. Return: NULL: none. */
const struct pmem_volume *cluster_view_record(const struct cluster_view *w, const char *name);

/** cluster_view_has_copy() - whether the node of @c has something of the volume. */
bool cluster_view_has_copy(const struct pmem_volume_copy *c);

/** cluster_view_claim_need() - the volume that is made for @claim of the @class. @ret: pod_need_done() */
void cluster_view_claim_need(
	const struct kube_claim *claim, const struct kube_class *class, struct pod_need *ret);

/** cluster_view_is_inline() - whether @v is an inline volume that our driver makes. */
bool cluster_view_is_inline(const struct cluster_view *w, const struct kube_pod_volume *v);

/** cluster_view_inline_need() - the volume that is made for the inline volume @v of @pod. @ret:
 * pod_need_done(). Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int cluster_view_inline_need(const struct kube_pod *pod, const struct kube_pod_volume *v,
	struct pod_need *ret, struct error **err) MUST_CHECK;

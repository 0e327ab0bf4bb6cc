/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_view.h - what the scheduler extender knows of the Kubernetes cluster, from watches alone: pods on
 * their way, claims, volumes of our driver, storage classes.
 *
 * It says what volumes a pod needs, and tells the charges (charges.h) what the scheduler has decided, also
 * before this process began: a claim with a selected node, and a pod with inline volumes and a node, count
 * there. A claim that is bound counts until its volume shows in the inventory, SCHED_CHARGE_NS at most.
 * Claims that bind immediately are placed by their topology, and then keep the pod to their node; only once a
 * node is selected for one does it count. Threads: the loop's; nothing blocks.
 * Sources: kube-scheduler's volumebinding plugin, external-provisioner, kubelet's CSI plugin.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/span.h"
#include "kube/client.h"
#include "scheduler/charges.h"
#include "scheduler/pod_needs.h"
#include "scheduler/webhook_review.h"

/* What a claim without a size is taken for, as by PMEM-CSI 1.0 pkg/scheduler. */
#define SCHED_DEFAULT_BYTES (1ULL << 30)

struct cluster_view;

/**
 * cluster_view_new() - begin to watch.
 * @client, @charges: borrowed. @charges NULL: only claims and classes are watched, which is all that the
 *                    webhook needs, and cluster_view_pod_needs() must not be called
 * @driver_name:      copied
 *
 * Return: never NULL; cluster_view_free().
 */
struct cluster_view *cluster_view_new(
	struct kube_client *client, const char *driver_name, struct sched_charges *charges);

/** cluster_view_free() - before kube_client_free() and sched_charges_free(). NULL is allowed. */
void cluster_view_free(struct cluster_view *w);
DEFINE_CLEANUP(struct cluster_view *, cluster_view_free);

/** cluster_view_is_synced() - all that there was in the beginning is known. */
bool cluster_view_is_synced(const struct cluster_view *w);

/* What every client has to put up with for a moment, such as the restart of an API server, is no silence. */
#define SCHED_SILENT_NS (10 * NS_PER_S)

/** cluster_view_is_silent() - whether the API server has not answered about one of the watches for so long
 * that what is known may be outdated. @now_ns: of clock_ns(). @ret_kind: of the objects, static; @ret_ns: for
 * how long. Both are set when true is returned. */
bool cluster_view_is_silent(
	const struct cluster_view *w, uint64_t now_ns, const char **ret_kind, uint64_t *ret_ns);

/**
 * cluster_view_pod_needs() - which volumes of our driver @pod_json, a v1 Pod, needs that do not exist yet,
 * and where those are that it has: claims that bind late and are not bound, those made for the pod included,
 * and inline volumes.
 * @ret:         pod_needs_done()
 * @ret_pod_uid: caller frees
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (the watches have not shown all of it yet), ERR_PRECONDITION (a claim
 * is another pod's), ERR_INVALID_ARGUMENT (the pod is malformed).
 */
int cluster_view_pod_needs(const struct cluster_view *w, struct span pod_json, struct pod_needs *ret,
	char **ret_pod_uid, struct error **err) MUST_CHECK;

/** cluster_view_webhook() - what the webhook asks; valid as long as @w. Of several default classes one of
 * ours that binds late is preferred: a pod that is looked at in vain costs little. */
struct webhook_cluster cluster_view_webhook(struct cluster_view *w);

/** cluster_view_tick() - to be called each second or so. @now_ns: of clock_ns() */
void cluster_view_tick(struct cluster_view *w, uint64_t now_ns);

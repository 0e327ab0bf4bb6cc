/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_view.h - what the scheduler extender knows of the Kubernetes cluster, by watches: pods on their
 * way, claims, volumes of our driver, storage classes, and the nodes and records of volumes that the
 * controllers show (resources/).
 *
 * It says which volumes a pod needs, keeps the table of nodes (sched_nodes.h), and reports to the
 * reservations (reservations.h) what the scheduler has decided, also before this process began: a claim with
 * a selected node, and a pod with inline volumes and a node, have their volumes reserved there. That of a
 * bound claim lasts until its node shows it, and without a record RESERVATION_NS at most. An inline volume
 * has no record: without a PmemNode that names it, its reservation ends some seconds after its pod runs, or
 * after RESERVATION_NS. Claims that bind immediately are placed by their topology, and then keep the pod to
 * their node; only once a node is selected for one is it reserved. Threads: the loop's; nothing blocks.
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
#include "scheduler/pod_needs.h"
#include "scheduler/reservations.h"
#include "scheduler/sched_nodes.h"
#include "scheduler/webhook_review.h"

/* The size of a claim that has none, as in PMEM-CSI 1.0 pkg/scheduler. */
#define SCHED_DEFAULT_BYTES (1ULL << 30)

struct cluster_view;

/**
 * cluster_view_new() - begin to watch.
 * @client, @nodes, @reservations: borrowed; @nodes is changed by this view only. Both NULL: only claims and
 *                                 classes are watched, which is all that the webhook needs, and
 *                                 cluster_view_pod_needs() must not be called
 * @driver_name:                   copied
 *
 * Return: never NULL; cluster_view_free().
 */
struct cluster_view *cluster_view_new(struct kube_client *client, const char *driver_name,
	struct sched_nodes *nodes, struct reservations *reservations);

/** cluster_view_free() - before kube_client_free() and reservations_free(). NULL is allowed. */
void cluster_view_free(struct cluster_view *w);
DEFINE_CLEANUP(struct cluster_view *, cluster_view_free);

/** cluster_view_is_synced() - whether all objects were read once. */
bool cluster_view_is_synced(const struct cluster_view *w);

/* Shorter interruptions, such as the restart of an API server, are normal. */
#define SCHED_SILENT_NS (10 * NS_PER_S)

/** cluster_view_is_silent() - whether one of the watches has been without an answer of the API server for so
 * long that its objects may be outdated. @now_ns: of clock_ns(). @ret_kind: the kind of the objects, static;
 * @ret_ns: for how long. Both are set when true is returned. */
bool cluster_view_is_silent(
	const struct cluster_view *w, uint64_t now_ns, const char **ret_kind, uint64_t *ret_ns);

/**
 * cluster_view_pod_needs() - which volumes of our driver @pod_json, a v1 Pod, still needs (unbound claims
 * that bind late, also those made for the pod, and inline volumes), and where its existing volumes and the
 * sources of its clones are.
 * @ret:         pod_needs_done()
 * @ret_pod_uid: caller frees
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (the watches have not shown all of it yet; the source of a clone is a
 * claim of other pods that is not bound yet), ERR_PRECONDITION (a claim is another pod's),
 * ERR_INVALID_ARGUMENT (the pod is malformed).
 */
int cluster_view_pod_needs(const struct cluster_view *w, struct span pod_json, struct pod_needs *ret,
	char **ret_pod_uid, struct error **err) MUST_CHECK;

/** cluster_view_webhook() - the webhook's questions about the cluster; valid as long as @w. If there are
 * several default StorageClasses, one of our driver with volumeBindingMode WaitForFirstConsumer is preferred:
 * marking a pod unnecessarily costs little. */
struct webhook_cluster cluster_view_webhook(struct cluster_view *w);

/** cluster_view_tick() - to be called each second or so. @now_ns: of clock_ns() */
void cluster_view_tick(struct cluster_view *w, uint64_t now_ns);

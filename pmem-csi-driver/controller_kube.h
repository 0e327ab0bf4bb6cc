/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_kube.h - connects the controller with Kubernetes: the cluster's nodes, the records of volumes,
 * the lease, and the duties of the leader. Wiring only.
 *
 * Threads: the loop's; nothing blocks but reading the configuration.
 */
#pragma once

#include "controller/controller.h"
#include "kube/client.h"
#include "net/core/handshakes.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"
#include "nodes/node_tokens.h"
#include "nodes/pod_reader.h"
#include "options.h"
#include "resources/volume_records.h"

/* All borrowed. */
struct controller_kube_config {
	const struct options *options;
	struct loop *loop;
	struct handshakes *handshakes;
	struct node_table *nodes;
	struct kube_observer observer;
	uint64_t start_window_ms;
	bool checks_tokens; /* of nodes */
};

struct controller_kube;

/** controller_kube_new() - connect to the API server that $KUBECONFIG or the pod names. Return: 0, or -1 with
 * an error that says what is wrong with that configuration. @ret: controller_kube_free(). */
int controller_kube_new(const struct controller_kube_config *config, struct controller_kube **ret,
	struct error **err) MUST_CHECK;

/** controller_kube_free() - release @k; to be called before the controller and the node table are freed. NULL
 * is allowed. */
void controller_kube_free(struct controller_kube *k);

/** controller_kube_cluster() - get the cluster's nodes; valid as long as @k. */
struct cluster_nodes *controller_kube_cluster(struct controller_kube *k);

/** controller_kube_client() - get the client for what is read now and then; valid as long as @k. */
struct kube_client *controller_kube_client(struct controller_kube *k);

/** controller_kube_records() - get where the records of volumes are; valid as long as @k. */
struct volume_records controller_kube_records(struct controller_kube *k);

/** controller_kube_tokens() - get the check of the nodes' tokens; NULL unless checks_tokens; valid as long as
 * @k. */
struct node_tokens *controller_kube_tokens(struct controller_kube *k);

/** controller_kube_pods() - get what reads pods for nodes; valid as long as @k. */
struct pod_reader *controller_kube_pods(struct controller_kube *k);

/** controller_kube_start() - begin to apply for the lease. @controller: borrowed */
void controller_kube_start(struct controller_kube *k, struct controller *controller);

/** controller_kube_tick() - do what is due; to be called each second. */
void controller_kube_tick(struct controller_kube *k, uint64_t now_ns);

/** controller_kube_stop() - release the lease. @done: called when that has succeeded or failed, within about
 * a second, and never before this function has returned. */
void controller_kube_stop(struct controller_kube *k, void (*done)(void *user), void *user);

/** controller_kube_leads() - whether this replica is the leader. */
bool controller_kube_leads(const struct controller_kube *k);

/** controller_kube_capacities_pending(), controller_kube_nodes_pending(), controller_kube_volumes_pending() -
 * how many capacity objects, PmemNodes and PmemVolumes have to be written. */
size_t controller_kube_capacities_pending(const struct controller_kube *k);
size_t controller_kube_nodes_pending(const struct controller_kube *k);
size_t controller_kube_volumes_pending(const struct controller_kube *k);

/** controller_kube_require_served() - whether the API server serves the custom resources, as
 * api_check_require(). */
int controller_kube_require_served(const struct controller_kube *k, struct error **err) MUST_CHECK;

/** controller_kube_require_records() - whether the volumes that nodes have are recorded, as
 * create_gate_require(). After controller_kube_start(). */
int controller_kube_require_records(const struct controller_kube *k, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_kube.h - what the controller has to do with Kubernetes: the set of possible owners, the lease,
 * and what only the leader does. Wiring only.
 *
 * Threads: the loop's; nothing blocks but reading the configuration.
 */
#pragma once

#include "controller/controller.h"
#include "controller/possible_owners.h"
#include "kube/client.h"
#include "net/core/handshakes.h"
#include "nodes/node_table.h"
#include "nodes/node_tokens.h"
#include "options.h"

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

/** controller_kube_new() - talk to the API server that $KUBECONFIG or the pod names. Return: 0, or -1 with
 * what is wrong with that. @ret: controller_kube_free(); NULL when there is none. */
int controller_kube_new(const struct controller_kube_config *config, struct controller_kube **ret,
	struct error **err) MUST_CHECK;

/** controller_kube_free() - before the controller and the node table. NULL is allowed. */
void controller_kube_free(struct controller_kube *k);

/** controller_kube_owners() - valid as long as @k. */
struct possible_owners controller_kube_owners(struct controller_kube *k);

/** controller_kube_tokens() - NULL unless checks_tokens; valid as long as @k. */
struct node_tokens *controller_kube_tokens(struct controller_kube *k);

/** controller_kube_start() - begin to ask for the lease. @controller: borrowed */
void controller_kube_start(struct controller_kube *k, struct controller *controller);

/** controller_kube_tick() - to be called each second. */
void controller_kube_tick(struct controller_kube *k, uint64_t now_ns);

/** controller_kube_stop() - give the lease back. @done: called when that is over, within a second or so,
 * never before this returned. */
void controller_kube_stop(struct controller_kube *k, void (*done)(void *user), void *user);

/** controller_kube_leads() - whether we have the lease. */
bool controller_kube_leads(const struct controller_kube *k);

/** controller_kube_pending() - how many capacity objects have to be written. */
size_t controller_kube_pending(const struct controller_kube *k);

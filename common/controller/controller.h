/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.h - the CSI services of the central controller: they choose nodes and forward calls to them.
 *
 * Nothing is kept on disk. Each volume has a record (resources/volume_records.h), which names a node before
 * it is asked to make the volume, and until it has confirmed that it has no copy: a retry at any replica,
 * after any crash, goes on from the record. The truth is on the nodes: they report the volumes that they
 * have, and until all nodes that a call depends on have done so, it ends with UNAVAILABLE. So does a call
 * whose record cannot be read or written. Calls for one volume exclude each other: a second one is ABORTED.
 * No call holds a thread. Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/grpc/grpc_service.h"
#include "nodes/cluster_nodes.h"
#include "nodes/node_caller.h"
#include "resources/volume_records.h"

struct controller;
struct kube_client;

struct controller_config {
	const char *driver_name; /* borrowed, as the next four */
	const char *version;
	struct node_table *nodes;
	const struct node_caller *caller;
	struct cluster_nodes *cluster;
	struct volume_records records;
	/* A lease time: how long after the start nodes are expected to register. */
	uint64_t start_window_ms;
	/* Whether volumes may be created: 0, or -1 with ERR_UNAVAILABLE; NULL: always. */
	int (*may_create)(void *user, struct error **err);
	void *may_create_user;
	/* Whether a volume whose ID names a node that is gone counts as gone, too. */
	bool forget_gone_nodes;
	bool offers_health; /* as in struct csi */
	/* By which claims are read, whose annotation skip-hostmount counts; borrowed. NULL: it does not. */
	struct kube_client *claims;
	uint64_t (*now_ns)(void *user); /* NULL: clock_ns() */
	void *user;
};

/** controller_new() - @config: copied, but for what is borrowed; the start window begins. Return: never NULL;
 * controller_free() when no call to a node or for a record is in flight, as after node_clients_free() and
 * then kube_client_free(). */
struct controller *controller_new(const struct controller_config *config);
void controller_free(struct controller *c);
DEFINE_CLEANUP(struct controller *, controller_free);

/** controller_identity_service() - csi.v1.Identity. @c is borrowed for the life of the service. */
struct grpc_service controller_identity_service(struct controller *c);

/** controller_service() - csi.v1.Controller. @c is borrowed for the life of the service. */
struct grpc_service controller_service(struct controller *c);

/** controller_group_service() - csi.v1.GroupController. @c is borrowed for the life of the service. */
struct grpc_service controller_group_service(struct controller *c);

/** controller_require_ready() - what the CSI call Probe answers, with the reason: most calls fail before the
 * list of nodes is known. Never waits. Return: 0, or -1 with ERR_UNAVAILABLE.
 */
int controller_require_ready(const struct controller *c, struct error **err) MUST_CHECK;

/** controller_tick() - the table forgets nodes that are gone, one at a time: what a delete needs must not
 * depend on how long this controller runs, and in a cluster whose nodes come and go the table would grow for
 * ever. To be called each second. */
void controller_tick(struct controller *c);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.h - the CSI services of the central controller: they choose nodes and forward calls to them.
 *
 * Nothing is kept on disk. What must not be lost is on the nodes: they report the volumes that they have, and
 * until all that matter have done so, calls end with UNAVAILABLE. What a node has begun and not ended is
 * remembered per name (attempts.h), so that a retry goes there again; what got lost nevertheless is found by
 * leftovers.h. Calls for one volume exclude each other: a second one is ABORTED. No call holds a thread.
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "controller/possible_owners.h"
#include "net/grpc/grpc_service.h"
#include "nodes/node_caller.h"

struct controller;

struct controller_config {
	const char *driver_name; /* borrowed, as the next three */
	const char *version;
	struct node_table *nodes;
	const struct node_caller *caller;
	struct possible_owners owners;
	/* A lease: how long after the start a node that has not registered may be about to. */
	uint64_t start_window_ms;
	bool needs_owners; /* it is not ready before owners are: their list comes by itself */
	/* A volume whose ID names a node that is gone is gone with it. */
	bool forget_gone_nodes;
	uint64_t (*now_ns)(void *user); /* NULL: clock_ns() */
	void *user;
};

/** controller_new() - @config: copied, but for what is borrowed; the start window begins. Return: never NULL;
 * controller_free() when no call to a node is left, as after node_clients_free(). */
struct controller *controller_new(const struct controller_config *config);
void controller_free(struct controller *c);
DEFINE_CLEANUP(struct controller *, controller_free);

/** controller_identity_service() - csi.v1.Identity. @c is borrowed for the life of the service. */
struct grpc_service controller_identity_service(struct controller *c);

/** controller_service() - csi.v1.Controller. @c is borrowed for the life of the service. */
struct grpc_service controller_service(struct controller *c);

/** controller_require_ready() - what the CSI call Probe answers, with the reason: before the list of nodes is
 * there, hardly a volume can be made, found or deleted. Never waits. Return: 0, or -1 with ERR_UNAVAILABLE.
 */
int controller_require_ready(const struct controller *c, struct error **err) MUST_CHECK;

/** controller_tick() - the table forgets nodes that are gone, one at a time: what a delete needs must not
 * depend on how long this controller runs, and in a cluster whose nodes come and go the table would grow for
 * ever. To be called each second. */
void controller_tick(struct controller *c);

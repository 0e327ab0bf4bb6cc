/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - the registry.v0.Registry service: nodes register, repeat that as heartbeat, and unregister;
 * the scheduler extender watches the table.
 *
 * A registration from another endpoint for a live lease waits for a Probe at the old one: if a driver with
 * the right certificate still answers there, it is refused with ABORTED and the node tries again; otherwise,
 * or when another live node has the old endpoint now, it is taken. A node that gives no lease time (a Go
 * driver) is known once it has listed its volumes, is asked for them and for its capacity every 30 s, and
 * ends after three failures. An unregistration ends the lease that it describes, and no other.
 *
 * Over TLS only pmem-node-controller and node-<id> register and unregister, the latter only as <id>, and the
 * former as enum registry_proof says; only pmem-scheduler watches. Over plain TCP, which has to be allowed
 * explicitly beyond loopback, nothing is checked.
 * Threads: the loop's.
 */
#pragma once

#include "registry.pb-c.h"

#include "net/core/loop.h"
#include "net/grpc/grpc_service.h"
#include "nodes/node_caller.h"
#include "nodes/node_table.h"
#include "nodes/node_tokens.h"

/* What proves that a driver is that of the node that it names, over TLS. A certificate for node-<id> always
 * does. */
enum registry_proof {
	REGISTRY_PROOF_CERTIFICATE, /* nothing else does */
	REGISTRY_PROOF_TOKEN,       /* pmem-node-controller and a token of the node do, too */
	REGISTRY_PROOF_ROLE,        /* pmem-node-controller suffices: any node speaks for any other */
};

struct registry_config {
	struct loop *loop;
	struct node_table *table;  /* borrowed; only the registry adds reports and ends leases */
	struct node_caller caller; /* to probe and to ask nodes */
	enum registry_proof proof;
	struct node_tokens *tokens; /* borrowed; with REGISTRY_PROOF_TOKEN only */
	/* the clock of the table; NULL: clock_ns() */
	uint64_t (*now_ns)(void *user);
	void *user;
};

struct registry;

/** registry_new() - Return: never NULL; registry_free(). */
struct registry *registry_new(const struct registry_config *config);

/** registry_free() - after the server that has its service drained. Calls that wait for a node end when that
 * call does: free the caller first. NULL is allowed. */
void registry_free(struct registry *r);
DEFINE_CLEANUP(struct registry *, registry_free);

/** registry_service() - registry.v0.Registry; valid as long as @r. */
struct grpc_service registry_service(struct registry *r);

/** registry_tick() - to be called each second: leases, long polls whose time is over, nodes to be asked. */
void registry_tick(struct registry *r);

/** registry_stop() - the server is about to drain: long polls are answered, and new ones at once. */
void registry_stop(struct registry *r);

/** registry_entry_read() - copy @m, a node as WatchNodes describes it. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. @ret: node_report_free(); without endpoint and lease. */
int registry_entry_read(
	const Registry__V0__NodeEntry *m, struct node_report **ret, struct error **err) MUST_CHECK;

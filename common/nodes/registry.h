/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - the registry.v0.Registry service: nodes register, repeat that as heartbeat, unregister, and
 * ask about their pods.
 *
 * A live lease stays with its endpoint: a registration of the node from another one is refused with ABORTED
 * until the lease has ended, and the node tries again. So is a registration of another node with that
 * endpoint, unless it comes from the very address: then the lease that was there ends. A lease ends when its
 * time is over, or by the unregistration that describes it (docs/decisions/067-a-live-lease-stays.md). A
 * driver of another name is refused with FAILED_PRECONDITION; one that gives no name is of an earlier
 * release.
 *
 * Over TLS only pmem-node-controller and node-<id> do any of that, the latter only as <id>, and the
 * former as enum registry_proof says. Over plain TCP, which has to be allowed explicitly,
 * nothing is checked.
 * Threads: the loop's.
 */
#pragma once

#include "registry.pb-c.h"

#include "net/core/loop.h"
#include "net/grpc/grpc_service.h"
#include "nodes/node_table.h"
#include "nodes/node_tokens.h"
#include "nodes/pod_reader.h"

/* The proof, over TLS, that a driver runs on the node that it names. A certificate for node-<id> always
 * does. */
enum registry_proof {
	REGISTRY_PROOF_CERTIFICATE, /* nothing else does */
	REGISTRY_PROOF_TOKEN,       /* pmem-node-controller and a token of the node do, too */
	REGISTRY_PROOF_ROLE,        /* pmem-node-controller suffices: any node speaks for any other */
};

struct registry_config {
	struct loop *loop;
	const char *driver_name;  /* of the nodes that belong here; borrowed; NULL: any */
	struct node_table *table; /* borrowed; only the registry adds reports and ends leases */
	enum registry_proof proof;
	struct node_tokens *tokens; /* borrowed; with REGISTRY_PROOF_TOKEN only */
	struct pod_reader *pods;    /* borrowed; for DescribePod only; freed before the server */
	/* the clock of the table; NULL: clock_ns() */
	uint64_t (*now_ns)(void *user);
	void *user;
};

struct registry;

/** registry_new() - Return: never NULL; registry_free(). */
struct registry *registry_new(const struct registry_config *config);

/** registry_free() - after the server that has its service drained. NULL is allowed. */
void registry_free(struct registry *r);
DEFINE_CLEANUP(struct registry *, registry_free);

/** registry_service() - registry.v0.Registry; valid as long as @r. */
struct grpc_service registry_service(struct registry *r);

/** registry_tick() - to be called each second: ends leases. */
void registry_tick(struct registry *r);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_clients.h - implements node_caller.h: one gRPC client per node over mutual TLS, connected with the
 * first call, closed after a minute without calls.
 *
 * The node must present a certificate for node-<id> if it registered with one, otherwise for
 * pmem-node-controller. A call with another endpoint or name than the last one creates a new client; the old
 * one is freed when its calls in flight have ended. Each call names its node (GRPC_RECIPIENT_HEADER), so that
 * another one refuses it. At most 16 calls to a node run at a time; a further one ends with ERR_UNAVAILABLE.
 * Threads: the loop's.
 */
#pragma once

#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/tls/tls.h"
#include "nodes/node_caller.h"

struct node_clients_config {
	struct loop *loop;
	struct tls_context *tls;       /* a client's, ALPN "h2"; referenced; NULL: plain (tests, -insecure) */
	struct handshakes *handshakes; /* with tls only */
	uint64_t idle_ms;              /* idle time after which a connection is closed; 0: a minute */
};

struct node_clients;

/** node_clients_new() - no connections yet. Return: never NULL; node_clients_free(). */
struct node_clients *node_clients_new(const struct node_clients_config *config);

/** node_clients_free() - close; calls in flight end with ERR_CANCELLED before this returns, and may make no
 * new ones. NULL is allowed. */
void node_clients_free(struct node_clients *c);
DEFINE_CLEANUP(struct node_clients *, node_clients_free);

/** node_clients_caller() - the node_caller of @c; valid as long as @c. */
struct node_caller node_clients_caller(struct node_clients *c);

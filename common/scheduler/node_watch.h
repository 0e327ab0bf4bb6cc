/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_watch.h - keeps the extender's copy of the node table (sched_nodes.h) equal to a controller's, by long
 * polls of registry.v0.Registry/WatchNodes.
 *
 * The endpoint's name may lead to several controllers, which all know all nodes: the first one that answers
 * is asked until it fails, then the next one. Another run of a controller, or another controller, starts with
 * an empty table that the nodes fill within their lease time: what was known before holds that long. What no
 * controller has confirmed for as long is stale, and forgotten after an hour or two. Threads: the loop's;
 * nothing blocks. Source: registry.proto.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/core/handshakes.h"
#include "net/core/loop.h"
#include "net/tls/tls.h"
#include "scheduler/sched_nodes.h"

/* As the lease of a node (registration.h). */
#define SCHED_NODE_WATCH_LEASE_MS 90000

struct sched_node_watch_config {
	struct loop *loop;
	const char *endpoint;          /* "tcp://host:port", the host a name or an address; copied */
	struct tls_context *tls;       /* referenced; the server must bear "pmem-registry". NULL: plain */
	struct handshakes *handshakes; /* with tls only */
	struct sched_nodes *nodes;     /* borrowed; nobody else changes it */
	uint64_t lease_ms;             /* 0: SCHED_NODE_WATCH_LEASE_MS */
	uint64_t backoff_ms;           /* first wait after a failure; 0: BACKOFF_FIRST_MS */
};

struct sched_node_watch;

/** sched_node_watch_new() - begin. What cannot be reached is no error, but tried again. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (endpoint). @ret: sched_node_watch_free(). */
int sched_node_watch_new(const struct sched_node_watch_config *config, struct sched_node_watch **ret,
	struct error **err) MUST_CHECK;

/** sched_node_watch_free() - close the connection; the table stays as it is. NULL is allowed. */
void sched_node_watch_free(struct sched_node_watch *w);
DEFINE_CLEANUP(struct sched_node_watch *, sched_node_watch_free);

/** sched_node_watch_is_synced() - a controller has told all that it knows, once. */
bool sched_node_watch_is_synced(const struct sched_node_watch *w);

/** sched_node_watch_heard_ns() - when a controller answered last, of clock_ns(). Return: 0: never. */
uint64_t sched_node_watch_heard_ns(const struct sched_node_watch *w);

/** sched_node_watch_failure() - why no controller is heard at the moment, borrowed until the next round of
 * the loop. Return: NULL: one is. */
const char *sched_node_watch_failure(const struct sched_node_watch *w);

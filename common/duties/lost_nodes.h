/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lost_nodes.h - concludes which nodes are lost: for a time that is set there was neither a Node object nor a
 * registration.
 *
 * Only the leader does that. That there is no Node object is read from the API server, again and again; what
 * a watch has shown is not enough. With each registration and each Node object that is found the time begins
 * again, and with each leader: it is measured by this process's clock alone. A node that is lost is still
 * looked for. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "controller/controller.h"
#include "controller/volume_status.h"
#include "kube/client.h"

struct lost_nodes;

/* All borrowed. */
struct lost_nodes_config {
	struct kube_client *client;
	struct controller *controller; /* and its node table, cluster nodes and clock */
	uint64_t lost_after_ns;
	/* Called when the result of lost_nodes_judge() for @node_id has changed. */
	void (*changed)(void *user, const char *node_id);
	void *user;
};

/** lost_nodes_new() - Return: never NULL; lost_nodes_free(), before client and controller. */
struct lost_nodes *lost_nodes_new(const struct lost_nodes_config *config);

/** lost_nodes_free() - requests that run are given up. NULL is allowed. */
void lost_nodes_free(struct lost_nodes *l);
DEFINE_CLEANUP(struct lost_nodes *, lost_nodes_free);

/** lost_nodes_expect() - a record names @node_id: if it is gone, it is looked for. To be called at least once
 * in LOST_NODES_EXPECT_NS for each node of a record; others are forgotten. */
void lost_nodes_expect(struct lost_nodes *l, const char *node_id);

#define LOST_NODES_EXPECT_NS 300000000000ULL

/** lost_nodes_judge() - what is known of @node_id: for struct volume_view. @self: struct lost_nodes */
enum node_fate lost_nodes_judge(void *self, const char *node_id);

/** lost_nodes_tick() - to be called each second. */
void lost_nodes_tick(struct lost_nodes *l);

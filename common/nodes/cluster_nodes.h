/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_nodes.h - which nodes the cluster has: Node objects with the label `<driver>/node`, which kubelet
 * sets when the driver registers and leaves when it goes.
 *
 * Any of them may have volumes, although it may not have registered with this controller.
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "kube/client.h"

struct cluster_nodes;

/** Called when the Node of @node_id was added or deleted, or its taint out-of-service was. It must not change
 * the list. */
typedef void (*cluster_node_changed_fn)(void *user, const char *node_id);

/** cluster_nodes_new() - begin to watch Nodes, and call @fn of each change. Return: never NULL;
 * cluster_nodes_free(), before kube_client_free(). */
struct cluster_nodes *cluster_nodes_new(
	struct kube_client *client, const char *driver_name, cluster_node_changed_fn fn, void *user);

/** cluster_nodes_free() - NULL is allowed. */
void cluster_nodes_free(struct cluster_nodes *c);
DEFINE_CLEANUP(struct cluster_nodes *, cluster_nodes_free);

/** cluster_nodes_ready() - whether the list is complete; until then nothing can be concluded from it. */
bool cluster_nodes_ready(const struct cluster_nodes *c);

/** cluster_nodes_next() - walk over the node IDs, sorted; *@at is 0 at first. Return: NULL after the last;
 * otherwise borrowed until the next change. */
const char *cluster_nodes_next(const struct cluster_nodes *c, size_t *at);

/** cluster_nodes_have() - whether @node_id is among them; true until the list is ready. */
bool cluster_nodes_have(const struct cluster_nodes *c, const char *node_id);

/** cluster_nodes_is() - whether the Node called @node_name is the node with that ID; false until that is
 * known.
 */
bool cluster_nodes_is(const struct cluster_nodes *c, const char *node_name, const char *node_id);

/** cluster_nodes_out_of_service() - whether the Node of @node_id has the taint
 * node.kubernetes.io/out-of-service; false until that is known. */
bool cluster_nodes_out_of_service(const struct cluster_nodes *c, const char *node_id);

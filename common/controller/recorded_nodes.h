/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_nodes.h - which nodes have no copy of a volume, by what their PmemNodes say (pmem_node.h): for
 * nodes that have not registered with this controller.
 *
 * The leader shows of a node that each volume of its report whose ID names no node has a record that names
 * the node. A record that existed then and does not name the node is of a volume that the node does not
 * have. A record that was made later says nothing of it: the node may have run another driver meanwhile, or
 * the record may have been deleted and made again while the node was down. Threads: the loop's; nothing
 * blocks.
 */
#pragma once

#include "controller/controller_private.h"

/* A call reads no more objects than that: while more nodes are down, it waits for them. */
#define RECORDED_NODES_MAX 64

struct recorded_nodes;

/** @recorded: taken by the callee; recorded_nodes_free(). */
typedef void (*recorded_nodes_fn)(void *user, struct recorded_nodes *recorded);

/** recorded_nodes_read() - the PmemNodes of @node_ids (strv, copied), of none if there are more than
 * RECORDED_NODES_MAX. What cannot be read says nothing of its node. @fn: called exactly once, perhaps before
 * this has returned. */
void recorded_nodes_read(const struct controller *c, char *const *node_ids, recorded_nodes_fn fn, void *user);

/** recorded_nodes_free() - NULL is allowed. */
void recorded_nodes_free(struct recorded_nodes *r);

/** recorded_nodes_lack() - whether @node_id has no copy of the volume of @record, which was read after @r and
 * was made of reports. False for any other record, for NULL, and for a node of which @r says nothing. */
bool recorded_nodes_lack(
	const struct recorded_nodes *r, const struct pmem_volume *record, const char *node_id);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_nodes.h - finds out from PmemNodes (pmem_node.h) which nodes have no copy of a volume: for nodes
 * that have not registered with this controller.
 *
 * The PmemNode of a node shows until when its volumes are recorded: at that time each volume of its report
 * whose ID names no node had a record that names the node. If a record existed at that time and does not name
 * the node, the node does not have its volume. If a record was made later, nothing follows: the node may have
 * run another driver meanwhile, or the record may have been deleted and made again while the node was down.
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include "controller/controller_private.h"

/* Largest number of PmemNodes that a call reads. If more nodes are down, none is read, and the call waits for
 * the nodes. */
#define RECORDED_NODES_MAX 64

struct recorded_nodes;

/** recorded_nodes_fn - gets the result of recorded_nodes_read(). @recorded: taken over;
 * recorded_nodes_free(). */
typedef void (*recorded_nodes_fn)(void *user, struct recorded_nodes *recorded);

/** recorded_nodes_read() - read the PmemNodes of @node_ids (strv, copied); none is read if there are more
 * than RECORDED_NODES_MAX. If a PmemNode cannot be read, nothing is known about its node. @fn: called exactly
 * once, perhaps before this has returned. */
void recorded_nodes_read(const struct controller *c, char *const *node_ids, recorded_nodes_fn fn, void *user);

/** recorded_nodes_free() - release @r; NULL is allowed. */
void recorded_nodes_free(struct recorded_nodes *r);

/** recorded_nodes_lack() - whether @node_id has no copy of the volume of @record, which was read after @r and
 * was made of reports. It returns false for any other record, for NULL, and for a node whose PmemNode was not
 * read. */
bool recorded_nodes_lack(
	const struct recorded_nodes *r, const struct pmem_volume *record, const char *node_id);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_volumes.h - until when the volumes of a node are recorded, for its PmemNode (pmem_node.h): so that
 * a controller that starts later knows of a node that is down which volumes it does not have
 * (controller/recorded_nodes.h).
 *
 * Only volumes whose IDs name no node count, such as those of the Go driver: of others the ID says where they
 * are. The time is that of the newest record of such a volume that reports have made, by the clock of the API
 * server, since records that are made later may be of volumes that came to the node when it ran another
 * driver. Threads: one owner. Nothing blocks.
 */
#pragma once

#include "nodes/node_table.h"
#include "resources/pmem_volume.h"

/* Zeroed: there are no records. */
struct recorded_volumes {
	char newest[KUBE_SECONDS_LEN + 1]; /* "": there is none */
};

/** recorded_volumes_note() - there is a @record, or it has changed. */
void recorded_volumes_note(struct recorded_volumes *r, const struct pmem_volume *record);

/**
 * recorded_volumes_until() - until when the volumes of @node are recorded.
 * @shown: what its PmemNode says, or NULL
 * @find:  the record of the volume with a handle, or NULL
 *
 * Return: borrowed from @r or @shown; NULL: its last report has a volume without a record that names it, or
 * may not have all its volumes. A node that is not live keeps @shown.
 */
const char *recorded_volumes_until(const struct recorded_volumes *r, const struct node *node,
	const char *shown, const struct pmem_volume *(*find)(void *user, const char *handle), void *user);

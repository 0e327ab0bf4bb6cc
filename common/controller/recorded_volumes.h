/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_volumes.h - finds out until when the volumes of a node are recorded. Its PmemNode shows that time
 * (pmem_node.h): if the node is down, a controller that starts later knows from it which volumes the node
 * does not have (controller/recorded_nodes.h).
 *
 * Only volumes whose IDs name no node count, such as those of the Go driver; the other IDs say where their
 * volumes are. The time is the creation time of the newest record of such a volume that was made from a
 * report, by the clock of the API server: records that are made later may belong to volumes that came to the
 * node when it ran another driver. Threads: one owner. Nothing blocks.
 */
#pragma once

#include "nodes/node_table.h"
#include "resources/pmem_volume.h"

/* The creation time of the newest record. It is zeroed before the first record is noted. */
struct recorded_volumes {
	char newest[KUBE_SECONDS_LEN + 1]; /* "": no such record exists */
};

/** recorded_volumes_note() - take account of a @record that is new or has changed. */
void recorded_volumes_note(struct recorded_volumes *r, const struct pmem_volume *record);

/**
 * recorded_volumes_until() - find out until when the volumes of @node are recorded.
 * @shown: the time that its PmemNode shows, or NULL
 * @find:  returns the record of the volume with a handle, or NULL
 *
 * Return: borrowed from @r or @shown; NULL: the last report of the node has a volume without a record that
 * names the node, or may not have all volumes. For a node that is not live @shown is returned.
 */
const char *recorded_volumes_until(const struct recorded_volumes *r, const struct node *node,
	const char *shown, const struct pmem_volume *(*find)(void *user, const char *handle), void *user);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_status.h - what the status of a volume's record should show, by what the nodes have reported and by
 * what the cluster says of them: pure. Threads: none.
 */
#pragma once

#include "nodes/cluster_nodes.h"
#include "nodes/node_table.h"
#include "resources/pmem_volume.h"

/* Knowledge about a node that does not report and whose Node object the watch does not show. */
enum node_fate {
	FATE_UNKNOWN, /* what the record says stays */
	FATE_PRESENT, /* there is a Node object */
	FATE_LOST,
};

/* Sources of knowledge about nodes, from which the status of a volume is computed; all borrowed. */
struct volume_view {
	const struct node_table *nodes;
	const struct cluster_nodes *cluster;
	/* NULL: nothing is known, as by others than the leader */
	enum node_fate (*judge)(void *user, const char *node_id);
	void *user;
};

/** volume_status_new() - @record with the status that it should have now. Claim, size and handle stay when no
 * node reports them, and copies on nodes that have not registered as unreachable ones. So do copies on nodes
 * that are out of service, whatever they report. A node that is lost stays so until it reports or has a Node
 * object. Return: pmem_volume_free(). */
struct pmem_volume *volume_status_new(const struct pmem_volume *record, const struct volume_view *view);

/** volume_status_is_copy() - whether @report is of a copy of the volume of @record, in any phase and under
 * any handle. */
bool volume_status_is_copy(const struct pmem_volume *record, const struct volume_report *report);

/** volume_status_find() - the nodes that have a copy of the volume of @record, in any phase, live or not: as
 * volume_status_holders(). @ret: as of node_table_find_volume(). Return: how many. */
size_t volume_status_find(
	const struct pmem_volume *record, const struct node_table *nodes, struct node_hit **ret);

/**
 * volume_status_holders() - the nodes that report @handle and are believed.
 * @record: of that volume; NULL, or the record of another handle: nothing is known of the nodes that were
 * asked
 * @ret:    as of node_table_find_volume()
 *
 * A handle that names its node is reported by that node alone (registry_report.c). The handle of a cache
 * volume or of the Go driver names none: it is believed of the nodes that the record names, since the
 * controller has asked them. Without a record of the controller's own calls, all nodes that report it are
 * believed. Return: how many.
 */
size_t volume_status_holders(const struct pmem_volume *record, const struct node_table *nodes,
	const char *handle, struct node_hit **ret);

/** volume_status_is_filling() - whether a live node reports how far its copy of the volume of @record is
 * filled. */
bool volume_status_is_filling(const struct pmem_volume *record, const struct node_table *nodes);

/** volume_status_is_noted() - whether a reply of a node has changed its copy of the volume with @key, for
 * example deleted it, and no report of the node has shown that yet. */
bool volume_status_is_noted(const struct node_table *table, const char *key);

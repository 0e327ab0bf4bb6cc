/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reported_record.h - records that are made of what nodes report: of volumes and snapshots that no record
 * knows.
 *
 * They were made by another driver or without a controller, or their records were deleted by hand.
 *
 * Threads: one owner. Nothing blocks.
 */
#pragma once

#include "nodes/node_table.h"
#include "resources/pmem_volume.h"

/** reported_record_new() - for the volume with @key that nodes report as @handle. Return: pmem_volume_free();
 * NULL: no node has it any more. */
struct pmem_volume *reported_record_new(
	const struct node_table *nodes, const char *driver_name, const char *key, const char *handle);

/** reported_record_is_of_other_kind() - whether @record calls a volume what its nodes report as a snapshot,
 * or the reverse, and has to be released so that the report makes it again. That happens when a controller
 * made it that does not know of snapshots, or when the node could not say what it was, because its state file
 * was damaged. False for a record that a call has made, since reports do not say all of it; while the volume
 * is being deleted; without a handle, by which the report would not be found; and where others keep a record
 * that is released already. */
bool reported_record_is_of_other_kind(const struct pmem_volume *record, const struct node_table *nodes);

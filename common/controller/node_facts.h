/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_facts.h - replies of nodes as facts. A reply is a claim of whoever answers at the node's endpoint. It
 * becomes a fact here, by comparison with the request and with what that node can say of itself: IDs are
 * those that it mints for the name, amounts are within what a machine can address, and everything else is
 * copied field by field. No other file reads the reply of a node (scripts/checks/claims). Reports of nodes
 * are checked in nodes/registry_report.c.
 *
 * Functions that take a reply return 0, or -1 with ERR_INTERNAL that says in which field the reply cannot be
 * true; node_fact_known_group() and node_fact_growth(), whose calls are repeated, with ERR_UNAVAILABLE.
 * Copies that they return live in @arena. Threads: safe; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "csi.pb-c.h"

#include "base/arena.h"
#include "base/error.h"

/* The volume or snapshot that a node was asked to make; all borrowed. */
struct made_question {
	const char *node_id; /* of the node that was asked */
	const char *name;    /* of the volume or snapshot */
	bool is_cache;       /* one ID on all nodes */
	const char *source;  /* handle that is to be copied; NULL: none */
	bool source_is_snapshot;
	uint64_t least_bytes;
};

/** node_fact_volume() - @reply, a CreateVolumeResponse, to @q. @ret: with ID, capacity, context and source
 * only. */
int node_fact_volume(const struct made_question *q, const ProtobufCMessage *reply, struct arena *arena,
	Csi__V1__Volume **ret, struct error **err) MUST_CHECK;

/** node_fact_snapshot() - @reply, a CreateSnapshotResponse, to @q: as if it were a volume. @ret_taken_s:
 * seconds since 1970; 0: not known. */
int node_fact_snapshot(const struct made_question *q, const ProtobufCMessage *reply, struct arena *arena,
	Csi__V1__Volume **ret, uint64_t *ret_taken_s, struct error **err) MUST_CHECK;

/** node_fact_group() - @reply, a CreateVolumeGroupSnapshotResponse of @node_id to the request for the group
 * @name.
 * @ret: borrowed from @reply; its ID is the one that the node mints, and each of its snapshots is still a
 * claim, for node_fact_snapshot(). */
int node_fact_group(const char *node_id, const char *name, const ProtobufCMessage *reply,
	const Csi__V1__VolumeGroupSnapshot **ret, struct error **err) MUST_CHECK;

/** node_fact_known_group() - @reply, a GetVolumeGroupSnapshotResponse about the group @id: snapshots of that
 * group, with IDs that name the node as that of the group does. */
int node_fact_known_group(const char *node_id, const char *id, const ProtobufCMessage *reply,
	struct arena *arena, Csi__V1__VolumeGroupSnapshot **ret, struct error **err) MUST_CHECK;

/** node_fact_growth() - @reply, a ControllerExpandVolumeResponse to a request for @least_bytes. @ret_bytes:
 * the size of the volume. @ret_node: whether NodeExpandVolume has to follow. */
int node_fact_growth(uint64_t least_bytes, const ProtobufCMessage *reply, uint64_t *ret_bytes, bool *ret_node,
	struct error **err) MUST_CHECK;

/** node_fact_confirms() - @reply, a ValidateVolumeCapabilitiesResponse. Return: whether all that was asked
 * for is confirmed. @ret_why: otherwise the reason of the node, as node_text() */
bool node_fact_confirms(const ProtobufCMessage *reply, struct arena *arena, const char **ret_why);

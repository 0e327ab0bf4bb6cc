/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_objects.h - keeps PmemVolume objects in line with what the nodes report.
 *
 * CreateVolume and DeleteVolume write what they do into the volume's record themselves (controller.h). The
 * leader does the rest: it shows in the status what nodes report, when the nodes of the record have
 * registered or have had a lease time since the controller's start to do so; makes records of volumes that
 * nodes report and no record knows, and makes such a record again if it calls a snapshot a volume
 * (reported_record.h); adds nodes that report a copy to the record, and takes out those that
 * have none although they were asked, when nothing has been written for VOLUME_OBJECTS_SETTLED_NS; sets the
 * size that was asked for to what the nodes have, when a growth has not come about for that time; and
 * releases the record of a deleted volume when no node erases it any more. The record of a volume that no
 * node has, as after a driver of another version has deleted it, is released when neither a PersistentVolume
 * nor a claim is there for it. The claim of a volume that becomes unreachable gets an Event. A retained
 * volume for which there is a PersistentVolume again, some minutes after its node has returned, is retained
 * no longer. The duty never asks a node for anything, and erases nothing.
 *
 * Reads and writes that follow from reports wait for a token, of which each node has a share (fair_turns.h);
 * then the last state is written. A node that has REPORTED_LIMIT_RECORDS records because of its reports only
 * gets no more. Writes that follow from calls do not wait: those of the specification, and the release of
 * records that calls have made.
 *
 * That a record is absent is concluded from a read that began after the informer did not have it. A record is
 * left alone while this process works on a call for the volume; other replicas exclude each other by
 * versions. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "controller/controller.h"
#include "duties/claim_lookup.h"
#include "duties/lost_nodes.h"
#include "duties/orphans.h"
#include "duties/reported_limit.h"
#include "duties/volume_events.h"
#include "kube/client.h"
#include "net/core/log_quota.h"
#include "pacing/bucket.h"

/* Time without a write to a record after which the reports of nodes correct it. The outcome of a call to a
 * node is in the report of the node by then, as controllers do not wait longer for an answer (controller.c).
 * Only the zeroing of a very large growth goes on for longer: then the recorded size is that before the
 * growth until the next call or report. */
#define VOLUME_OBJECTS_SETTLED_NS 600000000000ULL

/* Writes per second that follow from the reports of one node: a volume that is made or deleted changes what
 * its node reports two or three times, and a node does a few of these per second (docs/PERFORMANCE.md). After
 * an update of the controller all volumes of a node may change at once. */
#define VOLUME_OBJECTS_SHARE       10
#define VOLUME_OBJECTS_SHARE_BURST 200

struct rebound_claims;
struct volume_objects;

struct volume_objects_config {
	struct kube_client *client; /* borrowed, as all that follows; for the informer */
	const char *driver_name;
	struct controller *controller; /* and its node table, records and clock */
	struct claim_lookup lookup;    /* .look NULL: records of volumes that no node has stay */
	struct volume_events events;
	struct lost_nodes *lost;              /* NULL: no node is lost */
	const struct rebound_claims *rebound; /* NULL: volumes keep the claim that they were made for */
	struct bucket *writes;                /* for all writes that follow from reports */
	struct log_quota *lines;              /* for lines that do; NULL: no limit */
	struct reported_limit_config limit;
};

/** volume_objects_new() - begin to read and to watch. Return: never NULL; volume_objects_free(), before what
 * it borrows and before the client that writes records is freed. */
struct volume_objects *volume_objects_new(const struct volume_objects_config *config);

/** volume_objects_free() - writes that have begun end on their own. NULL is allowed. */
void volume_objects_free(struct volume_objects *o);
DEFINE_CLEANUP(struct volume_objects *, volume_objects_free);

/** volume_objects_node_changed() - cluster_nodes.h or lost_nodes.h has named @node_id. */
void volume_objects_node_changed(struct volume_objects *o, const char *node_id);

/** volume_objects_claim_changed() - another claim may have the volume that was made as @volume_name. */
void volume_objects_claim_changed(struct volume_objects *o, const char *volume_name);

/** volume_objects_tick() - to be called each second. */
void volume_objects_tick(struct volume_objects *o);

/** volume_objects_records() - the records as the informer has them: none before its first list is complete.
 * Valid as long as @o. */
struct record_list volume_objects_records(struct volume_objects *o);

/** volume_objects_recorded_until() - find out until when the volumes of @node are recorded
 * (recorded_volumes.h), by the records that the informer has. @shown: the time that its PmemNode shows, or
 * NULL; it is returned while the first list is not complete. Return: borrowed from @o or @shown; NULL: not
 * all volumes are recorded. */
const char *volume_objects_recorded_until(
	struct volume_objects *o, const struct node *node, const char *shown);

/** volume_objects_pending() - how many objects wait to be looked at or written, for metrics. */
size_t volume_objects_pending(const struct volume_objects *o);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_private.h - what the parts of controller.h share. See there for threads.
 *
 * The work behind each method knows nothing of gRPC: it ends by calling waiter.finish().
 */
#pragma once

#include "csi.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "controller/controller.h"
#include "controller/inventory_waits.h"
#include "controller/key_locks.h"
#include "volume/id.h"

struct controller {
	struct controller_config config;
	struct key_locks *locks;
	struct inventory_waits *waits;
	uint64_t started_ns;
};

/* A caller that waits for the end of some work. Request, reply and arena live until @finish is called. */
struct waiter {
	struct arena *arena;
	uint64_t deadline_ns;
	/* Exactly once. @error: taken; NULL: success */
	void (*finish)(void *user, struct error *error);
	bool (*is_wanted)(void *user);
	void *user;
};

/* How often a call reads a record that others change at the same time. */
#define RECORD_READS_MAX 4

/* The consequence of a node's answer to CreateVolume or DeleteVolume for the volume. */
enum node_answer {
	ANSWER_OK,
	ANSWER_NO_ROOM, /* it has nothing of the volume, and another node may take it */
	ANSWER_REFUSED, /* it has done nothing, and others would not either */
	ANSWER_UNSURE,  /* it may have the volume, now or soon */
};

/** controller_now_ns() - by the clock of the configuration. */
uint64_t controller_now_ns(const struct controller *c);

/** controller_in_start_window() - whether nodes that have not registered may still do so. */
bool controller_in_start_window(const struct controller *c);

/** controller_is_gone() - whether the cluster has no such node any more, and its driver has sent nothing for
 * a lease time; a controller that has just started comes to the same result. */
bool controller_is_gone(const struct controller *c, const char *node_id);

/** controller_is_out_of_service() - whether the Node of @node_id has the taint out-of-service: such a node
 * gets no new volume, although it may report. */
bool controller_is_out_of_service(const struct controller *c, const char *node_id);

/** controller_classify() - of a node's answer; @error: NULL: success. */
enum node_answer controller_classify(const struct error *error);

/** controller_pass_on() - @error of @node_id for the caller. Codes that external-provisioner would take as
 * final although the outcome is not known become ERR_UNAVAILABLE. Return: error_free(). */
struct error *controller_pass_on(const char *node_id, const struct error *error);

/** controller_timeout_ms() - for a call to a node on behalf of a caller that waits until @deadline_ns: its
 * answer must come before that. Return: 0: no time is left. */
uint64_t controller_timeout_ms(const struct controller *c, uint64_t deadline_ns);

/** controller_live_node() - @node_id, if it is in the table and live; otherwise NULL. */
const struct node *controller_live_node(const struct controller *c, const char *node_id);

/** controller_call() - node_caller.call() of the configuration. @c must live until it has ended. */
void controller_call(struct controller *c, const struct node *node, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user);

/** controller_read_record() - of the volume with @key. controller_write_record(): see volume_records.h. */
void controller_read_record(
	const struct controller *c, const struct volume_key *key, volume_record_fn fn, void *user);
void controller_write_record(const struct controller *c, enum volume_record_write what,
	const struct pmem_volume *record, volume_record_fn fn, void *user);

/** controller_record_failure() - what a caller gets when the record of @volume, its name or handle, could not
 * be read or written: ERR_UNAVAILABLE, since the outcome is not known. Return: error_free(). */
struct error *controller_record_failure(const char *volume, const struct error *error);

/** controller_take_record() - replace *@at by @record (taken). */
void controller_take_record(struct pmem_volume **at, struct pmem_volume *record);

/** controller_drop_nodes() - @absent (strv) have no copy. Return: whether @record has changed. */
bool controller_drop_nodes(struct pmem_volume *record, char *const *absent);

/** controller_create() - CreateVolume. controller_delete(), controller_expand(), controller_modify(),
 * controller_validate(): likewise. */
void controller_create(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply);
void controller_delete(
	struct controller *c, const struct waiter *waiter, const Csi__V1__DeleteVolumeRequest *request);
void controller_expand(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ControllerExpandVolumeRequest *request,
	Csi__V1__ControllerExpandVolumeResponse *reply);
void controller_modify(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ControllerModifyVolumeRequest *request);
void controller_validate(struct controller *c, const struct waiter *waiter,
	const Csi__V1__ValidateVolumeCapabilitiesRequest *request,
	Csi__V1__ValidateVolumeCapabilitiesResponse *reply);

/** controller_create_for_claim() - controller_create(), before which the claim that the volume is for is
 * read, if annotations of claims count. */
void controller_create_for_claim(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply);

/* Snapshots that one call to their node makes together. */
struct joint_call {
	const char *name; /* of the group snapshot */
	/* Asks @node for one of them, as controller_call(), with a CreateSnapshotResponse as reply; may
	 * answer at once. */
	void (*ask)(void *user, size_t member, const struct node *node, uint64_t timeout_ms, grpc_reply_fn fn,
		void *fn_user);
	void *user;
};

/** controller_create_snapshot() - CreateSnapshot. @joint: makes this snapshot, the one with the number
 * @member, together with others; borrowed; NULL: it is made alone. controller_delete_snapshot():
 * DeleteSnapshot. */
void controller_create_snapshot(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateSnapshotRequest *request, Csi__V1__CreateSnapshotResponse *reply,
	const struct joint_call *joint, size_t member);
void controller_delete_snapshot(
	struct controller *c, const struct waiter *waiter, const Csi__V1__DeleteSnapshotRequest *request);

/** controller_delete_member() - controller_delete_snapshot() for a snapshot of the group @group (borrowed),
 * and ERR_INVALID_ARGUMENT for one that is known to be of no group or another one. */
void controller_delete_member(
	struct controller *c, const struct waiter *waiter, const char *id, const char *group);

/** controller_create_group() - CreateVolumeGroupSnapshot. controller_delete_group(): likewise. */
void controller_create_group(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeGroupSnapshotRequest *request,
	Csi__V1__CreateVolumeGroupSnapshotResponse *reply);
void controller_delete_group(struct controller *c, const struct waiter *waiter,
	const Csi__V1__DeleteVolumeGroupSnapshotRequest *request);

/** controller_get_group() - GetVolumeGroupSnapshot, which the node of the group answers: its reports do not
 * say how many snapshots the group had. ERR_INVALID_ARGUMENT: a snapshot does not belong to it, or not any
 * more; ERR_UNAVAILABLE: the node is not connected, or nodes have not reported their volumes yet. */
void controller_get_group(struct controller *c, const struct waiter *waiter,
	const Csi__V1__GetVolumeGroupSnapshotRequest *request,
	Csi__V1__GetVolumeGroupSnapshotResponse *reply);

/** controller_find_copy() - the ID under which @node would have the volume that was made for @name. Return:
 * false: what it has for that name is not to be deleted without a call for it, since it was in use, or made
 * by others. */
bool controller_find_copy(
	const struct node *node, const char *name, bool is_cache, char id[static VOLUME_ID_MAX + 1]);

/** controller_delete_copy() - delete the volume @id on @node alone if it was never staged, which the node
 * checks: only for nodes that serve NodeVolumes. @fn: as of controller_call(), ERR_PRECONDITION: it was
 * staged; a success is noted in the node table. The volume's lock is the caller's. */
void controller_delete_copy(
	struct controller *c, const struct node *node, const char *id, grpc_reply_fn fn, void *user);

/* The result of CreateVolume; all borrowed. */
struct settlement_of {
	struct volume_key key;
	bool record_differs; /* from what is written, by nodes that have nothing */
	const char *name;    /* that the volume is made for */
	bool is_cache;
	const char *const *made_on; /* node IDs, when the call has succeeded */
	size_t n_made;              /* 0: it has failed */
};

/** controller_settle() - delete the copies that nodes of @record (taken; NULL: no record) have besides
 * those where the volume was made, write the record where it differs, and then release the lock of the key,
 * perhaps after this has returned. */
void controller_settle(struct controller *c, const struct settlement_of *of, struct pmem_volume *record);

typedef void (*copy_removed_fn)(void *user, const struct error *error);

/** controller_remove_copy() - controller_delete_copy() if a read of the record shows that the node was asked
 * for it and was not lost since, and then take the node out of the record, which goes with its last node.
 * @fn: called exactly once; @error: borrowed, NULL: both are done, ERR_PRECONDITION: it was staged, or the
 * record does not allow it */
void controller_remove_copy(
	struct controller *c, const struct node *node, const char *id, copy_removed_fn fn, void *user);

/** controller_require_inventories() - all nodes that are known have reported their volumes. Return: 0, or -1
 * with ERR_UNAVAILABLE: a volume that is not in the table may exist nevertheless. */
int controller_require_inventories(const struct controller *c, struct error **err) MUST_CHECK;

/** controller_has_reported() - whether the node that @id names has reported its volumes to this controller;
 * true if it names none. */
bool controller_has_reported(const struct controller *c, const char *id);

/** controller_snapshot() - make the message about the snapshot of @hit. */
Csi__V1__Snapshot *controller_snapshot(const struct node_hit *hit, struct arena *arena);

/** controller_list() - ListVolumes. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_ABORTED (bad token),
 * ERR_UNAVAILABLE (nodes have not reported their volumes yet, also a node of the cluster that is not live).
 */
int controller_list(struct controller *c, struct arena *arena, const Csi__V1__ListVolumesRequest *request,
	Csi__V1__ListVolumesResponse *reply, struct error **err) MUST_CHECK;

/** controller_list_snapshots() - ListSnapshots. Return: as controller_list(); for one snapshot or one source
 * only the node that its ID names has to have reported, and nodes that are live. */
int controller_list_snapshots(struct controller *c, struct arena *arena,
	const Csi__V1__ListSnapshotsRequest *request, Csi__V1__ListSnapshotsResponse *reply,
	struct error **err) MUST_CHECK;

/** controller_get_snapshot() - GetSnapshot. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_NOT_FOUND,
 * ERR_UNAVAILABLE (nodes have not reported their volumes yet). */
int controller_get_snapshot(struct controller *c, struct arena *arena,
	const Csi__V1__GetSnapshotRequest *request, Csi__V1__GetSnapshotResponse *reply,
	struct error **err) MUST_CHECK;

/** controller_list_health() - ControllerListVolumeHealth. Return: as controller_list(). */
int controller_list_health(struct controller *c, struct arena *arena,
	const Csi__V1__ControllerListVolumeHealthRequest *request,
	Csi__V1__ControllerListVolumeHealthResponse *reply, struct error **err) MUST_CHECK;

/** controller_get_health() - ControllerGetVolumeHealth. Return: 0, or -1 with ERR_INVALID_ARGUMENT,
 * ERR_NOT_FOUND, ERR_UNAVAILABLE (nodes have not reported their volumes yet). */
int controller_get_health(struct controller *c, struct arena *arena,
	const Csi__V1__ControllerGetVolumeHealthRequest *request,
	Csi__V1__ControllerGetVolumeHealthResponse *reply, struct error **err) MUST_CHECK;

/** controller_capacity() - GetCapacity. Return: 0, or -1 with ERR_INVALID_ARGUMENT, ERR_UNAVAILABLE. */
int controller_capacity(struct controller *c, struct arena *arena, const Csi__V1__GetCapacityRequest *request,
	Csi__V1__GetCapacityResponse *reply, struct error **err) MUST_CHECK;

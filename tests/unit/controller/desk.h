/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.h - a controller whose calls to nodes land on a desk, where the test answers them; and a caller.
 */
#pragma once

#include "controller/controller_private.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/resources/memory_records.h"
#include "unit/unit.h"

#define DESK_DRIVER   "pmem-csi.example"
#define DESK_CALLS    128
#define DESK_CLUSTER  80
#define DESK_SHOWN    2
#define DESK_LEASE_NS 90000000000ULL
#define DESK_GIB      (1ULL << 30)

/* One call to a node. */
struct desk_call {
	char node_id[32];
	bool create;
	bool if_never_staged;
	bool answered;
	uint64_t timeout_ms;
	Csi__V1__CreateVolumeRequest *create_request;
	Csi__V1__CreateSnapshotRequest *create_snapshot_request;
	Csi__V1__CreateVolumeGroupSnapshotRequest *create_group_request;
	Csi__V1__GetVolumeGroupSnapshotRequest *get_group_request;
	Csi__V1__DeleteVolumeRequest *delete_request;
	Csi__V1__DeleteSnapshotRequest *delete_snapshot_request;
	Csi__V1__ValidateVolumeCapabilitiesRequest *validate_request;
	Csi__V1__ControllerExpandVolumeRequest *expand_request;
	Csi__V1__ControllerModifyVolumeRequest *modify_request;
	grpc_reply_fn fn;
	void *user;
};

/* One call of a client. */
struct desk_ask {
	struct arena *arena;
	bool finished;
	bool gone; /* the caller waits no longer */
	struct error *error;
	uint64_t deadline_ns;
	Csi__V1__CreateVolumeRequest create;
	Csi__V1__CreateVolumeResponse created;
	Csi__V1__CreateSnapshotRequest create_snapshot;
	Csi__V1__CreateSnapshotResponse snapshot_created;
	Csi__V1__DeleteVolumeRequest delete;
	Csi__V1__DeleteSnapshotRequest delete_snapshot;
	Csi__V1__ControllerExpandVolumeRequest expand;
	Csi__V1__ControllerExpandVolumeResponse expanded;
	Csi__V1__ControllerModifyVolumeRequest modify;
	Csi__V1__CapacityRange range; /* of expand */
};

struct desk {
	uint64_t now_ns;
	struct node_table *table;
	struct controller *controller;
	struct node_caller caller;
	struct desk_call calls[DESK_CALLS];
	size_t n_calls;
	struct cluster_nodes cluster;
	bool cluster_ready;
	const char *cluster_ids[DESK_CLUSTER];
	size_t n_cluster;
	const char *missing; /* the node that is not there any more */
	const char *out_of_service;
	struct memory_records *memory;
	struct volume_records records;
	unsigned n_writes;
	unsigned fail_write; /* the write of that number fails, from 1 */
	bool fail_all;       /* all writes from that one on */
	enum err_code fail_code;
	bool fail_after; /* it is done nevertheless */
	uint64_t write_takes_ns;
	unsigned n_reads;
	unsigned fail_read; /* the read of that number fails, from 1 */
	/* The PmemNodes that can be read, with the time until which the volumes of the node are recorded. */
	struct {
		const char *node_id;
		const char *until;
	} shown[DESK_SHOWN];
	unsigned n_node_reads;
	void (*on_node_read)(struct desk *d); /* called before the read is answered; NULL: not needed */
};

/** desk_record() - a copy of the record of the volume @name; NULL: there is none. */
struct pmem_volume *desk_record(struct desk *d, const char *name);

/** desk_put_record() - write @record (taken) as another replica would. */
void desk_put_record(struct desk *d, enum volume_record_write what, struct pmem_volume *record);

/** desk_check_nodes() - the record of volume @name names exactly @nodes, "n1 n2", or "" when it is deleted;
 * NULL: there is no record. */
void desk_check_nodes(struct desk *d, const char *name, const char *nodes);

/** desk_open() - now is after the start window, unless @early. */
void desk_open(struct desk *d, bool early, bool forget_gone);
void desk_close(struct desk *d);

/** desk_add_node() - registers it, with room for a volume of @max_gib. */
void desk_add_node(struct desk *d, const char *node_id, uint64_t max_gib);

/** desk_ask_init() - a CreateVolume of 1 GiB that would succeed. desk_ask_done(): all of it. */
void desk_ask_init(struct desk_ask *a, const char *name);
void desk_ask_done(struct desk_ask *a);

/** desk_ask_nodes() - @requisite and @preferred: IDs that end with NULL; may be NULL. */
void desk_ask_nodes(struct desk_ask *a, const char *const *requisite, const char *const *preferred);

/** desk_ask_parameter() - one more. */
void desk_ask_parameter(struct desk_ask *a, const char *key, const char *value);

/** desk_ask_source() - the volume is to be a clone of @handle. desk_ask_restored(): restored from that
 * snapshot. */
void desk_ask_source(struct desk_ask *a, const char *handle);
void desk_ask_restored(struct desk_ask *a, const char *handle);

/** desk_create() - desk_delete(), desk_expand(), desk_modify(): begin. */
void desk_create(struct desk *d, struct desk_ask *a);
void desk_expand(struct desk *d, struct desk_ask *a, const char *handle, uint64_t required_bytes);
void desk_modify(struct desk *d, struct desk_ask *a, const char *handle, const char *key, const char *value);
void desk_delete(struct desk *d, struct desk_ask *a, const char *handle);
void desk_create_snapshot(struct desk *d, struct desk_ask *a, const char *name, const char *source);
void desk_delete_snapshot(struct desk *d, struct desk_ask *a, const char *handle);

/** desk_waiter() - for @a. */
struct waiter desk_waiter(struct desk_ask *a);

/** desk_last() - the newest call, which must not be answered yet and go to @node_id. */
struct desk_call *desk_last(struct desk *d, const char *node_id);

/** desk_made() - the node answers that it has the volume, with the source that was asked for, under the ID
 * that it would mint. desk_grown(): that the volume has @size_bytes, and has a file system if @is_mount.
 * desk_modified(): that its parameters are changed.
 * desk_deleted(): that it is gone. desk_failed(): with an error. */
void desk_made(struct desk_call *c);

/** desk_taken() - the node answers that it has the snapshot of @source, taken at @taken_s, of 1 GiB. */
void desk_taken(struct desk_call *c, const char *source, int64_t taken_s);
void desk_grown(struct desk_call *c, uint64_t size_bytes, bool is_mount);
void desk_modified(struct desk_call *c);
void desk_deleted(struct desk_call *c);
void desk_failed(struct desk_call *c, enum err_code code, const char *text);

/** DESK_FAILED() - @a has ended with that code and text. */
#define DESK_FAILED(a, error_code, text)                                                                     \
	do {                                                                                                 \
		ck_assert((a)->finished);                                                                    \
		ck_assert_msg((a)->error != NULL, "did not fail");                                           \
		ck_assert_msg((a)->error->code == (error_code), "code is %s: %s",                            \
			err_code_name((a)->error->code), (a)->error->msg);                                   \
		ck_assert_msg(                                                                               \
			strstr((a)->error->msg, (text)), "\"%s\" lacks \"%s\"", (a)->error->msg, (text));    \
	} while (0)

/** DESK_OK() - @a has ended well. */
#define DESK_OK(a)                                                                                           \
	ck_assert_msg((a)->finished && !(a)->error, "%s", (a)->finished ? (a)->error->msg : "not finished")

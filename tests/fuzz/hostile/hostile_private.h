/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_private.h - inside of hostile_cluster.h. Private to hostile_*.c.
 */
#pragma once

#include "controller/controller_private.h"
#include "fuzz/hostile/honest_node.h"
#include "fuzz/hostile/liar.h"
#include "nodes/registry.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/resources/memory_records.h"

#define HOSTILE_DRIVER  "pmem-csi.example"
#define HOSTILE_GROUP   "groupsnapshot-1"
#define HOSTILE_HONEST  2 /* nodes; the one after them lies */
#define HOSTILE_NODES   3
#define HOSTILE_EVIL    2 /* its number */
#define HOSTILE_CLAIMS  6
#define HOSTILE_MEMBERS 2 /* snapshots of a group */
#define HOSTILE_HANDED  128
#define HOSTILE_PENDING 64

enum claim_kind { CLAIM_VOLUME, CLAIM_CACHE, CLAIM_CLONE, CLAIM_SNAPSHOT };

/* A volume that the provisioner wants, under one name. */
struct claim {
	const char *name;
	enum claim_kind kind;
	const char *source; /* handle that is copied, of struct handed; NULL: none */
	bool is_restored;   /* the source is a snapshot */
	struct handed *has; /* NULL: nothing was given out for it */
	bool is_busy;       /* a call for it is in progress */
	/* When that call began: */
	struct handed *had;
	bool was_there;                    /* an honest node that was connected had that */
	bool source_was_on[HOSTILE_NODES]; /* as far as records said */
};

/* A group snapshot that the provisioner wants: of the same volumes until it is deleted. */
struct group {
	struct claim members[HOSTILE_MEMBERS]; /* without a source: none is chosen yet */
	char names[HOSTILE_MEMBERS][VOLUME_NAME_MAX + 1];
	char id[VOLUME_ID_MAX + 1]; /* "": nothing was given out */
	bool is_busy;
};

/* A handle that the controller has given out. */
struct handed {
	char handle[VOLUME_HANDLE_MAX + 1];
	char name[VOLUME_NAME_MAX + 1];
	const struct claim *claim;
	bool on[HOSTILE_NODES]; /* the nodes that were named with it */
	bool is_deleting;       /* the provisioner has asked for its deletion */
	bool is_replaced;       /* another handle was given out for the name */
};

/* A call of the controller that its node has not answered. */
struct pending {
	size_t node; /* that the call is for */
	size_t at;   /* that has its endpoint; HOSTILE_NODES: none has */
	ProtobufCMessage *request;
	const ProtobufCMessageDescriptor *reply_type;
	grpc_reply_fn fn;
	void *user;
};

enum ask_kind { ASK_CREATE, ASK_DELETE, ASK_CHANGE, ASK_SHOW };

/* A call of the provisioner. */
struct ask {
	struct ask *next;
	struct hostile_cluster *cluster;
	enum ask_kind kind;
	struct claim *claim; /* NULL: it is about the group */
	struct arena *arena;
	bool is_over;
	union {
		Csi__V1__CreateVolumeResponse volume;
		Csi__V1__CreateSnapshotResponse snapshot;
		Csi__V1__ControllerExpandVolumeResponse expanded;
		Csi__V1__CreateVolumeGroupSnapshotResponse group;
		Csi__V1__GetVolumeGroupSnapshotResponse shown;
	} reply;
};

struct hostile_cluster {
	struct span in;
	uint64_t now_ns;
	struct loop *loop;
	struct node_table *table;
	struct registry *registry;
	struct controller *controller;
	struct node_caller caller;
	struct cluster_nodes cluster;
	struct memory_records *memory;
	struct honest_node honest[HOSTILE_HONEST];
	bool is_up[HOSTILE_HONEST];
	bool is_silent[HOSTILE_HONEST]; /* it registers without its volumes, as a driver that starts */
	struct liar liar;
	bool is_rid; /* the node that lies was taken out of the cluster */
	struct claim claims[HOSTILE_CLAIMS];
	struct group group;
	struct handed handed[HOSTILE_HANDED];
	size_t n_handed;
	struct pending pending[HOSTILE_PENDING];
	size_t n_pending;
	struct ask *asks;
};

extern const char *const hostile_node_ids[HOSTILE_NODES + 1];
extern const char *const hostile_endpoints[HOSTILE_NODES];

/** hostile_node_number() - get the number of the node @node_id. Return: HOSTILE_NODES if no node has that ID.
 */
size_t hostile_node_number(const char *node_id);

/** hostile_record() - get the record of the volume with @key. Return: pmem_volume_free(), or NULL */
struct pmem_volume *hostile_record(struct hostile_cluster *c, const struct volume_key *key);

/* hostile_asks.c */

/** hostile_create() - the provisioner asks for @claim. hostile_delete(), hostile_change(): for its handle. */
void hostile_create(struct hostile_cluster *c, struct claim *claim);
void hostile_delete(struct hostile_cluster *c, struct claim *claim);
void hostile_change(struct hostile_cluster *c, struct claim *claim);

/** hostile_list() - the provisioner lists volumes, snapshots and capacity. Return: whether all calls have
 * succeeded. */
bool hostile_list(struct hostile_cluster *c);

/** hostile_ask() - begin a call, which ask_finish() of its waiter ends. @claim: NULL: it is about the group.
 * hostile_waiter(): that of @a. */
struct ask *hostile_ask(struct hostile_cluster *c, enum ask_kind kind, struct claim *claim);
struct waiter hostile_waiter(struct ask *a);

/** hostile_note_began() - note what is known of @claim when a call for it begins. */
void hostile_note_began(struct hostile_cluster *c, struct claim *claim);

/** hostile_note_given() - note that @handle was given out for @claim, on the nodes @on. */
void hostile_note_given(
	struct hostile_cluster *c, struct claim *claim, const char *handle, const bool on[HOSTILE_NODES]);

/** hostile_note_deleted() - note that the controller says that @claim is gone. */
void hostile_note_deleted(struct hostile_cluster *c, struct claim *claim);

/* hostile_groups.c */

/** hostile_group_create() - the snapshotter asks for the group; without effect where there are no volumes to
 * take it of. hostile_group_delete(), hostile_group_show(): for what it has of it. */
void hostile_group_create(struct hostile_cluster *c, uint8_t which);
void hostile_group_delete(struct hostile_cluster *c);
void hostile_group_show(struct hostile_cluster *c);

/** hostile_group_ended() - the call @a about the group has succeeded. */
void hostile_group_ended(struct ask *a);

/* hostile_cluster.c */

/** hostile_report() - @node registers. @is_silent: without its volumes; the node that lies says what the
 * input says otherwise */
void hostile_report(struct hostile_cluster *c, size_t node, bool is_silent);

/** hostile_tick() - a part of a lease passes. hostile_restart(): the controller starts again.
 * hostile_answer_all(): honest nodes answer all calls, and those that follow. hostile_lose_rest(): the calls
 * that are left end at their deadlines; those that follow are not answered yet. */
void hostile_tick(struct hostile_cluster *c);
void hostile_restart(struct hostile_cluster *c);
void hostile_answer_all(struct hostile_cluster *c);
void hostile_lose_rest(struct hostile_cluster *c);

/* hostile_end.c */

/** hostile_check_end() - after a history nothing waits for ever: neither while the node that lies registers
 * and says nothing else, nor after it was taken out of the cluster. */
void hostile_check_end(struct hostile_cluster *c);

/* hostile_invariants.c: they end the program when one is broken. */

/** hostile_check_call() - @request, which the controller sends to @node_id. */
void hostile_check_call(struct hostile_cluster *c, const char *node_id, const ProtobufCMessage *request);

/** hostile_check_write() - the controller writes @v into the record that was @before; NULL: no record. */
void hostile_check_write(struct hostile_cluster *c, enum volume_record_write what,
	const struct pmem_volume *before, const struct pmem_volume *v);

/** hostile_is_there() - whether an honest node that is connected has what was given out as @h; NULL: nothing
 * was. */
bool hostile_is_there(struct hostile_cluster *c, const struct handed *h);

/** hostile_can_be_on() - whether the volume or snapshot @handle can be on @node_id. The handle of a cache
 * volume, or of the Go driver, names no node: its record does, until it is deleted. */
bool hostile_can_be_on(struct hostile_cluster *c, const char *node_id, const char *handle);

/** hostile_check_given() - @handed is given out for its claim. */
void hostile_check_given(const struct handed *handed);

/** hostile_check_deletion() - the honest node @n is about to delete @v. */
void hostile_check_deletion(
	const struct hostile_cluster *c, const struct honest_node *n, const struct honest_volume *v);

/** hostile_check_deleted() - @handed is gone, as the controller says. */
void hostile_check_deleted(struct hostile_cluster *c, const struct handed *handed);

/** hostile_check_state() - after each step: calls, volumes and the table of nodes. */
void hostile_check_state(struct hostile_cluster *c);

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
#define HOSTILE_HONEST  2 /* nodes; the one after them lies */
#define HOSTILE_NODES   3
#define HOSTILE_CLAIMS  6
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
};

/* A handle that the controller has given out. */
struct handed {
	char handle[VOLUME_HANDLE_MAX + 1];
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

enum ask_kind { ASK_CREATE, ASK_DELETE, ASK_CHANGE };

/* A call of the provisioner. */
struct ask {
	struct ask *next;
	struct hostile_cluster *cluster;
	enum ask_kind kind;
	struct claim *claim;
	struct handed *handed;             /* that is deleted or changed, or was given out before */
	bool was_there;                    /* an honest node that was connected when it began has that */
	bool source_was_on[HOSTILE_NODES]; /* when it began, as far as records say */
	struct arena *arena;
	bool is_over;
	union {
		Csi__V1__CreateVolumeResponse volume;
		Csi__V1__CreateSnapshotResponse snapshot;
		Csi__V1__ControllerExpandVolumeResponse expanded;
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
	struct liar liar;
	struct claim claims[HOSTILE_CLAIMS];
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

/** hostile_list() - the provisioner lists volumes, snapshots and capacity. */
void hostile_list(struct hostile_cluster *c);

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

/** hostile_check_given() - @handed is given out as the answer to @a. */
void hostile_check_given(const struct ask *a, const struct handed *handed);

/** hostile_check_deletion() - the honest node @n is about to delete @v. */
void hostile_check_deletion(
	const struct hostile_cluster *c, const struct honest_node *n, const struct honest_volume *v);

/** hostile_check_deleted() - @handed is gone, as the controller says. */
void hostile_check_deleted(struct hostile_cluster *c, const struct handed *handed);

/** hostile_check_state() - after each step: volumes and the table of nodes. */
void hostile_check_state(struct hostile_cluster *c);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charges.h - volumes that are on their way: what pods will take that no inventory shows yet.
 *
 * A pod that passed is charged to each node that it may go to, until it is decided which: by its claim's
 * selected node, by the pod's own, or because there was only one. From then on its volumes count on that node
 * alone, until the node's inventory has them. All is kept in memory alone: a new process knows what the
 * watches and the inventories say. Threads: one owner. Nothing blocks or reads a clock.
 */
#pragma once

#include "scheduler/pod_needs.h"
#include "scheduler/sched_nodes.h"

/* How long a pod that passed is waited for. */
#define SCHED_CHARGE_NS 60000000000ULL

struct sched_charges;

/** Something was decided or dropped, so that there may be more room. From inside of the change, which is
 * complete. */
typedef void (*sched_charges_changed_fn)(void *user);

/** sched_charges_new() - none; @nodes: borrowed, and nobody else watches it. Return: never NULL;
 * sched_charges_free(), before @nodes. */
struct sched_charges *sched_charges_new(
	struct sched_nodes *nodes, sched_charges_changed_fn changed, void *user);
void sched_charges_free(struct sched_charges *c);
DEFINE_CLEANUP(struct sched_charges *, sched_charges_free);

/**
 * sched_charges_decided() - the volume @name will be made on @node_id: it counts there until the inventory
 * has it, and so does the rest of the pod that needs it.
 *
 * Idempotent; another node than before replaces it. The node need not be known yet.
 */
void sched_charges_decided(
	struct sched_charges *c, const char *name, const char *node_id, uint64_t size_bytes, bool sector);

/** sched_charges_undecided() - sched_charges_decided() holds no longer of the volume @name. What only a pod
 * says stays. Unknown: ignored. */
void sched_charges_undecided(struct sched_charges *c, const char *name);

/**
 * sched_charges_pod() - the pod passed and may go to each of the @n @nodes: its @needs (copied) count there.
 * @now_ns: any clock that goes forward, the same in all calls
 *
 * With one node that is decided. Replaces what the pod was charged before. What was decided of its needs
 * stays, unless a claim has said so of a node that is not among the @nodes.
 */
void sched_charges_pod(struct sched_charges *c, const char *pod_uid, const struct pod_needs *needs,
	const struct sched_node *const *nodes, size_t n, uint64_t now_ns);

/** sched_charges_drop() - the pod has gone, waits for something else or is looked at again. What its claims
 * say themselves stays. Unknown: ignored. */
void sched_charges_drop(struct sched_charges *c, const char *pod_uid);

/**
 * sched_charges_unscheduled() - as sched_charges_drop(), for a pod that says that it found no node.
 * @version: resourceVersion of the pod; 0: unknown
 * @since:   when it began to say so, RFC 3339; NULL: unknown
 * @again:   it said so before, for another reason, and @since is of then
 *
 * Ignored when that is of an attempt before the one that passed: kube-scheduler writes 50 conditions per
 * second, and another one may have passed when it comes to one. When it cannot be told, the charge ends when
 * its time is over, decided or not. Source: resourceVersions of one kind of objects are numbers that grow
 * (Kubernetes enhancement 5504); pod/util.go, UpdatePodCondition(), for the time.
 */
void sched_charges_unscheduled(
	struct sched_charges *c, const char *pod_uid, uint64_t version, const char *since, bool again);

/** sched_charges_seen() - the pod is still there: if it is decided, and not in doubt, it goes on counting.
 * Binding a pod can take kube-scheduler minutes when many wait. Unknown: ignored. */
void sched_charges_seen(struct sched_charges *c, const char *pod_uid, uint64_t now_ns);

/** sched_charges_expire() - drop pods that passed SCHED_CHARGE_NS ago, or were seen then, of which nothing
 * was heard. */
void sched_charges_expire(struct sched_charges *c, uint64_t now_ns);

/* A volume that counts on a node. */
struct sched_item {
	uint64_t size_bytes;
	bool sector;
};

/* All that counts on a node, in short. */
struct sched_load {
	size_t n;
	uint64_t size_bytes;    /* their sum */
	uint64_t raw_bytes;     /* the sum of what each takes in the pool where it takes most */
	uint64_t max_raw_bytes; /* no less than the largest of these */
};

/** sched_charges_load() - what is charged to @node, with or without what is @undecided. */
struct sched_load sched_charges_load(
	const struct sched_charges *c, const struct sched_node *node, bool undecided);

/** sched_charges_fetch() - @node will be looked at shortly: have what counts there, and what it has, in the
 * cache. */
void sched_charges_fetch(const struct sched_charges *c, const struct sched_node *node);

/** sched_charges_items() - the same, each volume. @ret: room for sched_load.n. Return: how many. */
size_t sched_charges_items(
	const struct sched_charges *c, const struct sched_node *node, bool undecided, struct sched_item *ret);

/** sched_charges_node() - the node on which @name is decided to be made, with what it counts there. Return:
 * false: none. @ret_index: of the node. */
bool sched_charges_node(
	const struct sched_charges *c, const char *name, size_t *ret_index, struct sched_item *ret);

/** sched_charges_pods() - how many pods count, by the need of a volume of which no claim says where. */
size_t sched_charges_pods(const struct sched_charges *c);

/* kube-scheduler writes down what it decided sooner, if it is not behind. */
#define SCHED_LATE_NS 5000000000ULL

/** sched_charges_late() - how many of these had passed for SCHED_LATE_NS when sched_charges_expire() was
 * called last. */
size_t sched_charges_late(const struct sched_charges *c);

struct sched_charges_count {
	size_t pods;
	size_t pods_undecided;
	size_t volumes_decided;
};

/** sched_charges_count() - for metrics. */
struct sched_charges_count sched_charges_count(const struct sched_charges *c);

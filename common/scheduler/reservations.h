/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reservations.h - the space of volumes that are on their way: no node reports them yet.
 *
 * A reservation begins when a pod passes the filter: its new volumes then count on each node that it may go
 * to. It is decided when its node is known: by the selected node of a claim, by the node of the pod, or
 * because there was only one. From then on the volumes count on that node alone. A volume stays reserved
 * without the pod, too, if an object of the cluster says where it is made, as a claim with a selected node
 * does.
 *
 * A reserved volume ends when the PmemNode of its node names it as new, or shows a report that is at least as
 * new as the one that its PmemVolume names: what the node offers is less by then. Otherwise it ends with the
 * object that said so, or when its time is over. All is kept in memory alone: a new process knows what the
 * objects say. Threads: one owner. Nothing blocks or reads a clock.
 */
#pragma once

#include "base/error.h"
#include "scheduler/pod_needs.h"
#include "scheduler/sched_nodes.h"

/* How long a pod that passed is waited for. */
#define RESERVATION_NS 60000000000ULL

/* The end of a reservation that lasts as long as the object that says where the volume is made. */
#define RESERVATION_FOR_EVER UINT64_MAX

struct reservations;

/** Something was decided or ended, so that there may be more room. From inside of the change, which is
 * complete. */
typedef void (*reservations_changed_fn)(void *user);

/** reservations_new() - none; @nodes: borrowed, and has no other watcher. Return: never NULL;
 * reservations_free(), before @nodes. */
struct reservations *reservations_new(struct sched_nodes *nodes, reservations_changed_fn changed, void *user);
void reservations_free(struct reservations *r);
DEFINE_CLEANUP(struct reservations *, reservations_free);

/**
 * reservations_place() - an object says that the volume @name is made on @node_id: it counts there alone, and
 * so does the rest of the pod that needs it.
 * @until_ns: when it ends at the latest, of the clock of reservations_expire(); RESERVATION_FOR_EVER: when
 *            reservations_withdraw() is called
 *
 * Idempotent; another node or time replaces the one before. The node need not be known yet.
 */
void reservations_place(struct reservations *r, const char *name, const char *node_id,
	const struct sched_item *item, uint64_t until_ns);

/** reservations_end_at() - what an object has said of the volume @name ends at @end_ns at the latest.
 * Unknown: ignored. */
void reservations_end_at(struct reservations *r, const char *name, uint64_t end_ns);

/** reservations_withdraw() - no object says any longer where the volume @name is made. If a pod needs the
 * volume, its reservation for the pod stays. Unknown: ignored. */
void reservations_withdraw(struct reservations *r, const char *name);

/** reservations_made() - @node_id has the volume @name as of its report with the number @report. Ignored when
 * the volume is not reserved there. */
void reservations_made(struct reservations *r, const char *name, const char *node_id, uint64_t report);

/**
 * reservations_add_pod() - the pod passed and may go to each of the @n @nodes: its @needs (copied) count
 * there.
 * @now_ns: any clock that goes forward, the same in all calls
 *
 * With one node that is decided. Replaces what the pod had reserved before. Reservations that objects of the
 * cluster have caused stay, unless they are on a node that is not among the @nodes. A volume that the only
 * node has already is not reserved there.
 */
void reservations_add_pod(struct reservations *r, const char *pod_uid, const struct pod_needs *needs,
	const struct sched_node *const *nodes, size_t n, uint64_t now_ns);

/** reservations_drop_pod() - the pod has gone, waits for something else or is looked at again. Reservations
 * that objects of the cluster have caused stay. Unknown: ignored. */
void reservations_drop_pod(struct reservations *r, const char *pod_uid);

/**
 * reservations_unscheduled() - as reservations_drop_pod(), for a pod that says that it found no node.
 * @version: resourceVersion of the pod; 0: unknown
 * @since:   when its condition became false, RFC 3339; NULL: unknown
 * @again:   the condition was false before, with another message, and @since is the time of the first one
 *
 * Ignored if the condition is about an attempt before the one that passed: kube-scheduler writes at most 50
 * conditions per second, so that they may be late. If that is not known, the reservation ends when its time
 * is over, decided or not. Source: resourceVersions of one kind of objects are numbers that
 * grow (Kubernetes enhancement 5504); pod/util.go, UpdatePodCondition(), for the time.
 */
void reservations_unscheduled(
	struct reservations *r, const char *pod_uid, uint64_t version, const char *since, bool again);

/** reservations_seen() - the pod is still there: if it is decided, and not in doubt, it goes on counting.
 * Binding a pod can take kube-scheduler minutes when many wait. Unknown: ignored. */
void reservations_seen(struct reservations *r, const char *pod_uid, uint64_t now_ns);

/** Whether the volume @name still is on its way, although its time is over. */
typedef bool (*reservations_keep_fn)(void *user, const char *name);

/** reservations_expire() - drop what is over: pods that passed RESERVATION_NS ago, or were seen then, and
 * placed volumes whose time has come, unless @keep (NULL: none) says that they go on for RESERVATION_NS. */
void reservations_expire(struct reservations *r, uint64_t now_ns, reservations_keep_fn keep, void *user);

/* All that counts on a node, in short. */
struct sched_load {
	size_t n;
	uint64_t size_bytes;    /* their sum */
	uint64_t raw_bytes;     /* the sum of what each takes in the pool where it takes most */
	uint64_t max_raw_bytes; /* no less than the largest of these */
};

/** reservations_load() - what is reserved on @node, with or without what is @undecided. */
struct sched_load reservations_load(
	const struct reservations *r, const struct sched_node *node, bool undecided);

/** reservations_fetch() - @node will be looked at shortly: have what counts there, and what it has, in the
 * cache. */
void reservations_fetch(const struct reservations *r, const struct sched_node *node);

/** reservations_items() - the same as reservations_load(), each volume. @ret: room for sched_load.n. Return:
 * how many. */
size_t reservations_items(
	const struct reservations *r, const struct sched_node *node, bool undecided, struct sched_item *ret);

/** reservations_node() - the node on which @name is decided to be made, with what it counts there. Return:
 * false: none. @ret_index: of the node. */
bool reservations_node(
	const struct reservations *r, const char *name, size_t *ret_index, struct sched_item *ret);

struct reservations_count {
	size_t pods; /* that passed, and whose volumes no object has placed */
	size_t pods_undecided;
	size_t volumes_decided;
};

/** reservations_count() - how many pods and volumes are on their way. */
struct reservations_count reservations_count(const struct reservations *r);

/* How many pods may have passed and not be bound yet; for further ones the reply has an Error. Every client
 * that reaches the server can invent pods, and each is kept for RESERVATION_NS. */
#define RESERVATIONS_PODS_MAX 8192

/** reservations_check_limit() - whether a further pod may get reservations. @max_pods: pods that are being
 * scheduled at a time; 0: RESERVATIONS_PODS_MAX. Return: 0, or -1 with ERR_EXHAUSTED. */
int reservations_check_limit(const struct reservations *r, size_t max_pods, struct error **err) MUST_CHECK;

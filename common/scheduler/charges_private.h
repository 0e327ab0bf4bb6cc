/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charges_private.h - inside of the charges. Private to charges*.c.
 *
 * A volume counts as undecided, by the need of a pod on all nodes in the pod's set, or as decided, by a
 * record on one node; a need that has a record counts by it alone. What a claim has said itself is no need
 * any more. Threads: as charges.h.
 */
#pragma once

#include "base/name_index.h"
#include "scheduler/charges.h"

#define SCHED_NO_NODE SIZE_MAX

struct sched_record {
	struct name_link by_name;
	struct sched_record *next; /* on its node, or among those without */
	struct sched_record **place;
	struct sched_need_charge *need; /* NULL: the claim said so itself */
	struct sched_item item;
	size_t node; /* SCHED_NO_NODE: not known yet */
	char *name;
	char *node_id;
};

struct sched_pod;

struct sched_need_charge {
	struct name_link by_name;
	struct sched_need_charge *next;
	struct sched_pod *pod;
	struct sched_record *record; /* NULL: it counts where the pod does */
	struct sched_item item;
	char *name;
};

struct sched_pod {
	struct name_link by_uid;
	struct sched_pod *next;
	struct sched_pod **place;
	struct sched_need_charge *needs; /* never without, but while it is made or freed */
	uint64_t passed_ns;
	uint64_t until_ns;
	bool doubtful;    /* it may have found no node */
	uint64_t version; /* pod_needs.pod_version */
	char looked_at[SCHED_TIME_LEN + 1];
	uint64_t *set; /* of node indexes; NULL: decided */
	size_t n_words;
	char *uid;
};

struct sched_on_node {
	struct sched_record *records;
	struct sched_load decided;
	struct sched_load undecided;
};

struct sched_charges {
	struct sched_nodes *nodes;
	sched_charges_changed_fn changed;
	void *user;
	struct name_index records_by_name;
	struct name_index needs_by_name;
	struct name_index pods_by_uid;
	struct sched_pod *pods;
	struct sched_record *homeless; /* of nodes that are not known */
	struct sched_on_node *on_nodes;
	size_t n_nodes;
	size_t n_late;
};

/** sched_load_add(), sched_load_take() - @item counts on @node, or no longer. */
void sched_load_add(struct sched_load *l, const struct sched_node *node, const struct sched_item *item);
void sched_load_take(struct sched_load *l, const struct sched_node *node, const struct sched_item *item);

/** sched_record_find() - that of the volume @name, or NULL. */
struct sched_record *sched_record_find(const struct sched_charges *c, const char *name);

/** sched_record_put() - the volume @name, which has no record, counts on @node_id. Return: borrowed. */
struct sched_record *sched_record_put(
	struct sched_charges *c, const char *name, const char *node_id, const struct sched_item *item);

/** sched_record_move() - it counts there, and as @item. */
void sched_record_move(
	struct sched_charges *c, struct sched_record *r, const char *node_id, const struct sched_item *item);

/** sched_record_free() - it counts no longer; its need, if it has one, is left without. */
void sched_record_free(struct sched_charges *c, struct sched_record *r);

/** sched_pod_find() - the charge of that pod, or NULL. */
struct sched_pod *sched_pod_find(const struct sched_charges *c, const char *uid);

/** sched_pod_settle() - what @pod needs counts on @node_id only. */
void sched_pod_settle(struct sched_charges *c, struct sched_pod *pod, const char *node_id);

/** sched_need_free() - it counts no longer, by its record either; a pod that needs nothing else goes. */
void sched_need_free(struct sched_charges *c, struct sched_need_charge *need);

/** sched_pod_free() - it counts no longer. */
void sched_pod_free(struct sched_charges *c, struct sched_pod *pod);

/** sched_pod_has() - whether it counts, undecided, on the node with that @index. sched_pod_leave(): it no
 * longer does. */
bool sched_pod_has(const struct sched_pod *pod, size_t index);
void sched_pod_leave(struct sched_pod *pod, size_t index);

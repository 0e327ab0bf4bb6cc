/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_objects_rig.h - the duty node_objects, a node table, and an API server that applies what it gets and
 * shows it to the watch.
 *
 * Nothing waits: time goes on by rig_wait_s(), requests are answered by rig_serve_one().
 */
#pragma once

#include "duties/node_objects.h"

#define RIG_DRIVER     "pmem"
#define RIG_COLLECTION "/apis/pmem-csi.intel.com/v1alpha1/pmemnodes/"
#define RIG_QUERY      "?force=true&fieldManager=pmem"

/* An object as the API server has it. */
struct rig_object {
	struct rig_object *next;
	char *name;
	char *spec;   /* what was applied to the object, without the last brace */
	char *status; /* "\"status\":{...}}", or NULL */
};

struct rig {
	struct kube_client *client;
	struct node_table *nodes;
	struct informer *objects;
	struct node_objects *duty;
	struct rig_object *store;
	uint64_t now;
	bool cluster_known;         /* the nodes that the cluster has are known */
	bool node_exists;           /* the cluster has each node that is asked for */
	const char *recorded_until; /* time until which the volumes of all nodes are recorded; NULL: they are
				       not */
	bool keeps_recorded;        /* objects keep the time that they show instead */
	bool lagging;               /* the watch shows nothing */
	unsigned n_specs;           /* requests since rig_begin_count() */
	unsigned n_statuses;
	unsigned n_deletes;
	unsigned n_shown; /* what the duty has said of objects */
};

extern struct rig rig;

/** rig_set_up() and rig_tear_down() - around each test; the first list of objects is not complete yet. */
void rig_set_up(void);
void rig_tear_down(void);

/** rig_change_leader() - another replica leads now, with which no node has registered yet. */
void rig_change_leader(void);

/** rig_find() - the object called @name, or NULL. */
struct rig_object *rig_find(const char *name);

/** rig_show() - the watch shows @s as it is now; rig_show_all(): all of them. */
void rig_show(const struct rig_object *s);
void rig_show_all(void);

/** rig_change_by_hand() - put @to over @from, which is as long, in the object of n1, and show it. */
void rig_change_by_hand(const char *from, const char *to);

/** rig_lose() - another client has deleted the object that was made last. */
void rig_lose(void);

/** rig_serve_one() - answer the oldest request. rig_serve_all(): and those that follow. */
void rig_serve_one(void);
void rig_serve_all(void);

/** rig_begin_count() - forget which requests there were. */
void rig_begin_count(void);

/** rig_assert_written() - serve all; since the last count there were so many requests, and no others. */
void rig_assert_written(unsigned specs, unsigned statuses, unsigned deletes);

/** rig_wait_s() - time goes on, and nothing is answered. rig_let_pass_s(): and everything is. */
void rig_wait_s(unsigned seconds);
void rig_let_pass_s(unsigned seconds);

/** rig_put() - the node @id registers with a report of that @number. */
void rig_put(const char *id, uint64_t number);

/** rig_publish() - n1 registers, its object shows it, and may be written again. */
void rig_publish(void);

/** rig_status_has() - the status of @name contains @text. */
void rig_status_has(const char *name, const char *text);

/** rig_condition_is() - the object of n1 has that condition. */
void rig_condition_is(const char *type, const char *status, const char *reason);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_objects_rig.h - the duty volume_objects, a controller with its node table, and an API server that
 * keeps PmemVolume objects and shows them to the watch.
 *
 * Nothing waits: time goes on by rig_pass_s(), requests for records are answered by rig_serve() and
 * rig_fail().
 */
#pragma once

#include "duties/rebound_claims.h"
#include "duties/volume_objects.h"
#include "unit/controller/desk.h"

#define RIG_NAME         "pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"
#define RIG_CREATED      "2026-01-02T03:04:05Z"
#define RIG_LOST_S       3600
#define RIG_REPORTED_MAX 1000

/* An object as the API server has it. */
struct rig_object {
	struct rig_object *next;
	char *name;
	char *spec;   /* "{...}" */
	char *status; /* "{...}", or NULL */
	char *labels; /* "{...}", as they were written last */
	unsigned version;
};

/* A request that is not answered. */
struct rig_request {
	struct rig_request *next;
	bool is_read;
	enum volume_record_write what;
	char *name;
	char *spec;
	char *status;
	char *labels;
	char *version;
	volume_record_fn fn;
	void *user;
};

struct rig {
	struct desk desk;
	struct kube_client *client;
	struct informer *objects;
	struct informer *claims;
	struct rebound_claims *rebound;
	struct volume_objects *duty;
	struct lost_nodes *lost; /* after RIG_LOST_S */
	struct bucket writes;    /* 100 per second, 200 at once */
	bool has_node;           /* the API server has the Node object that is looked for */
	struct rig_object *store;
	struct rig_request *requests; /* oldest first */
	bool lagging;                 /* the watch shows nothing */
	bool keeps_labels;        /* objects have those that were written; otherwise always the right ones */
	unsigned n_looks;         /* for the claim */
	struct claim_state claim; /* what a look finds */
	bool looks_fail;
	unsigned n_told;     /* Events */
	unsigned n_informed; /* of those: normal ones */
	unsigned n_nodes_told;
	char reported[256]; /* the last one */
	unsigned n_reads;   /* answered since rig_check_served() */
	unsigned n_writes[RECORD_RELEASE + 1];
	char key[PMEM_VOLUME_KEY_LEN + 1]; /* of RIG_NAME */
	char name[128];                    /* of its object */
	char id[VOLUME_ID_MAX + 1];        /* on n1 */
};

extern struct rig rig;

/** rig_set_up() - before each test: the controller runs for long, and there are neither nodes nor objects;
 * the first list of objects is not complete. rig_tear_down(): after it. */
void rig_set_up(void);
void rig_tear_down(void);

/** rig_begin() - end the duty, and begin another one. */
void rig_begin(void);

/** rig_restart() - the controller has just started, leads, and knows the object of RIG_NAME and no node. */
void rig_restart(void);

/** rig_put() - @node_id reports @id in @phase, made for RIG_NAME; NULL: it has nothing. rig_put_report():
 * @report (taken). Leases last until node_table_end(). */
void rig_put(const char *node_id, const char *id, enum volume_phase phase);
void rig_put_report(struct node_report *report);

/** rig_record() - a record of RIG_NAME for @nodes, "n1 n2". Return: pmem_volume_free(). */
struct pmem_volume *rig_record(const char *nodes);

/** rig_store() - the API server has @v (borrowed) with its status, as another version, and shows it. */
void rig_store(const struct pmem_volume *v);

/** rig_given_out() - rig_store() of a record for @nodes with the handle rig.id. */
void rig_given_out(const char *nodes);

/** rig_read() - the object of RIG_NAME. Return: pmem_volume_free(), NULL: there is none. */
struct pmem_volume *rig_read(void);

/** rig_check() - the object of RIG_NAME names exactly @nodes, "n1 n2"; NULL: there is no object. */
void rig_check(const char *nodes);

/** rig_show() - the watch shows the object of RIG_NAME as it is. rig_lose(): it is removed by hand. */
void rig_show(void);
void rig_lose(void);

/** rig_count() - how many requests wait. */
unsigned rig_count(void);

/** rig_serve() - answer the oldest request. rig_serve_all(): and those that follow. */
void rig_serve(void);
void rig_serve_all(void);

/** rig_fail() - the oldest request fails and has done nothing. */
void rig_fail(enum err_code code);

/** rig_check_served() - serve all; since the last time there were so many requests, and no others. */
void rig_check_served(unsigned reads, unsigned creates, unsigned specs, unsigned statuses, unsigned releases);

/** rig_pass_s() - time goes on, and nothing is answered. rig_live_s(): all is, and all nodes that are live
 * report each ten seconds what they reported before. */
void rig_pass_s(unsigned seconds);
void rig_live_s(unsigned seconds);

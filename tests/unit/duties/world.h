/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - a cluster in memory, with a time and a network of its own: models of nodes, of
 * external-provisioner and of the API with the records of volumes, around the real controller, node table and
 * orphans.
 *
 * Nodes do what the node driver does (idempotent by name, ABORTED while it runs, what was being made is
 * rolled back at a restart). Requests to a node keep their order, as on one connection; requests, replies and
 * reports get lost. Everything that is decided at random comes from the seed. Nothing waits: time goes on by
 * world_run(). In wild histories nodes also leave the cluster and return, and a model of the leader writes
 * into the records which of them are lost (world_lost.c).
 */
#pragma once

#include "controller/controller_private.h"
#include "duties/orphans.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/resources/memory_records.h"

#define WORLD_DRIVER "pmem-csi.example"
#define WORLD_NODES  6
#define WORLD_CLAIMS 48
#define WORLD_UNIT   (1ULL << 30)

/* Defects that a test switches on, to show that the checks of the world notice them. */
enum world_defect {
	DEFECT_NONE,
	DEFECT_UNROUTED,  /* a delete that cannot be routed is taken for done */
	DEFECT_NEXT_NODE, /* an unknown outcome is taken for "no room" */
	DEFECT_FORGET,    /* records do not keep which nodes were asked */
	DEFECT_VERSION,   /* a record is overwritten although it has changed */
	DEFECT_STAGED,    /* nodes neither report nor check which volumes were in use */
	DEFECT_ORIGIN,    /* neither reports nor records have their origin */
	DEFECT_LOOK,      /* nothing is found in the API */
	DEFECT_NO_SEARCH, /* orphans are not looked for */
	DEFECT_RETAINED,  /* records do not keep that a node was lost when its volume was deleted */
	DEFECT_SIZE,      /* records do not keep which size was asked for */
	DEFECT_SHORT,     /* nodes reply that a volume has grown, and it has not */
	DEFECT_BLANK,     /* nodes make clones without content */
};

struct world_config {
	uint64_t seed;
	enum world_defect defect;
	/* Everything that can go wrong, and orphans; otherwise only what must not leave any behind: no
	 * process but nodes restarts, and no lease ends. */
	bool wild;
};

struct world_volume {
	char id[64];
	char name[64];
	uint64_t size_bytes;
	uint64_t growing_bytes; /* the size that it will have; 0: it does not grow */
	unsigned content;       /* a number that clones have in common with their source */
	bool is_clone;
	bool creating;
	bool ever_staged;
	bool made_by_controller;
};

struct world_node {
	struct world *world;
	char id[16];
	bool cut; /* nothing goes through */
	unsigned boot;
	unsigned cuts;
	bool gone; /* and cut: it has no Node object */
	unsigned departures;
	uint64_t left_ns;
	uint64_t returned_ns; /* 0: never */
	uint64_t size_bytes;
	uint64_t last_sent_ns; /* order on the connection */
	struct world_volume *volumes;
	size_t n_volumes;
};

/* A PVC, its PV, and what external-provisioner remembers of both. */
struct world_claim {
	struct world *world;
	char name[48];
	uint64_t size_bytes;
	bool late;   /* WaitForFirstConsumer */
	bool cached; /* on several nodes */
	unsigned selected;
	bool has_pvc;
	bool has_pv;
	bool in_background;
	bool calling;
	bool deleting;  /* DeleteVolume was called */
	bool retained;  /* PV and PVC were removed by hand: the volume is to stay */
	unsigned calls; /* answers to older ones are ignored */
	char handle[64];
	bool on[WORLD_NODES];
	char source[64];  /* handle of the volume that it is to be a clone of; "": none */
	unsigned content; /* of that volume */
	/* what external-resizer and the user know (world_growth.c) */
	uint64_t wanted_bytes; /* by the claim */
	uint64_t asked_bytes;  /* until there is a final answer; 0: none is asked for */
	uint64_t told_bytes;   /* that the volume has */
	bool refused;          /* for lack of space, in the last answer */
	bool expanding;
	unsigned expansions; /* answers to older ones are ignored */
};

/* A volume that was deleted while its node was gone. */
struct world_kept {
	size_t node;
	char handle[64];
	char name[48];
};

struct world_event;
struct world_call;
struct world_record_call;

struct world {
	struct world_config config;
	struct arena *memory;
	uint64_t now_ns;
	uint64_t random;
	uint64_t n_events;
	struct world_event *events;
	struct world_call *calls;
	struct memory_records *memory_records; /* what the API has */
	struct world_record_call *record_calls;
	bool api_down;
	bool calm;    /* nothing goes wrong any more */
	bool closing; /* and nothing new begins */
	struct world_node nodes[WORLD_NODES];
	struct world_claim claims[WORLD_CLAIMS];
	unsigned n_names;
	const char *node_ids[WORLD_NODES]; /* of those that are not gone */
	struct world_kept *kept;
	size_t n_kept;
	unsigned n_ever_kept;
	bool may_differ; /* records, from what they should say about lost nodes */

	struct node_table *table;
	struct cluster_nodes cluster;
	struct controller *controller;
	struct orphans *orphans;
	struct node_caller caller;
	unsigned run;       /* of the controller */
	unsigned n_deleted; /* by orphans */
	unsigned n_contents;
	unsigned n_cloned;
	unsigned n_told;
	unsigned n_grown;
	unsigned n_refused;
	unsigned n_foreign; /* volumes that others made on nodes */
	char *broken;       /* what must never be; NULL: nothing */
};

/* world_time.c */
void world_at(struct world *w, uint64_t delay_ns, void (*fn)(void *user), void *user);
void world_run(struct world *w, uint64_t duration_ns);
uint64_t world_random(struct world *w, uint64_t n); /* below n */
bool world_chance(struct world *w, unsigned percent);
uint64_t world_delay_ms(struct world *w, uint64_t max_ms); /* in ns, at least 1 ms */
void world_break(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* world_nodes.c */
void world_node_init(struct world *w, unsigned index);
void world_node_done(struct world_node *n);
void world_node_report(struct world_node *n);
void world_node_restart(struct world_node *n);
void world_node_cut(struct world_node *n, uint64_t duration_ns);
struct world_volume *world_node_add(
	struct world_node *n, const char *id, const char *name, uint64_t size_bytes);
void world_node_remove(struct world_node *n, const struct world_volume *v);
struct world_volume *world_node_find(struct world_node *n, const char *id);
/* Returns the reply, in the arena; or NULL with *err. *ret_work_ns: the answer comes later. */
ProtobufCMessage *world_node_create(struct world_node *n, const Csi__V1__CreateVolumeRequest *q,
	struct arena *arena, uint64_t *ret_work_ns, struct error **err);
ProtobufCMessage *world_node_expand(struct world_node *n, const Csi__V1__ControllerExpandVolumeRequest *q,
	struct arena *arena, uint64_t *ret_work_ns, struct error **err);
/* A clone has the content of @source. */
void world_node_fill(struct world_node *n, struct world_volume *v, const struct world_volume *source);
int world_node_delete(struct world_node *n, const Csi__V1__DeleteVolumeRequest *q, bool if_never_staged,
	struct error **err);

/* world_net.c */
void world_net_init(struct world *w);
void world_net_drop_all(struct world *w);
void world_net_node_lost(struct world *w, const struct world_node *n);

/* world_records.c */
struct volume_records world_records(struct world *w);
struct record_list world_record_list(struct world *w);
void world_record_report(struct world *w, const char *handle, const char *name, const char *node_id);
void world_records_drop_all(struct world *w);
struct pmem_volume *world_record_of(struct world *w, const char *handle, const char *name); /* a copy */
void world_api_down(struct world *w, uint64_t duration_ns);

/* world_claims.c */
void world_claim_add(struct world *w);
void world_claim_kick(struct world_claim *c, uint64_t delay_ns);
void world_claim_delete(struct world_claim *c);
void world_claim_stage(struct world_claim *c);
void world_claim_retain(struct world_claim *c);
bool world_claim_is_free(const struct world_claim *c);
void world_provisioner_restart(struct world *w);
void world_look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user);

/* world_growth.c */
void world_claim_grow(struct world_claim *c);
void world_resizer_restart(struct world *w);
void world_check_sizes(
	struct world *w); /* no volume is smaller than its caller knows, or larger than its record says */
void world_check_grown(struct world *w); /* each claim has what it wants, unless there is no space for it */

/* world_lost.c */
void world_node_leave(struct world_node *n, uint64_t duration_ns);
void world_nodes_return(struct world *w); /* all of them; they are still cut */
bool world_node_is_lost(const struct world_node *n);
void world_leader_begin(struct world *w);
void world_keep_lost(struct world *w, const struct world_claim *c);
bool world_is_kept(const struct world *w, size_t node, const char *handle);
void world_kept_use(struct world *w);
void world_check_kept(struct world *w);                                       /* it is still there */
void world_check_erasure(struct world_node *n, const struct world_volume *v); /* that is about to go */

/* world.c */
void world_open(struct world *w, const struct world_config *config);
void world_close(struct world *w);
void world_controller_restart(struct world *w);
void world_check_told(struct world *w);     /* every volume whose creation was reported is there */
void world_check_recorded(struct world *w); /* every copy of our volumes is on a node of its record */
void world_check_all(struct world *w);      /* all of that, and nothing else is there */

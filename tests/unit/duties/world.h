/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - a cluster in memory, with a time and a network of its own: models of nodes, of
 * external-provisioner and of the API, around the real controller, node table and leftovers.
 *
 * Nodes do what the node driver does (idempotent by name, ABORTED while it runs, what was being made is
 * rolled back at a restart). Requests to a node keep their order, as on one connection; requests, replies and
 * reports get lost. Everything that is decided at random comes from the seed. Nothing waits: time goes on by
 * world_run().
 */
#pragma once

#include "controller/controller_private.h"
#include "duties/leftovers.h"

#define WORLD_DRIVER "pmem-csi.example"
#define WORLD_NODES  6
#define WORLD_CLAIMS 48
#define WORLD_UNIT   (1ULL << 30)

/* What a test breaks, to see that it is noticed. */
enum world_defect {
	DEFECT_NONE,
	DEFECT_OWNERS,    /* a delete that cannot be routed is taken for done */
	DEFECT_NEXT_NODE, /* an unknown outcome is taken for "no room" */
	DEFECT_FORGET,    /* what was begun is forgotten */
	DEFECT_STAGED,    /* nodes do not tell which volumes were in use */
	DEFECT_ORIGIN,    /* nor who made them */
	DEFECT_LOOK,      /* nothing is found in the API */
	DEFECT_NO_SEARCH, /* nobody looks for leftovers */
};

struct world_config {
	uint64_t seed;
	enum world_defect defect;
	/* Everything that can go wrong, and leftovers; otherwise only what must not leave any behind: no
	 * process but nodes restarts, and no lease ends. */
	bool wild;
};

struct world_volume {
	char id[64];
	char name[64];
	uint64_t size_bytes;
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
};

struct world_event;
struct world_call;

struct world {
	struct world_config config;
	struct arena *memory;
	uint64_t now_ns;
	uint64_t random;
	uint64_t n_events;
	struct world_event *events;
	struct world_call *calls;
	bool calm;    /* nothing goes wrong any more */
	bool closing; /* and nothing new begins */
	struct world_node nodes[WORLD_NODES];
	struct world_claim claims[WORLD_CLAIMS];
	unsigned n_names;
	const char *node_ids[WORLD_NODES];

	struct node_table *table;
	struct controller *controller;
	struct leftovers *leftovers;
	struct node_caller caller;
	unsigned run;       /* of the controller */
	unsigned n_deleted; /* by leftovers */
	unsigned n_told;
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
int world_node_delete(struct world_node *n, const Csi__V1__DeleteVolumeRequest *q, struct error **err);

/* world_net.c */
void world_net_init(struct world *w);
void world_net_drop_all(struct world *w);
void world_net_node_lost(struct world *w, const struct world_node *n);

/* world_claims.c */
void world_claim_add(struct world *w);
void world_claim_kick(struct world_claim *c, uint64_t delay_ns);
void world_claim_delete(struct world_claim *c);
void world_claim_stage(struct world_claim *c);
void world_claim_retain(struct world_claim *c);
void world_provisioner_restart(struct world *w);
void world_look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user);

/* world.c */
void world_open(struct world *w, const struct world_config *config);
void world_close(struct world *w);
void world_controller_restart(struct world *w);
void world_check_told(struct world *w); /* every volume whose creation was reported is there */
void world_check_all(struct world *w);  /* and nothing else */

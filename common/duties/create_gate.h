/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_gate.h - keeps a controller that has just started from creating volumes until the volumes that
 * nodes had when they registered have records. After an update from a driver that kept no records they have
 * none at first.
 *
 * Each replica looks for them by itself; the leader makes them (volume_objects.h). Only the first inventory
 * of each node that registers in the start window is examined. That a record cannot be made, or that a node
 * has very many volumes, delays creations by no more than CREATE_GATE_STALL_NS without progress and
 * CREATE_GATE_MAX_NS in all: inventories are searched for existing copies in any case. Threads: the loop's;
 * nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "controller/controller.h"
#include "kube/client.h"

#define CREATE_GATE_STALL_NS 120000000000ULL
#define CREATE_GATE_MAX_NS   600000000000ULL

struct create_gate;

/* All borrowed. */
struct create_gate_config {
	struct kube_client *client;
	const char *driver_name;
	struct controller *controller; /* and its node table and clock */
};

/** create_gate_new() - begin to read which records there are. Return: never NULL; create_gate_free(),
 * before what it borrows. */
struct create_gate *create_gate_new(const struct create_gate_config *config);

/** create_gate_free() - NULL is allowed. */
void create_gate_free(struct create_gate *g);
DEFINE_CLEANUP(struct create_gate *, create_gate_free);

/** create_gate_require() - whether volumes may be created. Return: 0, or -1 with ERR_UNAVAILABLE: a volume
 * has no record yet, or it is not known which ones have. */
int create_gate_require(const struct create_gate *g, struct error **err) MUST_CHECK;

/** create_gate_tick() - to be called each second. */
void create_gate_tick(struct create_gate *g);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_records.h - whether a controller that has just started may create volumes: not before the volumes
 * that nodes had when they registered have records, as after an update from a driver that kept none.
 *
 * Each replica looks for them by itself; the leader makes them (volume_objects.h). What counts is the first
 * inventory of each node that registers in the start window. That a record cannot be made, or that a node has
 * very many volumes, delays creations by no more than FIRST_RECORDS_STALL_NS without progress and
 * FIRST_RECORDS_MAX_NS in all: inventories are searched for existing copies in any case. Threads: the loop's;
 * nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "controller/controller.h"
#include "kube/client.h"

#define FIRST_RECORDS_STALL_NS 120000000000ULL
#define FIRST_RECORDS_MAX_NS   600000000000ULL

struct first_records;

/* All borrowed. */
struct first_records_config {
	struct kube_client *client;
	const char *driver_name;
	struct controller *controller; /* and its node table and clock */
};

/** first_records_new() - begin to read which records there are. Return: never NULL; first_records_free(),
 * before what it borrows. */
struct first_records *first_records_new(const struct first_records_config *config);

/** first_records_free() - NULL is allowed. */
void first_records_free(struct first_records *f);
DEFINE_CLEANUP(struct first_records *, first_records_free);

/** first_records_require() - Return: 0, or -1 with ERR_UNAVAILABLE: a volume has no record yet, or it is not
 * known which ones have. */
int first_records_require(const struct first_records *f, struct error **err) MUST_CHECK;

/** first_records_tick() - to be called each second. */
void first_records_tick(struct first_records *f);

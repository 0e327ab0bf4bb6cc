/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_map.h - regions and volume groups under the pools, for the commands that show them.
 */
#pragma once

#include "options.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

struct node_map {
	struct nd_inventory *regions; /* NULL: devices are fake */
	struct lvm_report *report;    /* NULL: there is no LVM here, and none is needed */
};

/** node_map_read() - look. Return: 0, or -1 as nd_list() and lvm_list(). @ret: node_map_done() */
int node_map_read(const struct options *o, struct node_map *ret, struct error **err) MUST_CHECK;

/** node_map_done() - release what @m owns; safe on a zeroed one. */
void node_map_done(struct node_map *m);

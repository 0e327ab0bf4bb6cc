/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions_and_groups.h - regions and volume groups under the pools, for the commands that show them.
 */
#pragma once

#include "options.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

struct regions_and_groups {
	struct nd_inventory *regions; /* NULL: devices are fake */
	struct lvm_report *report;    /* NULL: there is no LVM here, and none is needed */
};

/** regions_and_groups_read() - look. Return: 0, or -1 as nd_list() and lvm_list(). @ret:
 * regions_and_groups_done() */
int regions_and_groups_read(
	const struct options *o, struct regions_and_groups *ret, struct error **err) MUST_CHECK;

/** no_pools_remedy() - a line for a node without pools: what makes them, if there is memory. @regions: NULL:
 * devices are fake */
const char *no_pools_remedy(const struct nd_inventory *regions);

/** regions_and_groups_done() - release what @m owns; safe on a zeroed one. */
void regions_and_groups_done(struct regions_and_groups *m);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_lost_pvs.h - finds lost physical volumes: namespaces that were in a volume group by the records of
 * pool_backup.h, and that LVM finds in none, because LVM's label or metadata on them is lost.
 *
 * Threads: one at a time. Blocks on the disk and on the namespaces' devices. Decision: docs/decisions/026.
 */
#pragma once

#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

/* A namespace that was in a group, but that LVM now shows in none. */
struct pool_lost_pv {
	char *dev;     /* "namespace0.0" */
	char *device;  /* "/dev/pmem0" */
	char *group;   /* the group that it was in */
	char *command; /* shell command that restores it */
};

struct pool_lost_pvs {
	struct pool_lost_pv *list;
	size_t n;
};

/**
 * pool_lost_pvs_find() - namespaces of @inv that have a record, are in no group of @report, and were not
 * removed from their group by LVM. A record that cannot be read is left out. @ret: pool_lost_pvs_done().
 */
void pool_lost_pvs_find(const char *folder, const struct nd_inventory *inv, const struct lvm_report *report,
	struct pool_lost_pvs *ret);

/** pool_lost_pvs_done() - release what @l owns; safe on a zeroed one. */
void pool_lost_pvs_done(struct pool_lost_pvs *l);

/** pool_lost_pv_text() - describe what happened to @lost and what to do. Return: caller frees. */
char *pool_lost_pv_text(const struct pool_lost_pv *lost);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_vg.h - the second stage: one volume group per region from its pool namespaces (pmem-vgm).
 *
 * A region's group is found by its PVs, since bus and region numbers change between boots; only a new one is
 * named after the region ("ndbus0region0fsdax"). A foreign group of that name is an error, never extended. No
 * group is made of a namespace that was in one, unless LVM itself took it out (docs/decisions/026).
 */
#pragma once

#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

struct pool_vg_plan {
	const struct nd_region *region; /* borrowed */
	char *vg_name;
	char *vg_uuid;    /* "" if the group does not exist yet */
	bool create;      /* the group does not exist yet and can be made */
	char **add_paths; /* block devices to make into PVs and to add: strv; NULL when there is nothing to do
			   */
	char **pv_paths;  /* those of them that are already PVs, without a group: strv */
	char *problem;    /* why nothing can be done (name taken, PVs in several groups), or NULL */
};

/**
 * pool_vg_may_claim() - whether membership in a volume group can make @ns ours: an active fsdax namespace
 * without a name. Regions without labels store no names, and the Go driver's conversion set none.
 */
bool pool_vg_may_claim(const struct nd_namespace *ns);

/**
 * pool_vg_claim() - find out which namespaces without a name are in a volume group of ours, with a name such
 * as the Go driver and we use ("ndbus0region0fsdax"), and note that in @inv.
 *
 * Groups with any other name are not ours, whatever devices they have. LVM is called only if there is such a
 * namespace, and sees only these and the pool namespaces; from then on pool_vg_devices() returns what it may
 * see. Return: 0, or -1 as lvm_list().
 */
int pool_vg_claim(struct lvm *l, struct nd_inventory *inv, struct error **err) MUST_CHECK;

/** pool_vg_devices() - block devices of all pool namespaces, which LVM may see. @ret: strv_free(). */
void pool_vg_devices(const struct nd_inventory *inv, char ***ret);

/** pool_vg_plan_region() - the plan for one region; without pool namespaces there is nothing to do.
 * @ret: pool_vg_plan_done(). */
void pool_vg_plan_region(
	const struct nd_region *region, const struct lvm_report *report, struct pool_vg_plan *ret);

/** pool_vg_examine() - set the problem of @plan if a namespace to be added has a record in @folder
 * (pool_backup.h) and was not removed from its group by LVM. @folder: NULL: there are no records. @but:
 * namespaces ("namespace0.0") whose records do not count: strv or NULL. */
void pool_vg_examine(const char *folder, char *const *but, struct pool_vg_plan *plan);

/** pool_vg_refusal() - the same for the single namespace @ns of @region. Return: why it must not be grouped,
 * caller frees; NULL: no record forbids it. */
char *pool_vg_refusal(const char *folder, const struct nd_region *region, const struct nd_namespace *ns);

/** pool_vg_plan_done() - release what @p owns. */
void pool_vg_plan_done(struct pool_vg_plan *p);

/**
 * pool_vg_apply() - create or extend the group, and record that in @folder; a plan without @add_paths does
 * nothing.
 * @folder: of pool_backup.h
 *
 * The one function that puts namespaces into groups. The order is: physical volumes without a group, their
 * records, the group, the group's UUID in the records. Killed at any point, the next call goes on: a physical
 * volume that LVM shows as empty may be grouped although it has a record. From the record on, a namespace
 * whose label or info block is lost is refused (docs/decisions/091). Return: 0, or -1 with ERR_PRECONDITION
 * (@plan->problem; a namespace holds something else, or metadata of LVM), ERR_EXISTS (a group of that name is
 * on other devices of the host), as pool_backup_record() (nothing was grouped), or as lvm_run().
 */
int pool_vg_apply(
	struct lvm *l, const char *folder, const struct pool_vg_plan *plan, struct error **err) MUST_CHECK;

/** pool_vg_activate() - activate every inactive LV of the groups in @report. Return: 0, or -1 as lvm_run().
 */
int pool_vg_activate(struct lvm *l, const struct lvm_report *report, struct error **err) MUST_CHECK;

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
	bool create;      /* the group does not exist yet, and there is something to make it of */
	char **add_paths; /* block devices to make PVs of and add: strv, NULL when there is nothing to do */
	char **pv_paths;  /* those of them that are PVs already, in no group: strv */
	char *problem;    /* why nothing can be done (name taken, PVs in several groups), or NULL */
};

/**
 * pool_vg_may_claim() - whether membership in a volume group can make @ns ours: an active fsdax namespace
 * without a name. Regions without labels keep none, and the Go driver's conversion gave none either.
 */
bool pool_vg_may_claim(const struct nd_namespace *ns);

/**
 * pool_vg_claim() - find out which namespaces without a name are in a volume group of ours, called as the Go
 * driver and we call it ("ndbus0region0fsdax"), and note that in @inv.
 *
 * Groups with any other name are not ours, whatever they are made of. Asks LVM only where there is such a
 * namespace, and lets it see nothing but these and the pool namespaces; then pool_vg_devices() has what it
 * may see from then on. Return: 0, or -1 as lvm_list().
 */
int pool_vg_claim(struct lvm *l, struct nd_inventory *inv, struct error **err) MUST_CHECK;

/** pool_vg_devices() - block devices of all pool namespaces: what LVM may see. @ret: strv_free(). */
void pool_vg_devices(const struct nd_inventory *inv, char ***ret);

/** pool_vg_plan_region() - the plan for one region; without pool namespaces there is nothing to do.
 * @ret: pool_vg_plan_done(). */
void pool_vg_plan_region(
	const struct nd_region *region, const struct lvm_report *report, struct pool_vg_plan *ret);

/** pool_vg_examine() - make it the problem of @plan when a namespace to be added has a record in @folder
 * (pool_saved.h) and was not taken out of its group by LVM. @folder: NULL: there are no records. @but:
 * namespaces ("namespace0.0") whose records do not count: strv or NULL. */
void pool_vg_examine(const char *folder, char *const *but, struct pool_vg_plan *plan);

/** pool_vg_refusal() - the same for @ns of @region by itself. Return: why it must not be grouped, caller
 * frees; NULL: no record forbids it. */
char *pool_vg_refusal(const char *folder, const struct nd_region *region, const struct nd_namespace *ns);

/** pool_vg_plan_done() - release what @p owns. */
void pool_vg_plan_done(struct pool_vg_plan *p);

/** pool_vg_apply() - create or extend; a plan without @add_paths does nothing. Return: 0, or -1 with
 * ERR_PRECONDITION (@plan->problem; a namespace holds something else, or metadata of LVM), ERR_EXISTS (a
 * group of that name is on other devices of the host), or as lvm_run(). */
int pool_vg_apply(struct lvm *l, const struct pool_vg_plan *plan, struct error **err) MUST_CHECK;

/** pool_vg_activate() - activate every inactive LV of the groups in @report. Return: 0, or -1 as lvm_run().
 */
int pool_vg_activate(struct lvm *l, const struct lvm_report *report, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_convert.h - namespaces that others have made, or the kernel where there are no labels, become pools
 * (pmem-ns-init convert).
 *
 * Source: -mode=force-convert-raw-namespaces of the Go driver 1.0. Raw namespaces, and those of legacy memory
 * whose page map is in RAM, get their page map onto the medium and the name of our pools. Where no name can
 * be kept, a volume group of ours is what tells that the namespace is ours, so it is made at once. Killed at
 * any point, the same command finishes: see nd_convert(); an fsdax namespace in a region without labels that
 * is blank, or nothing but an LVM device without group, is what is left of one that was killed before its
 * group was made, or an administrator has prepared it, and it is grouped either way. Threads: the caller
 * holds pool_ns_lock(). Blocks on devices and LVM.
 *
 * What has a record of a volume group (pool_saved.h) and was not taken out of it by LVM may hold volumes
 * although nothing is recognised on it: it is refused, also with force, unless its name is given, too
 * (docs/decisions/041).
 */
#pragma once

#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

enum convert_action {
	CONVERT_LEAVE,  /* of no concern: in use or filled, but no raw namespace */
	CONVERT_REFUSE, /* raw, but must not be converted; reason says why */
	CONVERT_ENABLE, /* inactive: has to be enabled to see what it is */
	CONVERT_MAP,    /* reconfigure, then group */
	CONVERT_GROUP,  /* is fsdax already */
};

struct convert_item {
	const struct nd_region *region; /* borrowed */
	const struct nd_namespace *ns;  /* borrowed */
	enum convert_action action;
	char *reason; /* why not, or what is lost; NULL */
};

struct convert_plan {
	struct convert_item *items;
	size_t n;
};

/**
 * pool_convert_plan() - what would become of each namespace that is not ours but could be.
 * @inv:   after pool_vg_claim()
 * @force: convert even what holds something, or has a name that somebody gave it; what is in use never is
 * @only:  the only namespaces to look at ("namespace0.0"), whatever name they have: strv; NULL: all
 * @folder: of pool_saved.h; NULL: there are no records
 * @ret:   convert_plan_done()
 *
 * Probes the devices, and has LVM look at those of namespaces without a name; changes nothing. Return: 0, or
 * -1 with ERR_NOT_FOUND (a name in @only is no namespace that could be converted), or as lvm_list().
 */
int pool_convert_plan(struct lvm *l, const char *folder, const struct nd_inventory *inv, bool force,
	char *const *only, struct convert_plan *ret, struct error **err) MUST_CHECK;

/** convert_plan_done() - release what @p owns. Safe on a zeroed one. */
void convert_plan_done(struct convert_plan *p);

/** convert_action_name() - "leave", "refuse", "enable", "convert" or "group". */
const char *convert_action_name(enum convert_action action);

/**
 * pool_convert_group() - put the namespaces called @devs, and pool namespaces beside them, into the group of
 * their region.
 * @folder: of pool_saved.h, whose records hold for the pool namespaces beside them; NULL: there are none
 * @devs:   strv
 * @ret_vg: name of the group if it was made or extended, else NULL; caller frees
 *
 * Idempotent. Return: 0, or -1 as nd_list(), lvm_list() and pool_vg_apply().
 */
int pool_convert_group(struct nd *nd, struct lvm *l, const char *folder, const char *bus, const char *region,
	char *const *devs, char **ret_vg, struct error **err) MUST_CHECK;

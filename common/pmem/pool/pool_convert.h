/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_convert.h - converts namespaces that were made by other software, or by the kernel for regions without
 * labels, to pools (pmem-ns-init convert).
 *
 * Source: -mode=force-convert-raw-namespaces of the Go driver 1.0. Raw namespaces, and those of legacy memory
 * whose page map is in RAM, get their page map onto the medium and the name of our pools. If no name can be
 * stored, only a volume group of ours shows that the namespace is ours, so the group is made at once. Killed
 * at any point, the same command finishes: see nd_convert(); an fsdax namespace in a region without labels
 * that is blank, or nothing but an LVM device without group, is what is left of one that was killed before
 * its group was made, or an administrator has prepared it, and it is grouped either way. Threads: the caller
 * holds pool_ns_lock(). Blocks on devices and LVM.
 *
 * A namespace may hold volumes although nothing is recognised on it, if it is recorded as part of a volume
 * group (pool_backup.h) and LVM did not take it out of the group: it is refused, also with force, unless its
 * name is given, too (docs/decisions/041).
 */
#pragma once

#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

enum convert_action {
	CONVERT_LEAVE,  /* not considered: in use or with content, and not raw */
	CONVERT_REFUSE, /* raw, but must not be converted; reason says why */
	CONVERT_ENABLE, /* inactive: it has to be enabled to see its mode */
	CONVERT_MAP,    /* reconfigure, then group */
	CONVERT_GROUP,  /* already fsdax */
};

struct convert_item {
	const struct nd_region *region; /* borrowed */
	const struct nd_namespace *ns;  /* borrowed */
	enum convert_action action;
	char *reason; /* why it is not converted, or what is lost; or NULL */
};

struct convert_plan {
	struct convert_item *items;
	size_t n;
};

/**
 * pool_convert_plan() - decide what to do with each namespace that is not ours but could become so.
 * @inv:   after pool_vg_claim()
 * @force: also convert namespaces that have content or a name; those in use are never converted
 * @only:  the only namespaces to consider ("namespace0.0"), whatever name they have: strv; NULL: all
 * @folder: of pool_backup.h; NULL: there are no records
 * @ret:   convert_plan_done()
 *
 * Probes the devices, and lets LVM list those of namespaces without a name; changes nothing. Return: 0, or -1
 * with ERR_NOT_FOUND (a namespace in @only does not exist or cannot be converted), or as lvm_list().
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
 * @folder: of pool_backup.h, whose records hold for the pool namespaces beside them, and which gets those of
 * what is grouped
 * @devs:   strv
 * @ret_vg: name of the group if it was made or extended, else NULL; caller frees
 *
 * Idempotent. Return: 0, or -1 as nd_list(), lvm_list() and pool_vg_apply().
 */
int pool_convert_group(struct nd *nd, struct lvm *l, const char *folder, const char *bus, const char *region,
	char *const *devs, char **ret_vg, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - what pmem-vgm does: create, plan, status, restore. Only create and restore change anything.
 *
 * Threads: none. create, restore and reading the view block on LVM; the others compute.
 */
#pragma once

#include "base/buf.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

/** Namespaces, and what LVM reports about the devices of pool namespaces. */
struct view {
	struct nd_inventory *inv;
	struct lvm_report *report;
};

/**
 * view_read() - list namespaces and ask LVM about them.
 * @ret: zeroed, or a view that was read before, which is replaced; view_done()
 *
 * Return: 0, or -1 as nd_list() and lvm_list().
 */
int view_read(struct nd *nd, struct lvm *lvm, struct view *ret, struct error **err) MUST_CHECK;
void view_done(struct view *v);

/** view_save() - record which namespaces are in the groups of @v, and bring the copies of their metadata up
 * to date. A failure is logged. @folder: of pool_backup.h */
void view_save(struct lvm *lvm, const char *folder, const struct view *v);

/**
 * cmd_create() - create or extend the volume group of each region that has pool namespaces, then activate
 * the logical volumes in it.
 * @folder:       of pool_backup.h
 * @ret_complete: false when a group could not be made as planned, or not everything in it activated
 *
 * Before and after, the existing groups are recorded and their metadata is saved; a failure of that is logged
 * and does not stop the creation of groups. A region that fails is logged and does not stop the others.
 * Repeating changes nothing. Return: 0, or -1 as view_read().
 */
int cmd_create(struct nd *nd, struct lvm *lvm, const char *folder, bool *ret_complete,
	struct error **err) MUST_CHECK;

/**
 * cmd_plan() - write what cmd_create() would do.
 * @folder: of pool_backup.h
 * @json: as one JSON document instead of text
 * @out:  appended to
 *
 * Only cmd_create() checks whether another group of the host already has the name.
 * Return: whether every region can get what it needs.
 */
bool cmd_plan(const struct view *v, const char *folder, bool json, struct buf *out);

/** cmd_status() - write the groups of the regions with their devices and volumes. @out: appended to. */
void cmd_status(const struct view *v, bool json, struct buf *out);

struct restore_options {
	const char *state_path;
	char *const *groups; /* names; NULL or empty: all */
	bool dry_run;
	bool force; /* although volumes are missing in the saved metadata */
	bool json;
};

/**
 * cmd_restore() - restore the groups whose labels or metadata are damaged, or write what that would do, and
 * write the result.
 * @out:          appended to
 * @ret_complete: false when a group cannot be restored, which its lines and the log say
 *
 * A group that fails does not stop the others. Repeating changes nothing. Return: 0, or -1 as view_read(),
 * pool_restore_plan(), or because the state folder cannot be read.
 */
int cmd_restore(struct nd *nd, struct lvm *lvm, const struct restore_options *o, struct buf *out,
	bool *ret_complete, struct error **err) MUST_CHECK;

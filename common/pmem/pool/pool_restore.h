/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_restore.h - restores volume groups whose label or metadata is damaged on a namespace (pmem-vgm
 * restore).
 *
 * The records of pool_backup.h say which namespace was which physical volume of a group. A group is restored
 * from its newest metadata: what is still in a metadata area of one of its devices, or else the copy. Sound
 * areas of that version are not written, only the label and damaged areas are. Nothing is opened exclusively,
 * so volumes may be in use. Planning changes nothing. Threads: one at a time. Blocks on the devices and on
 * LVM. Decision: docs/decisions/077.
 */
#pragma once

#include "pmem/lvm/lvm.h"
#include "pmem/lvm/lvm_metadata_text.h"
#include "pmem/nd/nd.h"

/* A volume that the state folder knows. Its strings are borrowed. */
struct pool_restore_volume {
	const char *id;   /* name of its logical volume, too */
	const char *pool; /* UUID of its group; NULL: unknown, so that it does not count */
	const char *tag;  /* of its logical volume; NULL: the Go driver gave none */
	uint64_t size_bytes;
};

struct pool_restore_request {
	const char *folder;   /* of pool_backup.h */
	char *const *groups;  /* names; NULL or empty: all that have a record */
	bool without_volumes; /* although the metadata lacks volumes that the state folder knows, or a part
				 of them */
	const struct pool_restore_volume *volumes;
	size_t n_volumes;
};

/* A namespace whose label or metadata is damaged. */
struct pool_restore_pv {
	char *dev;    /* "namespace0.0" */
	char *uuid;   /* of the namespace; "" without one */
	char *device; /* "/dev/pmem0" */
	char *pv_uuid;
	const char *damage;
	size_t n_users; /* devices that are active on it, such as its volumes */
};

struct pool_restore_step {
	char **argv;    /* without "lvm": strv */
	size_t pv;      /* index of the damaged PV that it writes to; SIZE_MAX: the whole group */
	bool activates; /* it only activates volumes */
};

struct pool_restore_group {
	char *name;
	char *uuid;
	char *problem;          /* why it is not restored, or NULL */
	char *source;           /* path of the copy, or of the device whose metadata area is used */
	bool from_copy;         /* the source is a copy */
	struct lvm_text text;   /* of the source */
	char *raw;              /* the same as it is in a metadata area; NULL: the source is a copy */
	char *file;             /* to which it is written first, for LVM; NULL: that is not needed */
	char **lost_volumes;    /* that the state folder knows, and the text does not: strv */
	char **changed_volumes; /* how volumes differ that both know: strv */
	struct pool_restore_pv *pvs;
	size_t n_pvs;
	struct pool_restore_step *steps; /* none: there is nothing to do */
	size_t n_steps;
};

struct pool_restore {
	struct pool_restore_group *groups;
	size_t n_groups;
	char **unreadable; /* why records could not be read: strv */
};

/**
 * pool_restore_plan() - find out what is damaged, and what restores it.
 * @inv:    of all namespaces
 * @report: of the devices of pools
 *
 * Groups that cannot be restored have a problem and no steps. Return: 0, or -1 with ERR_NOT_FOUND (no record
 * names one of the groups that were asked for). @ret: pool_restore_done().
 */
int pool_restore_plan(const struct pool_restore_request *request, const struct nd_inventory *inv,
	const struct lvm_report *report, struct pool_restore *ret, struct error **err) MUST_CHECK;

/** pool_restore_devices() - what LVM has to see for the steps, beside the devices of pools: the damaged ones.
 * @paths: added to; strv_free(). */
void pool_restore_devices(const struct pool_restore *r, char ***paths);

/** pool_restore_done() - release what @r owns; safe on a zeroed one. */
void pool_restore_done(struct pool_restore *r);

/**
 * pool_restore_apply() - run the steps of @g, check that LVM shows the group with all volumes of the text,
 * and activate them. LVM must see the devices. Ends early at a signal (process_stop_signal()). If it was
 * interrupted, planning and applying again finish it.
 * @folder: of pool_backup.h
 * @nd:   checks, before each write, that the device still is the namespace's
 * @ret_report: what LVM shows then; lvm_report_free()
 *
 * Return: 0, or -1 with ERR_PRECONDITION (the problem), ERR_INTERNAL (LVM still shows less than the text),
 * ERR_ABORTED (a signal), or as lvm_run(), nd_confirm() and pool_backup_keep_text().
 */
int pool_restore_apply(struct lvm *l, struct nd *nd, const char *folder, const struct pool_restore_group *g,
	struct lvm_report **ret_report, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_backup.h - records, in case LVM's label on a device is lost, which namespaces have been in which
 * volume group, and keeps copies of the groups' metadata.
 *
 * Below the folder (<statePath>/lvm): `namespaces/`, one record per namespace, named after its UUID, or after
 * the region's identity if it has no labels; `copies/`, the metadata of each group as vgcfgbackup(8) writes
 * it, replaced by LVM with each change (lvm_set_backup_dir()); `older/`, the last few copies that were
 * replaced after a change by another program. A record is overwritten and never removed: the namespace that
 * it names is only grouped again when LVM itself has emptied its metadata area. Threads: one at a time.
 * Blocks on the disk and on LVM. Decision: docs/decisions/026.
 */
#pragma once

#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"

/** pool_backup_folder() - the folder of the driver with this @state_path. Return: caller frees. */
char *pool_backup_folder(const char *state_path);

/**
 * pool_backup_open() - create @state_path and the folder in it if they are missing, and let @l keep copies
 * there. Idempotent. On failure @l keeps none. Return: 0, or -1 with ERR_NOT_FOUND (no parent of
 * @state_path), ERR_EXHAUSTED (disk full), ERR_INTERNAL.
 */
int pool_backup_open(const char *state_path, struct lvm *l, struct error **err) MUST_CHECK;

struct pool_record {
	char *group;      /* NULL: the namespace has not been in a group */
	char *group_uuid; /* "": the group was about to be made, and nothing has seen it since */
	char *pv_uuid;
};

/** pool_record_done() - release what @r owns; safe on a zeroed one. */
void pool_record_done(struct pool_record *r);

/**
 * pool_backup_record() - record that @ns, a namespace of @region, is in the group of @pv, or is about to be
 * put into it; an unchanged record is not written.
 * @pv: its vg_uuid is "" while the group does not exist
 *
 * Durable. Return: 0, or -1 as dir_open() and file_write_atomic().
 */
int pool_backup_record(const char *folder, const struct nd_region *region, const struct nd_namespace *ns,
	const struct lvm_pv *pv, struct error **err) MUST_CHECK;

/** pool_backup_note() - record which namespaces of @inv are in which group of @report; unchanged records are
 * not written. Durable. A failure does not stop the others. Return: 0, or -1 with the first failure, as
 * file_write_atomic(). */
int pool_backup_note(const char *folder, const struct nd_inventory *inv, const struct lvm_report *report,
	struct error **err) MUST_CHECK;

/** pool_backup_find() - the record of @ns, a namespace of @region. No record is found without a folder.
 * Return: 0, or -1 with ERR_INTERNAL (cannot be read, or is damaged; it names the file). @ret:
 * pool_record_done(). */
int pool_backup_find(const char *folder, const struct nd_region *region, const struct nd_namespace *ns,
	struct pool_record *ret, struct error **err) MUST_CHECK;

/**
 * pool_backup_catch_up() - let LVM write the copies that differ from the metadata in @report, because another
 * program has changed it or a copy could not be written. The previous copy is moved to older/. A failure does
 * not stop the others; incomplete groups are skipped. Return: 0, or -1 with the first failure, as lvm_run()
 * or file.h.
 */
int pool_backup_catch_up(
	const char *folder, struct lvm *l, const struct lvm_report *report, struct error **err) MUST_CHECK;

/** pool_backup_stale() - names of complete groups in @report without a current copy of their metadata.
 * Return: strv_free(), NULL when there are none. */
char **pool_backup_stale(const char *folder, const struct lvm_report *report);

/** pool_backup_newest() - path of the newest copy of the metadata of the group with @group_uuid, whatever the
 * group's name was when it was written. Return: caller frees; NULL: there is none. */
char *pool_backup_newest(const char *folder, const char *group_uuid);

/** pool_backup_older_path() - where the version @seqno of the metadata of a group is kept when it is
 * replaced. Return: caller frees. */
char *pool_backup_older_path(const char *folder, const char *group_uuid, uint64_t seqno);

/** pool_backup_keep_text() - keep @text, from a metadata area, there. Durable; replaces what is there.
 * Return: 0, or -1 as dir_open() and file_write_atomic(). */
int pool_backup_keep_text(const char *folder, const char *group_uuid, uint64_t seqno, struct span text,
	struct error **err) MUST_CHECK;

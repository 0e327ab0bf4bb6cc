/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes_direct.h - volumes whose device is given to a guest of Kata Containers, which mounts its file
 * system (directVolume=true).
 *
 * Staging formats and checks the device, and mounts nothing: there would be a second writer. Publishing says
 * in an entry (direct_folder.h) which device the runtime is to give to the guest; the target is an empty file
 * system that nothing can be written to, which is all that another runtime shows. That a pod has ended does
 * not mean that its guest has: before anything on the host reads or writes the device, volumes_refuse_guest()
 * makes sure that none is left. The caller holds the volume's lock where nothing else is said. Threads: safe
 * under it. Blocks on the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct attachment_request;
struct buf;
struct device;
struct mount_entry;
struct mount_table;
struct use_request;
struct volume_lock;
struct volume_record;
struct volume_stats;
struct volumes;

/* Properties of the pod that the runtime of its guest needs. */
struct direct_pod {
	char *fs_group;               /* NULL: none */
	char *fs_group_change_policy; /* NULL: none */
};

/** direct_pod_done() - release what @p owns; safe on a zeroed one. */
void direct_pod_done(struct direct_pod *p);

/** volumes_find_fs_group() - what is known of the pod of @q. Blocks on what is asked (volume_pods), so the
 * caller holds no lock. @ret: direct_pod_done(). Return: 0, or -1 with ERR_UNAVAILABLE (not known now). */
int volumes_find_fs_group(struct volumes *v, const struct use_request *q, struct direct_pod *ret,
	struct error **err) MUST_CHECK;

/**
 * volumes_stage_direct() - volumes_stage() of a direct volume. Its file system grows to the size of the
 * device.
 * @r: kept up to date with what is recorded
 * @q: its kind does not count
 *
 * Idempotent, also while a guest uses it. Return: 0, or -1 with ERR_INVALID_ARGUMENT (block access, flags,
 * file system), ERR_NOT_FOUND (no such folder), ERR_PRECONDITION (in use), ERR_UNAVAILABLE, ERR_INTERNAL, or
 * as volumes_prepare_fs().
 */
int volumes_stage_direct(struct volumes *v, struct volume_record *r, const struct attachment_request *q,
	struct error **err) MUST_CHECK;

/**
 * volumes_publish_direct() - volumes_publish() of a direct volume, which is staged.
 *
 * Its entry is recorded before it is made. After a failure none is left. Idempotent. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (block access; the target path is too long for an entry), ERR_PRECONDITION (not staged
 * there; published elsewhere, or a guest still has it; there is an entry of another program), ERR_EXISTS
 * (published there in another way), ERR_UNAVAILABLE, ERR_INTERNAL.
 */
int volumes_publish_direct(struct volumes *v, struct volume_record *r, const struct attachment_request *q,
	const struct direct_pod *pod, struct error **err) MUST_CHECK;

/** volumes_is_direct_mount() - whether @e is what volumes_publish_direct() has mounted for the volume @id.
 * Pure. */
bool volumes_is_direct_mount(const char *id, const struct mount_entry *e);

/** volumes_withdraw_direct() - when the target of @r is about to be unmounted: no further guest gets the
 * device, and those that have it are recorded. A failure is logged, and the entry stays recorded. */
void volumes_withdraw_direct(struct volumes *v, struct volume_record *r);

/** volumes_remove_direct() - when the target of @r is no mount any more: remove its entry, once the guests in
 * it are recorded. Failures as volumes_withdraw_direct(): it is tried again by volumes_settle_direct(). */
void volumes_remove_direct(struct volumes *v, struct volume_record *r);

/** volumes_settle_direct() - remove the entries that records name of targets that are no mounts any more, and
 * record the guests in the others. The caller holds no lock. */
void volumes_settle_direct(struct volumes *v);

/** volumes_settle_direct_entry() - the same for @r. */
void volumes_settle_direct_entry(struct volumes *v, struct volume_record *r);

/**
 * volumes_refuse_guest() - fail if a guest may use the device of the direct volume @r, or another process has
 * it open. Other volumes pass.
 * @d: its device
 *
 * Guests are known by the files that their runtime leaves in the entry. Open devices are known from
 * the device mapper, and otherwise from /proc, which shows only the processes of our PID namespace. Return:
 * 0, or -1 with ERR_PRECONDITION that names the sandbox, the mount or the process, ERR_INTERNAL.
 */
int volumes_refuse_guest(struct volumes *v, const struct volume_record *r, const struct device *d,
	struct error **err) MUST_CHECK;

/** volumes_refuse_process() - fail if a process has the device open, for a volume of any kind: a part of
 * volumes_refuse_guest(). @d: has a path. Return: as volumes_refuse_guest(). */
int volumes_refuse_process(
	const struct volume_record *r, const struct device *d, struct error **err) MUST_CHECK;

/** volumes_stat_direct() - volumes_stats() of a direct volume, which its guest answers. @r: a copy, without
 * the lock; @at: canonical path. Waits some seconds at most. Return: 0, or -1 with ERR_NOT_FOUND (not
 * published there), ERR_UNAVAILABLE (no runtime answers), or as volume_guests. */
int volumes_stat_direct(struct volumes *v, const struct volume_record *r, const struct mount_table *t,
	const char *at, struct volume_stats *ret, struct error **err) MUST_CHECK;

/**
 * volumes_grow_direct() - make the file system of a direct volume as large as its device: by its guest while
 * it is published, and else here.
 * @lock: released before a guest is asked, which may take some seconds
 * @path: of the request, where it is staged or published
 *
 * Idempotent. Return: 0, or -1 with ERR_NOT_FOUND (it is not at that path), ERR_PRECONDITION (the guest
 * cannot do that, or is not known: it is done when the volume is next staged), or as volume_guests and
 * fs_grow().
 */
int volumes_grow_direct(struct volumes *v, struct volume_lock **lock, const struct volume_record *r,
	const struct device *d, const char *path, struct error **err) MUST_CHECK;

/** volumes_grow_unmounted() - make the file system on @d as large as that, by mounting it where nothing else
 * sees it. The caller has called volumes_refuse_guest(). Return: 0, or -1 as fs_open_detached() and
 * fs_grow(). */
int volumes_grow_unmounted(struct volumes *v, const struct volume_record *r, const struct device *d,
	const char *fs_type, struct error **err) MUST_CHECK;

/** volumes_forget_sandboxes() - take the guests out of @r, in memory, when none of them runs. */
void volumes_forget_sandboxes(struct volume_record *r);

/** volumes_direct_target() - where @r is published to a guest now. Return: borrowed from @t; NULL: nowhere.
 */
const struct mount_entry *volumes_direct_target(const struct volume_record *r, const struct mount_table *t);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attachment.h - mounting a volume at a path, and unmounting it again.
 *
 * Stage, publish and inline volumes are one thing: what is wanted -> source and target opened by descriptor
 * -> recorded -> made (mkfs, mount, bind) -> read back from the kernel. A path is only a way to a descriptor:
 * which mount that leads to, the kernel says by the mount's number (os/mount_table.h, mount_table_of()), so
 * that a mount which hides another one is noticed. Taking away works from what is mounted: it needs no device
 * that answers, no readable state and no writable one.
 *
 * The caller holds the volume's lock. Threads: safe under it. Blocks on mkfs, e2fsck, devices and file
 * systems.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "os/fs.h"
#include "volume/access_mode.h"

#define PUBLISH_WAIT_MS 2000 /* publish and unpublish wait for each other */

struct device;
struct fs_freeze;
struct mount_entry;
struct use_request;
struct volume_claim;
struct volume_params;
struct volume_record;
struct volumes;

enum attachment_kind {
	ATTACHMENT_STAGED,      /* the device's file system at the staging path, which exists */
	ATTACHMENT_STAGED_NODE, /* for block access: the path is recorded, and nothing is mounted there */
	ATTACHMENT_INLINE,      /* the device's file system at the only target, which is made */
	ATTACHMENT_TARGET,      /* the staged file system bound to a target, which is made */
	ATTACHMENT_TARGET_NODE  /* the device's node bound to a target, which is made as a file */
};

/* What is wanted. All borrowed. */
struct attachment_request {
	enum attachment_kind kind;
	const char *requested_path;
	const char *canonical_path;         /* of requested_path */
	const char *canonical_staging_path; /* of what is bound */
	bool own_folder; /* what is staged is so in a folder of the driver, and not in one of the orchestrator
			  */
	bool readonly;   /* by the request or its access mode */
	const struct use_request *use;
	const struct volume_params *params; /* of the record */
	const struct volume_claim *claim;   /* that the request names; NULL: none */
};

/**
 * volumes_attach() - bring @r to the path; if it is already mounted there as requested, nothing is done.
 * @r: of a volume in phase READY; kept up to date with what is recorded
 * @q: what is wanted
 *
 * Nothing new is left mounted after a failure, unless unmounting failed, which is said. Idempotent. Return:
 * 0, or -1 with ERR_INVALID_ARGUMENT (flags, path), ERR_EXISTS (mounted in another way; formatted otherwise;
 * something else is there), ERR_PRECONDITION (not staged there; hidden by another mount; a target that holds
 * something; no DAX; e2fsck wants a decision), ERR_UNAVAILABLE (the device cannot be seen or is held; the
 * state disk is full), ERR_NOT_FOUND (no such folder), ERR_DEADLINE, ERR_INTERNAL.
 */
int volumes_attach(struct volumes *v, struct volume_record *r, const struct attachment_request *q,
	struct error **err) MUST_CHECK;

/**
 * volumes_detach() - unmount everything of a volume at a path; nothing mounted there is success.
 * @id:  of the volume
 * @r:   its record; NULL: none that can be read
 * @at:  canonical path
 * @ret: whether something was mounted
 *
 * What is mounted there must be the volume's. Where neither device nor record shows it, the file system or
 * node of any block device that is no other volume's is taken for it: the path is the container
 * orchestrator's, which asks for it to be cleared. Idempotent. Return: 0, or -1 with ERR_PRECONDITION (busy;
 * hidden; something else is mounted there), ERR_INTERNAL.
 */
int volumes_detach(struct volumes *v, const char *id, const struct volume_record *r, const char *at,
	bool *ret, struct error **err) MUST_CHECK;

/** volumes_open_if_exists() - path_open_canonical() that says -1 as descriptor where nothing is. Return: 0,
 * or -1 as that, but never with ERR_NOT_FOUND. */
int volumes_open_if_exists(const char *at, int *ret_fd, struct error **err) MUST_CHECK;

/**
 * volumes_prepare_fs() - make sure that a device has the file system, sound and ready to be mounted.
 * @r:        a mkfs is recorded with the UUID that it gives, before it runs
 * @d:        device, not mounted
 * @fs_type:  "ext4" or "xfs"
 * @layout:   of a new file system; its UUID does not count
 * @readonly: it will not be mounted for writing: nothing is repaired
 *
 * Formatted is only what holds nothing: a device on which nothing is recognised and whose head is zero or a
 * mkfs is recorded, or a file system of the recorded UUID in which nothing can be (fs_read_super()). Return:
 * 0, or -1 with ERR_EXISTS (another file system), ERR_PRECONDITION (data that are not recognised; in use
 * before and nothing recognised; e2fsck wants a decision), ERR_UNAVAILABLE (held by another program; the
 * record cannot be written), ERR_DEADLINE, ERR_INTERNAL.
 */
int volumes_prepare_fs(struct volumes *v, struct volume_record *r, const struct device *d,
	const char *fs_type, struct fs_layout layout, bool readonly, struct error **err) MUST_CHECK;

/** volumes_check_fs() - fs_check() of the file system on @device, which is the device of @r or an image in
 * it; what was repaired is logged. Return: 0, or -1 as that. */
int volumes_check_fs(struct volumes *v, const struct volume_record *r, const char *device,
	const char *fs_type, struct error **err) MUST_CHECK;

/** volumes_find_block_device() - device_view_require_content() of a device with a path. @use: for what, in
 * messages: "mounted". @ret: device_free(). Return: 0, or -1 as that, or with ERR_PRECONDITION (no path). */
int volumes_find_block_device(struct volumes *v, const struct volume_record *r, const char *use,
	struct device **ret, struct error **err) MUST_CHECK;

/** volumes_refuse_content() - fail if what is at @at, opened as @fd (which may be O_PATH), has content: a
 * mount would hide it, and the path could not be removed afterwards. Return: 0, or -1 with ERR_PRECONDITION,
 * ERR_INTERNAL. */
int volumes_refuse_content(const char *at, int fd, struct error **err) MUST_CHECK;

/**
 * volumes_grow_fs() - make the mounted file system of @d as large as the device, if it is smaller, but not
 * larger than @d is listed, and log that.
 * @r: of @d
 * @e: a mount of it that is not read-only
 *
 * Idempotent. Return: 0, or -1 with ERR_PRECONDITION (hidden by another mount), or as fs_grow().
 */
int volumes_grow_fs(struct volumes *v, const struct volume_record *r, const struct device *d,
	const struct mount_entry *e, struct error **err) MUST_CHECK;

/** volumes_open_mounted() - open the root of the file system that is mounted as @e. @ret_fd: a folder, open
 * for reading; caller closes. Return: 0, or -1 with ERR_PRECONDITION (hidden by another mount), ERR_INTERNAL.
 */
int volumes_open_mounted(const struct mount_entry *e, int *ret_fd, struct error **err) MUST_CHECK;

/** volumes_copies_go_on() - whether the driver is not stopping. @user: a struct volumes. As
 * fs_flush_until.go_on. */
bool volumes_copies_go_on(void *user);

/**
 * volumes_pause_writers() - stop all processes that write to a mounted volume, also those that store through
 * mappings, and flush what they have written to its device.
 * @r:      its record, in which that is noted before; kept up to date
 * @dir_fd: folder of its file system
 * @max_pause_ms: then the file system is thawed, whatever the caller does
 * @ret:    volumes_resume_writers()
 *
 * After a failure nothing is stopped. Blocks for at most @max_pause_ms, but for a file system that hangs.
 * Return: 0, or -1 with ERR_ABORTED (another program has frozen it), ERR_DEADLINE, or as records_save() and
 * fs_freeze_begin().
 */
int volumes_pause_writers(struct volumes *v, struct volume_record *r, int dir_fd, uint64_t max_pause_ms,
	struct fs_freeze **ret, struct error **err) MUST_CHECK;

/** volumes_pause_device() - the same for those that use the mapped device @dev of @r, which is not mounted:
 * it is suspended. What they have in the page cache is not flushed. Return: 0, or -1 as records_save() and
 * fs_freeze_begin_device(); then nothing is stopped. */
int volumes_pause_device(struct volumes *v, struct volume_record *r, dev_t dev, uint64_t max_pause_ms,
	struct fs_freeze **ret, struct error **err) MUST_CHECK;

/** volumes_resume_writers() - end a pause. @f: released in any case; @ret_pause_ns: how long it has lasted.
 * Return: 0, or -1 as fs_freeze_end(): the writers were not stopped until now. */
int volumes_resume_writers(struct volumes *v, struct volume_record *r, struct fs_freeze *f,
	uint64_t *ret_pause_ns, struct error **err) MUST_CHECK;

/** volumes_thaw_staged() - the same for those that are staged, before any device is listed: to list devices
 * may take long. The notes stay. */
void volumes_thaw_staged(struct volumes *v);

/** volumes_thaw_marked() - thaw the file systems and resume the devices that are noted as stopped and that no
 * operation copies, which is what a driver that was killed has left. Failures are logged. */
void volumes_thaw_marked(struct volumes *v);

struct fs_usage;
struct mount_table;

/** volumes_find_whole_mount() - find a mount of all of the file system on the block device @dev, and not of
 * one of its folders: where @r is staged, or else any. @writable: only one that is not read-only. Return:
 * borrowed; NULL: there is none. */
const struct mount_entry *volumes_find_whole_mount(
	const struct mount_table *t, const struct volume_record *r, dev_t dev, bool writable);

/** volumes_mount_usage() - fs_usage_read() of the file system that @t, of our mount namespace, has mounted as
 * @e. Nothing else asks the file system, whose device may hang, and which may be shut down. Return: 0, or -1
 * as that, or with ERR_NOT_FOUND (hidden by another mount, or unmounted since). */
int volumes_mount_usage(struct volumes *v, const struct mount_table *t, const struct mount_entry *e,
	int timeout_ms, struct fs_usage *ret, struct error **err) MUST_CHECK;

/**
 * volumes_find_twin() - look for a mounted volume because of which the kernel refuses to mount that of @d:
 * two xfs with one UUID are not mounted at a time (a copy of a device bears the UUID of the original).
 * @fs_type: of @d
 * @t:       what is mounted
 *
 * Reads superblocks. Return: which mount is in the way and what to do about it, caller frees; NULL if none
 * is.
 */
char *volumes_find_twin(
	struct volumes *v, const char *fs_type, const struct device *d, const struct mount_table *t);

/** volumes_require_mount() - what is mounted as @e belongs to @r. Return: 0, or -1 with ERR_PRECONDITION,
 * ERR_INTERNAL. */
int volumes_require_mount(struct volumes *v, const struct volume_record *r, const struct mount_entry *e,
	struct error **err) MUST_CHECK;

/** volumes_publish_inline() - volumes_publish() of an inline ephemeral volume. */
int volumes_publish_inline(
	struct volumes *v, const struct use_request *request, struct error **err) MUST_CHECK;

/** volumes_find_runtime() - whether the pod of @q, which asks for a volume for Kata Containers, runs in a
 * guest; where nothing is known of pods, it counts as one. Blocks on what is asked (volume_pods), so the
 * caller holds no lock. Return: 0, or -1 with ERR_UNAVAILABLE (not known now). */
int volumes_find_runtime(
	struct volumes *v, const struct use_request *q, bool *ret_guest, struct error **err) MUST_CHECK;

/**
 * volumes_publish_kata() - volumes_publish() of a volume for Kata Containers, which is staged.
 * @r:     kept up to date with what is recorded
 * @q:     its kind does not count
 * @guest: the pod runs in one
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (block access; read-only to a guest), ERR_PRECONDITION (not
 * staged there; published elsewhere already; its image is lost, or the file is not an image), ERR_EXISTS,
 * ERR_EXHAUSTED (too small for an image), ERR_UNAVAILABLE, ERR_DEADLINE, ERR_INTERNAL.
 */
int volumes_publish_kata(struct volumes *v, struct volume_record *r, const struct attachment_request *q,
	bool guest, struct error **err) MUST_CHECK;

/** volumes_publish_kata_inline() - volumes_publish_kata() of an inline volume: it is mounted in a folder of
 * the driver. @q: without a staging path. Return: as that, or as volumes_attach(). */
int volumes_publish_kata_inline(struct volumes *v, struct volume_record *r,
	const struct attachment_request *q, bool guest, struct error **err) MUST_CHECK;

/** volumes_check_use() - whether a pod may use @r with @mode.
 * @ret_params: as recorded; params_done()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (mode). */
int volumes_check_use(const struct volume_record *r, enum access_mode mode, struct volume_params *ret_params,
	struct error **err) MUST_CHECK;

/** volumes_forget_target() - take @target out of the targets of @r, in memory. */
void volumes_forget_target(struct volume_record *r, const char *target);

/** volumes_save_detached() - records_save() of what is not mounted somewhere any more. A recorded path blocks
 * nothing, so a disk that refuses changes does not make it fail: it is kept in memory, and goes to the disk
 * with the next change. */
void volumes_save_detached(struct volumes *v, const struct volume_record *r);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes_private.h - what the operations of volumes.h share. Each is in a file of its own, and uses the
 * records (records.h) and the devices (snapshot.h) through their interfaces; what compares the two holds
 * their mutex.
 */
#pragma once

#include <pthread.h>

#include "volume/concurrency_limit.h"
#include "volume/eraser.h"
#include "volume/failing.h"
#include "volume/locks.h"
#include "volume/records.h"
#include "volume/snapshot.h"
#include "volume/volumes.h"

#define PUBLISH_WAIT_MS 2000

struct volumes {
	char *node_id;
	char *state_path;
	struct volume_locks *locks;
	struct eraser *eraser;
	struct concurrency_limit *making;  /* of devices, within the call */
	struct concurrency_limit *zeroing; /* of new block volumes, within the call */
	struct device_manager *devices;
	struct path_roots *roots;
	struct fs_usage_helpers *usage_helpers;
	int mkfs_timeout_ms;

	struct volumes_shared shared;
	struct records *records;
	struct snapshot *snapshot;
	/* guarded by shared.mutex: */
	char *start_failure; /* of the last attempt to start; NULL: none has failed */
};

/** volumes_refuse_stranger() - of @id, which has no record, nothing must be there: neither a device without
 * state nor a state file that could not be read. Return: 0, or -1 with ERR_PRECONDITION that names `check
 * -repair`. */
int volumes_refuse_stranger(struct volumes *v, const char *id, struct error **err) MUST_CHECK;

/* A change of what a volume is, or where it is. All borrowed. */
struct volume_change {
	const char *what;              /* the line's message: "volume created" */
	const char *staging;           /* where; NULL: nowhere */
	const char *target;            /* likewise */
	const char *device;            /* its path; NULL: of the one that was seen last */
	const struct volume_claim *of; /* whose pod is named; NULL: as recorded */
	uint64_t begun_ns;             /* when the work on it began */
};

/** volumes_log_change() - one line at info level about a change of @r that has been made. Not for calls that
 * found everything as they wanted it. */
void volumes_log_change(struct volumes *v, const struct volume_record *r, const struct volume_change *c);

/** volumes_read_claim() - what @said says of whom the new or recorded volume @r is for. @ret: claim_done() */
void volumes_read_claim(const struct volume_record *r, const struct strmap *said, struct volume_claim *ret);

/** volumes_note_claim() - record what @said, parameters or context of a call, says of whom @r is for and the
 * record lacks. A disk that takes no changes does not matter: it goes there with the next one. The caller
 * holds the lock. */
void volumes_note_claim(struct volumes *v, struct volume_record *r, const struct strmap *said);

/** volumes_load() - take the state folder, read it and list devices. @for_repair: do nothing about what is
 * found. Return: 0, or -1 as volumes_start(). */
int volumes_load(struct volumes *v, bool for_repair, struct error **err) MUST_CHECK;

/** volumes_make() - volumes_create() for callers that keep using the volume. @wait_ms: as volume_lock();
 * @ret_lock: its lock; @ret: its record, in phase READY. Return: as volumes_create(). */
int volumes_make(struct volumes *v, const struct volume_request *request, int wait_ms,
	struct volume_lock **ret_lock, struct volume_record **ret, struct error **err) MUST_CHECK;

/** volumes_roll_back() - undo a `.creating`: remove its device if it bears the recorded identity, then the
 * file. The caller holds the lock. Return: 0, or -1 (the record stays) with ERR_UNAVAILABLE (pool absent) or
 * as device_destroy(). */
int volumes_roll_back(struct volumes *v, const struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_find_content() - what is recognised on the device of @r, as fs_probe() says it; "" also where it
 * has no path, or is not active. Blocks on the device. Return: 0, or -1 as snapshot_find_device() and
 * fs_probe(). */
int volumes_find_content(
	struct volumes *v, const struct volume_record *r, char **ret_found, struct error **err) MUST_CHECK;

/** volumes_undo_leftover() - volumes_roll_back() of what an earlier run of the driver, or an earlier call,
 * left. A device on which content is recognised is not removed, since its creation was finished. The caller
 * holds the lock. Return: as volumes_roll_back(), or -1 with ERR_PRECONDITION (content). */
int volumes_undo_leftover(struct volumes *v, const struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_erase() - eraser_config.erase: erase what is in phase ERASING, destroy its device and drop its
 * record; nothing else is done to others. Resumes where a crash or a failure ended it. */
int volumes_erase(void *user, const char *id, struct erase_claim *claim, struct erasure *e,
	struct error **err) MUST_CHECK;

/** volumes_erases_whole() - whether all of @r is erased after its deletion, not its ends only. Pure. */
bool volumes_erases_whole(const struct volume_record *r);

/** volumes_delete_record() - volumes_delete() for callers that hold the volume's lock. @lock: taken over when
 * the volume is left to the eraser; @r: its current record, whose phase is kept up to date. Return: as
 * volumes_delete(). */
int volumes_delete_record(
	struct volumes *v, struct volume_lock **lock, struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_info() - what callers are told about @r. Return: volume_info_free(). */
struct volume_info *volumes_info(struct volumes *v, const struct volume_record *r);

/**
 * volumes_lock_ready() - lock the volume that @handle means and copy its record, which must be in phase
 * READY.
 * @wait_ms: as volume_lock()
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_ABORTED. The outputs are the caller's.
 */
int volumes_lock_ready(struct volumes *v, const char *handle, int wait_ms, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err) MUST_CHECK;

/** volumes_may_be_block() - nothing of former owners can be read from the device of @r itself: it was zeroed,
 * or is the Go driver's, which are served as they are. */
bool volumes_may_be_block(const struct volume_record *r);

struct mount_entry;
struct volume_params;

/** volumes_require_mount() - what is mounted as @e belongs to @r. Return: 0, or -1 with ERR_PRECONDITION,
 * ERR_INTERNAL. */
int volumes_require_mount(struct volumes *v, const struct volume_record *r, const struct mount_entry *e,
	struct error **err) MUST_CHECK;

/** volumes_publish_inline() - volumes_publish() of an inline ephemeral volume. */
int volumes_publish_inline(
	struct volumes *v, const struct publish_request *request, struct error **err) MUST_CHECK;

/** volumes_is_inline() - whether @r lives as long as its pod. */
bool volumes_is_inline(const struct volume_record *r);

/** volumes_check_use() - whether a pod may use @r with @mode.
 * @ret_params: as recorded; params_done()
 * Return: 0, or -1 with ERR_PRECONDITION (for Kata Containers), ERR_INVALID_ARGUMENT (mode). */
int volumes_check_use(const struct volume_record *r, enum access_mode mode, struct volume_params *ret_params,
	struct error **err) MUST_CHECK;

/** volumes_forget_target() - take @target out of the targets of @r, in memory. */
void volumes_forget_target(struct volume_record *r, const char *target);

/** volumes_save_detached() - records_save() of what is not mounted somewhere any more. That a path is
 * recorded keeps nobody from anything, so a disk that takes no changes does not make it fail: it is kept in
 * memory, and goes to the disk with the next change. */
void volumes_save_detached(struct volumes *v, const struct volume_record *r);

/** volumes_is_taken_over() - whether @r was made by the Go driver, which neither looked at access modes and
 * mount flags nor recorded what it did. Pure. */
bool volumes_is_taken_over(const struct volume_record *r);

/** volumes_lacks_record() - whether there may be a volume @id although there is no record of it: its state
 * file is damaged, a device of that name has none, or the state was not read yet. */
bool volumes_lacks_record(struct volumes *v, const char *id);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes_private.h - what the operations of volumes.h share. Each operation is in a file of its own, and
 * uses the records (records.h) and the devices (device_view.h) through their interfaces; code that compares
 * the two holds their mutex.
 */
#pragma once

#include <pthread.h>

#include "os/copy/fs_extents.h"
#include "volume/attachment/inline_leftovers.h"
#include "volume/concurrency_limit.h"
#include "volume/copies/copy_completion.h"
#include "volume/copies/copy_pause.h"
#include "volume/copies/copy_reports.h"
#include "volume/copies/source_waits.h"
#include "volume/device_view.h"
#include "volume/durability/region_durability.h"
#include "volume/erase_queue.h"
#include "volume/failing_pools.h"
#include "volume/health/volumes_health.h"
#include "volume/locks.h"
#include "volume/records.h"
#include "volume/volumes.h"

/* Since the start of the driver. */
struct copy_counts {
	uint64_t bytes;
	uint64_t left_bytes; /* that copies under way have to copy and to zero, as far as that is known */
	struct copy_pace pace;
	uint64_t pauses;
	uint64_t pause_ns;
};

struct volume_params;

struct volumes {
	char *node_id;
	char *state_path;
	struct volume_locks *locks;
	struct erase_queue *erase_queue;
	struct concurrency_limit *making;  /* for creating devices within the call */
	struct concurrency_limit *zeroing; /* for zeroing new block volumes within the call */
	struct concurrency_limit *cloning; /* for filling clones within the call */
	struct device_manager *devices;
	struct path_roots *roots;
	const struct volume_pods *pods;     /* NULL: nothing is known of them */
	char *direct_dir;                   /* the folder for direct volumes; NULL: none */
	const struct volume_guests *guests; /* NULL: nothing is known of them */
	struct fs_usage_helpers *usage_helpers;
	int mkfs_timeout_ms;
	uint64_t copy_bytes_per_s; /* limit for each clone; 0: none */
	struct inline_limits inline_limits;
	struct inline_leftovers leftovers; /* of volumes_delete_leftovers() only */

	struct volumes_shared shared;
	struct records *records;
	struct device_view *device_view;
	pthread_mutex_t durability_writing; /* of the file; taken before shared.mutex */
	/* guarded by shared.mutex: */
	bool ready;                 /* the first device view exists, and was followed by a look at health */
	struct health_table health; /* that the last volumes_look_at_health() found */
	struct dimms dimms;         /* that it has seen */
	bool dirty_compared;        /* their counts of dirty shutdowns, with those of the boot before */
	struct copy_counts copied;
	struct copy_reports copy_reports;
	struct source_waits source_waits;
	struct region_durabilities durabilities;
	char *no_kata;       /* why no volumes for Kata Containers are made; NULL: they are */
	char *start_failure; /* of the last attempt to start; NULL: none has failed */
};

/** volumes_refuse_stranger() - fail if @id, which has no record, belongs to a device without a state file or
 * to a state file that could not be read. Return: 0, or -1 with ERR_PRECONDITION and a text that names `check
 * -repair`. */
int volumes_refuse_stranger(struct volumes *v, const char *id, struct error **err) MUST_CHECK;

/* A change of what a volume is, or where it is. All borrowed. */
struct volume_change {
	const char *what;              /* the line's message: "volume created" */
	const char *staging;           /* staging path; NULL: none */
	const char *target;            /* target path; NULL: none */
	const char *device;            /* its path; NULL: that of the device in the last listing */
	const struct volume_claim *of; /* has the pod that is logged; NULL: the recorded one */
	const char *changed;           /* parameters that were changed: "usage=FileIO"; NULL: none */
	uint64_t from_bytes;           /* the size before, of what has grown; 0: nothing has */
	uint64_t begun_ns;             /* when the work on it began */
};

/** volumes_log_change() - log one line at info level about a change of @r that was made. Not to be called if
 * nothing had to be changed. */
void volumes_log_change(struct volumes *v, const struct volume_record *r, const struct volume_change *c);

/** volumes_pool_name() - get the name of the pool with @uuid, or @uuid itself while that pool is not seen.
 * NULL is allowed, and is returned for NULL. Return: caller frees. */
char *volumes_pool_name(struct volumes *v, const char *uuid);

/** volumes_read_claim() - read from @said, parameters or context of a call, for which claim or pod the new or
 * recorded volume @r is. @ret: claim_done() */
void volumes_read_claim(const struct volume_record *r, const struct strmap *said, struct volume_claim *ret);

/** volumes_note_claim() - add to the record of @r what @said, parameters or context of a call, says about its
 * claim or pod and the record does not have. If it cannot be written to disk, that is no failure: it is
 * written with the next change. The caller holds the lock. */
void volumes_note_claim(struct volumes *v, struct volume_record *r, const struct strmap *said);

/** volumes_load() - open and lock the state folder, read it, list devices and look at the health of volumes;
 * then the driver is ready. @for_repair: do not change anything that is found, nor look at health. Return: 0,
 * or -1 as volumes_start(). */
int volumes_load(struct volumes *v, bool for_repair, struct error **err) MUST_CHECK;

/** volumes_look_at_propagation() - find out whether volumes_offers_kata(). A failure counts as no. */
void volumes_look_at_propagation(struct volumes *v);

/** volumes_delete_leftovers() - look for inline volumes whose pods are gone, and delete those that have been
 * left over for ten minutes, and at an earlier look. Nothing that is in use is deleted. @now_ns: clock_ns().
 * One thread at a time. Failures are logged. */
void volumes_delete_leftovers(struct volumes *v, uint64_t now_ns);

/** volumes_look_at_health_first() - volumes_look_at_health() before the driver is ready. A failure is logged.
 */
void volumes_look_at_health_first(struct volumes *v);

/** volumes_create_and_lock() - volumes_create() for callers that keep using the volume. @wait_ms: as
 * volume_lock();
 * @ret_lock: its lock; @ret: its record, in phase READY. Return: as volumes_create(). */
int volumes_create_and_lock(struct volumes *v, const struct volume_request *request, int wait_ms,
	struct volume_lock **ret_lock, struct volume_record **ret, struct error **err) MUST_CHECK;

/** volumes_enter_making() - wait until a device may be created or grown, as long as that goes at the usual
 * pace.
 * @ret: concurrency_limit_leave()
 * Return: 0, or -1 with ERR_UNAVAILABLE (too many wait; the device manager hangs, and the text says in
 * what). */
int volumes_enter_making(struct volumes *v, struct concurrency_limit **ret, struct error **err) MUST_CHECK;

/** volumes_enter_zeroing() - wait until a device, or part of one, may be zeroed within a call. @ret:
 * concurrency_limit_leave(). Return: 0, or -1 with ERR_UNAVAILABLE. */
int volumes_enter_zeroing(
	struct volumes *v, const char *id, struct concurrency_limit **ret, struct error **err) MUST_CHECK;

/** volumes_zero() - zero all of a device, in pieces, so that volumes_stop() ends it soon. @fd: exclusive.
 * Return: 0, or -1 with ERR_UNAVAILABLE (the driver is stopping), ERR_INTERNAL. */
int volumes_zero(struct volumes *v, int fd, uint64_t size_bytes, struct error **err) MUST_CHECK;

/* A volume that is being copied, which is locked. */
struct clone_source;

/**
 * volumes_open_source() - lock the volume or snapshot that @q names as source, and check that a clone of it
 * can be what
 * @q asks for.
 * @params: of @q
 * @ret:    volumes_close_source()
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_INVALID_ARGUMENT (another kind of volume), ERR_RANGE (larger than
 * the limit), ERR_ABORTED (another operation on it), or as device_view_require_content().
 */
int volumes_open_source(struct volumes *v, const struct volume_request *q, const struct volume_params *params,
	struct clone_source **ret, struct error **err) MUST_CHECK;

/** volumes_close_source() - unlock and release @s. NULL is allowed. */
void volumes_close_source(struct clone_source *s);
DEFINE_CLEANUP(struct clone_source *, volumes_close_source);

/** volumes_wanted_fs() - type of file system that the volume of @q has to have, borrowed; NULL: none, or that
 * of its source. Pure. */
const char *volumes_wanted_fs(const struct volume_request *q);

/** volumes_source_id() - ID of the volume, borrowed. volumes_source_bytes() - how large its device is. */
const char *volumes_source_id(const struct clone_source *s);
uint64_t volumes_source_bytes(const struct clone_source *s);

/** volumes_source_layout() - say in the record of the copy of @s what that of @s says of an image for Kata
 * Containers, of guests, and of the type of its file system unless one is asked for. */
void volumes_source_layout(const struct clone_source *s, struct volume_record *copy);

/** volumes_source_written() - get the part of the new device outside of which nothing was written but zeros.
 * Return: length 0: nothing was. */
struct fs_extent volumes_source_written(const struct clone_source *s);

/* A copy that is to be made; all borrowed. */
struct copy_request {
	struct clone_source *source;
	struct volume_record *r; /* of the new device */
	const struct device *to; /* the new device, at least as large as the source's */
};

/**
 * volumes_fill_copies() - fill new devices with what their sources hold, all as they were at one moment; all
 * other bytes are zeroed. A file system gets a UUID of its own.
 * @requests: @n of them, at least one, whose records have the new UUIDs; the records get whether they hold
 * data and, for snapshots, when they were taken, which is made durable before a copy can be seen to be
 * finished
 *
 * The writers of all sources that are mounted stand still at the same time, for at most the maxPause of the
 * first request. Blocks for as long as that takes; volumes_stop() ends it soon. Return: 0, or -1 with
 * ERR_PRECONDITION (in use as a block volume in direct mode; data that are not recognised; writers would have
 * to stand still for too long), ERR_ABORTED (another program has frozen it), ERR_UNAVAILABLE, ERR_DEADLINE,
 * ERR_INTERNAL. After a failure the content of the new devices is undefined.
 */
int volumes_fill_copies(
	struct volumes *v, const struct copy_request *requests, size_t n, struct error **err) MUST_CHECK;

/** volumes_enter_cloning() - wait until copies may be made within the call. @id: of a volume that the caller
 * has locked, and that waits; @ret: concurrency_limit_leave(). Return: 0, or -1 with ERR_UNAVAILABLE. */
int volumes_enter_cloning(
	struct volumes *v, const char *id, struct concurrency_limit **ret, struct error **err) MUST_CHECK;

/* A copy that is made in steps, because others are made together with it. */
struct creation;

/**
 * volumes_begin_creation() - make a device for the copy of a volume. The record is in phase CREATING.
 * @id: of the new volume, whose lock the caller has, and of which there is no record
 * @q: has a source, which is locked until the copy is filled
 * @ret: volumes_close_creation()
 * Return: 0, or -1 as volumes_create(); then nothing of it is left, except with ERR_UNAVAILABLE.
 */
int volumes_begin_creation(struct volumes *v, const char *id, const struct volume_request *q,
	struct creation **ret, struct error **err) MUST_CHECK;

/** volumes_creation_copy() - what has to be filled for it; borrows from @c. */
struct copy_request volumes_creation_copy(const struct creation *c);

/** volumes_record_creation() - record durably what is known of a copy that is filled, in phase CREATING.
 * Return: 0, or -1 as state_put(). */
int volumes_record_creation(struct volumes *v, struct creation *c, struct error **err) MUST_CHECK;

/** volumes_finish_creation() - put the recorded copy into phase READY, and log that. Return: 0, or -1 as
 * state_advance(). */
int volumes_finish_creation(struct volumes *v, struct creation *c, struct error **err) MUST_CHECK;

/** volumes_undo_creation() - remove the copy again. A copy that holds data of its source is put into phase
 * ERASING: the caller calls volumes_erase_given_up_copy() when it has released the lock. If it cannot be
 * undone, *@err, the failure that led here, becomes ERR_UNAVAILABLE. Return: whether it is undone. */
bool volumes_undo_creation(struct volumes *v, struct creation *c, struct error **err);

/** volumes_close_creation() - release @c. NULL is allowed. */
void volumes_close_creation(struct creation *c);
DEFINE_CLEANUP(struct creation *, volumes_close_creation);

/** volumes_erase_given_up_copy() - erase @id if its creation was given up, now that nothing holds the lock
 * that erasing takes. A failure is logged: the next refresh tries again. */
void volumes_erase_given_up_copy(struct volumes *v, const char *id);

/** volumes_group_completion() - whether the snapshots of the group @id were finished, which they are together
 * (volumes_create_group()): if one is ready, or if the devices of all show it. Return: 0, or -1 as
 * volumes_copy_completion(). */
int volumes_group_completion(
	struct volumes *v, const char *id, enum copy_completion *ret, struct error **err) MUST_CHECK;

/** volumes_snapshot_request() - fill in the request that makes a snapshot of @q.source: with the layout, the
 * erasing and the kind of access of that volume. @parameters: of the new record, are added to; the result
 * borrows from both, and from @source. @source: record of the volume; NULL: the volume does not exist */
struct volume_request volumes_snapshot_request(
	const struct volume_record *source, const struct snapshot_request *q, struct strmap *parameters);

/** volumes_snapshot_info() - make what callers get of the snapshot @r. Return: snapshot_info_free(). */
struct snapshot_info *volumes_snapshot_info(struct volumes *v, const struct volume_record *r);

/** volumes_settle_growth() - if the growth of the device of @r has begun and not ended, find out by a listing
 * whether it has its old or its new size, and record that. @r is kept up to date. The caller holds the lock.
 * Return: 0, or -1 (the record stays) with ERR_UNAVAILABLE (the device is not seen), or as records_save(). */
int volumes_settle_growth(struct volumes *v, struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_reconcile_sizes() - volumes_settle_growth() of all volumes that are not locked, and record the
 * size of devices that another program has made larger. Failures are logged. */
void volumes_reconcile_sizes(struct volumes *v);

/** volumes_roll_back() - undo the unfinished creation of @r: remove its device if it has the recorded
 * identity, then the state file. A clone of a volume is put into phase ERASING instead. The caller holds the
 * lock. Return: 0, or -1 (the record stays) with ERR_UNAVAILABLE (pool absent) or as device_destroy(). */
int volumes_roll_back(struct volumes *v, const struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_recognise() - find out what @device holds, which is that of @r: fs_recognise() with what the
 * record says. All that stages, copies, thaws, undoes and repairs volumes asks this. Blocks on the device.
 * Return: as fs_recognise(). */
int volumes_recognise(
	const struct volume_record *r, const char *device, char **ret_found, struct error **err) MUST_CHECK;

/** volumes_find_content() - volumes_recognise() of the device of @r, which is activated; "" also if there is
 * no device, or it has no path. Return: 0, or -1 as device_view_find_device(), device_view_require_device()
 * and fs_recognise(), or with ERR_UNAVAILABLE (its pool is absent). */
int volumes_find_content(
	struct volumes *v, const struct volume_record *r, char **ret_found, struct error **err) MUST_CHECK;

/** volumes_copy_completion() - copy_completion_look() for the copy @r, which is in phase CREATING;
 * COPY_UNFINISHED if it has no device. Activates the device. Return: 0, or -1 as device_view_find_device(),
 * device_view_require_device(), copy_completion_look(), or with ERR_UNAVAILABLE (its pool is absent). */
int volumes_copy_completion(struct volumes *v, const struct volume_record *r, enum copy_completion *ret,
	struct error **err) MUST_CHECK;

/** volumes_settle_creation() - end a creation that an earlier run of the driver, or an earlier call, has not
 * finished: volumes_roll_back(), or phase READY for a copy of which the device shows that it was finished. A
 * device with content is not removed: its creation was finished. The caller holds the lock; the phase of @r
 * is kept up to date if it becomes READY. Return: as volumes_roll_back(), volumes_copy_completion() or
 * records_save(), or -1 with ERR_PRECONDITION (content; a copy that may be finished). */
int volumes_settle_creation(struct volumes *v, struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_erase() - erase_queue_config.erase: if the volume is in phase ERASING, erase it, destroy its
 * device and remove its record; volumes in other phases are not changed. Resumes where a crash or a failure
 * ended it. */
int volumes_erase(void *user, const char *id, struct erase_claim *claim, struct erasure *e,
	struct error **err) MUST_CHECK;

/** volumes_erases_whole() - whether all of @r is erased after its deletion, and not only its beginning and
 * end. Pure. */
bool volumes_erases_whole(const struct volume_record *r);

/** volumes_erase_end() - get where erasing all of the device of @r, which has @size_bytes, may end: of a copy
 * that was given up, only what was written is erased. */
uint64_t volumes_erase_end(const struct volume_record *r, uint64_t size_bytes);

/** volumes_delete_record() - volumes_delete() for callers that hold the volume's lock. @lock: taken over when
 * the volume is put into the erase queue; @r: its current record, whose phase is kept up to date. Return: as
 * volumes_delete(). */
int volumes_delete_record(
	struct volumes *v, struct volume_lock **lock, struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_info() - make the properties of @r that callers get. Return: volume_info_free(). */
struct volume_info *volumes_info(struct volumes *v, const struct volume_record *r);

/**
 * volumes_lock_ready() - lock the volume with @handle and copy its record, which must be in phase
 * READY and no snapshot.
 * @wait_ms: as volume_lock()
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_ABORTED. The outputs are the caller's.
 */
int volumes_lock_ready(struct volumes *v, const char *handle, int wait_ms, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err) MUST_CHECK;

/** volumes_lock_snapshot() - likewise of the snapshot with @handle. */
int volumes_lock_snapshot(struct volumes *v, const char *handle, int wait_ms, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err) MUST_CHECK;

/** volumes_may_exist_unrecorded() - whether a volume @id may exist although there is no record of it: its
 * state file is damaged, there is a device of that name, or the state was not read yet. */
bool volumes_may_exist_unrecorded(struct volumes *v, const char *id);

/** volumes_ids_in_phase() - the IDs of all volumes whose record is in @phase, sorted. Return: strv_free(). */
char **volumes_ids_in_phase(struct volumes *v, enum volume_phase phase);

/** volumes_copy_health() - append to @ret what the last look found of the volume @id. The caller has the
 * mutex. */
void volumes_copy_health(const struct volumes *v, const char *id, struct volume_health *ret);

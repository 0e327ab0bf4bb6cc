/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.h - the volumes of one node: creates, deletes, mounts and reports them. Uses neither protobuf nor
 * sockets.
 *
 * The kernel is the source of truth for what exists, the state store for what is intended. Every operation is
 * idempotent and takes the volume's lock; a second caller meanwhile gets ERR_ABORTED. Volumes whose device
 * is not seen while its pool is absent or incomplete, or while listing fails, are *missing*: create,
 * stage, publish and delete return ERR_UNAVAILABLE for them, and their state is kept. Threads:
 * safe. Blocks on devices and LVM, except for volumes_capacity() and volumes_is_ready(), which never wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strmap.h"
#include "os/fs_usage.h"
#include "pmem/capacity.h"
#include "volume/access_mode.h"
#include "volume/report.h"

#define VOLUME_DEFAULT_FS "ext4"

struct device_manager;
struct path_roots;
struct volumes;

/* Functions that find out facts about the pods that use volumes that are not in the request of
 * NodePublishVolume. */
struct volume_pods {
	/* whether the pod that @context, of NodePublishVolume, names runs in a guest. May block, and is
	 * called without locks. Return: 0, or -1 with ERR_UNAVAILABLE */
	int (*runs_in_guest)(void *user, const struct strmap *context, bool *ret, struct error **err);
	/* the fsGroup of that pod, decimal, and its fsGroupChangePolicy, which the caller frees; NULL: none.
	 * As above; NULL: not known */
	int (*fs_group)(void *user, const struct strmap *context, char **ret_group, char **ret_policy,
		struct error **err);
	void *user;
};

/* The guests that have been given the device of a volume, by the runtime that runs them. None waits longer
 * than some seconds; all may be called from any thread. */
struct volume_guests {
	/* whether the runtime of @sandbox answers, or may be about to */
	bool (*runs)(void *user, const char *sandbox);
	/* how full the file system on @device is. @device: as the runtime was given it. Return: 0, or -1 with
	 * ERR_UNAVAILABLE, ERR_DEADLINE, ERR_INTERNAL */
	int (*stats)(void *user, const char *sandbox, const char *device, struct fs_usage *ret,
		struct error **err);
	/* make it as large as the device. Return: as stats, or -1 with ERR_UNIMPLEMENTED: the guest cannot do
	 * that */
	int (*resize)(
		void *user, const char *sandbox, const char *device, uint64_t size_bytes, struct error **err);
	void *user;
};

/* How much the inline volumes of a node may take together, with those that are still being erased. */
struct inline_limits {
	uint32_t max_volumes; /* 0: no limit */
	uint64_t max_bytes;   /* of their devices; 0: no limit */
};

struct volumes_config {
	const char *node_id;
	const char *state_path;
	struct device_manager *devices; /* borrowed */
	struct path_roots *roots;       /* borrowed */
	/* borrowed; NULL: not known, so that each pod with a volume for Kata Containers counts as a guest */
	const struct volume_pods *pods;
	const char
		*direct_volumes_dir; /* where runtimes look for direct volumes; NULL: there are none here */
	/* borrowed; NULL: not known, so that each guest that was given a device counts as running */
	const struct volume_guests *guests;
	uint64_t erase_bytes_per_s; /* limit for all deleted volumes together; 0: none */
	uint64_t copy_bytes_per_s;  /* limit for each clone of a volume; 0: none */
	struct inline_limits inline_limits;
	int mkfs_timeout_ms; /* 0: five minutes */
	bool erase_in_call;  /* volumes_delete() returns only after erasing: for callers without threads */
	/* called from any thread when the result of volumes_report() may have changed; must neither wait nor
	 * call functions of this file. NULL: not needed */
	void (*changed)(void *user);
	void *user;
};

/**
 * volumes_new() - prepare the volumes of a node. Only volumes_start() opens the state folder and lists
 * devices.
 * @config: copied, except for what is marked as borrowed
 * Return: never NULL; volumes_free().
 */
struct volumes *volumes_new(const struct volumes_config *config);

/** volumes_stop() - make operations end soon that take long and can be resumed: erasing, and zeroing of new
 * block volumes, whose creation then fails. Idempotent; any thread. Never waits. */
void volumes_stop(struct volumes *v);

/** volumes_free() - volumes_stop(), wait for erasures to end, release; no operation may be running. NULL is
 * allowed. */
void volumes_free(struct volumes *v);
DEFINE_CLEANUP(struct volumes *, volumes_free);

/** volumes_start() - open and lock the state folder, list and activate devices, undo unfinished creations,
 * continue erasing, thaw file systems that were frozen for a clone, make the first device view, and look at
 * the health of all volumes (volumes_look_at_health(): at most 8 s), after which the driver is ready. May be
 * repeated after a failure. Return: 0, or -1 with ERR_UNAVAILABLE (another driver holds the state folder;
 * listing failed: nothing was changed), or as state_open(). */
int volumes_start(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_refresh() - list devices again, update the device view, and retry undoing creations and erasing
 * volumes whose pool is available again. */
int volumes_refresh(struct volumes *v, struct error **err) MUST_CHECK;

struct volume_request {
	const char *name;
	uint64_t required_bytes; /* 0: the smallest */
	uint64_t limit_bytes;    /* 0: none */
	const char *fs_type;     /* "ext4" or "xfs"; NULL: no file system is requested */
	bool any_fs; /* fs_type is the default, since the caller names none: a copy has that of its source */
	char *const
		*mount_flags;    /* strv, with which the caller will have it mounted; NULL: none, or not known
				  */
	bool block;              /* the device itself is requested: all of it is zeroed first */
	bool spans_nodes;        /* an access mode spans nodes, which is allowed for cache volumes only */
	bool made_by_controller; /* requested by the central controller, which may lose the reply; this is
				    recorded */
	const struct strmap *parameters;
	const char
		*source; /* handle of the volume or snapshot that is copied; NULL: the new volume is empty */
	bool source_is_snapshot;
	bool snapshot;       /* what is made is a snapshot of the source, see volumes_create_snapshot() */
	const char *group;   /* of a snapshot: ID of its group; NULL: none */
	uint64_t group_size; /* how many snapshots that has */
	const char *inline_target; /* canonical target path in the pod with which the volume is deleted; NULL:
				      not an inline volume */
};

struct volume_info {
	char *id;
	uint64_t size_bytes;
	struct strmap context;
	bool missing;
	bool is_cache;
	bool may_be_block;  /* may be used as a block volume: no data of former owners can be read */
	bool is_block_only; /* created for block access only: no file system in it is mounted */
	bool is_taken_over; /* created by the Go driver, which accepted every access mode */
	char *fs_type;      /* requested at creation; NULL: none, or not known */
	char *source;       /* ID of the volume or snapshot of which it is a copy; NULL: none */
	char *claim;        /* for which it was created, as claim_text(); NULL: not known */
	char *pod;          /* of an inline volume, as claim_pod(); NULL: not known */
};

void volume_info_free(struct volume_info *i);
DEFINE_CLEANUP(struct volume_info *, volume_info_free);

/**
 * volumes_create() - create the volume, or return the one of that name.
 *
 * An existing volume is returned if its size is within required and limit and its parameters are the same; as
 * a block volume only if it was zeroed when it was created, or was created by the Go driver. Zeroing takes
 * time: a retry meanwhile gets ERR_ABORTED, and if many volumes are being zeroed already, ERR_UNAVAILABLE.
 *
 * With a source, the volume gets what the source held at one moment, and the same kind of content; the call
 * returns when all is copied. Processes that write to the source are stopped meanwhile if it is mounted, for
 * no longer than the parameter maxPause. Errors of the source: ERR_NOT_FOUND, ERR_INVALID_ARGUMENT (other
 * kind of volume), ERR_RANGE (larger than limit_bytes), ERR_PRECONDITION (a block volume in use; the writers
 * would have to stand still for too long), ERR_ABORTED (another operation on it).
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (name, parameters, fs type), ERR_EXISTS (other size or
 * parameters), ERR_RANGE (rounded size exceeds the limit; below the file system's minimum), ERR_EXHAUSTED (no
 * pool has room), ERR_PRECONDITION (a device with that ID has no state file: the text names `check -repair`;
 * an existing one whose device is not what it was made as), ERR_ABORTED, ERR_UNAVAILABLE (missing, not
 * ready), ERR_INTERNAL. @ret: volume_info_free().
 */
int volumes_create(struct volumes *v, const struct volume_request *request, struct volume_info **ret,
	struct error **err) MUST_CHECK;

/**
 * volumes_delete() - delete a volume and its content.
 * @handle: any text; an unknown handle is success
 *
 * After a success the volume does not exist for any caller any more, also after a crash. Its content is
 * erased and its space is freed in the background, which is resumed at the next start and retried until it
 * succeeds; until then, the ID is not used for a new volume. Idempotent. Return: 0, or -1 with
 * ERR_PRECONDITION (in use; nothing was changed), ERR_UNAVAILABLE (missing), ERR_ABORTED, ERR_INTERNAL.
 */
int volumes_delete(struct volumes *v, const char *handle, struct error **err) MUST_CHECK;

/**
 * volumes_delete_if_never_staged() - volumes_delete() for a volume that was never staged or published.
 *
 * This is checked under the volume's lock. A volume of which it is not known, because the Go driver created
 * it, because it was adopted or because its state file is damaged, counts as staged. Return: as
 * volumes_delete(), and -1 with ERR_PRECONDITION (it was staged; nothing was changed).
 */
int volumes_delete_if_never_staged(struct volumes *v, const char *handle, struct error **err) MUST_CHECK;

struct snapshot_request {
	const char *name;
	const char *source; /* handle of a volume of this node */
	bool made_by_controller;
	const struct strmap *parameters; /* of the VolumeSnapshotClass */
};

struct snapshot_info {
	char *id;
	char *source; /* ID of the volume, which may be gone */
	char *group;  /* ID of the group snapshot that it belongs to; NULL: none */
	uint64_t size_bytes;
	uint64_t taken_s; /* when the volume was as the snapshot shows it, seconds since 1970 in UTC */
	bool missing;     /* its device is not seen, so that it cannot be restored now */
};

void snapshot_info_free(struct snapshot_info *i);
DEFINE_CLEANUP(struct snapshot_info *, snapshot_info_free);

/**
 * volumes_create_snapshot() - take a snapshot of a volume, or return the one of that name.
 *
 * A snapshot is a copy of all that the volume holds at one moment, on a device of its own, which no pod uses;
 * its file system has another UUID. Copying, the pause of writers, and errors are those of volumes_create()
 * with a source. After the deletion of a snapshot, the same parts of its device are erased as of a deleted
 * volume. Volumes and snapshots share their names. Return: as volumes_create(). @ret: snapshot_info_free().
 */
int volumes_create_snapshot(struct volumes *v, const struct snapshot_request *request,
	struct snapshot_info **ret, struct error **err) MUST_CHECK;

/** volumes_delete_snapshot() - volumes_delete() for a snapshot. For volumes_delete() a snapshot does not
 * exist, and for this function a volume does not exist. */
int volumes_delete_snapshot(struct volumes *v, const char *handle, struct error **err) MUST_CHECK;

/** volumes_get_snapshot() - get a snapshot by its handle. Return: 0, or -1 with ERR_NOT_FOUND. @ret:
 * snapshot_info_free(). */
int volumes_get_snapshot(
	struct volumes *v, const char *handle, struct snapshot_info **ret, struct error **err) MUST_CHECK;

/** volumes_list_snapshots() - get a page of the snapshots, as volumes_list(). @ret: array of *@ret_n, each
 * snapshot_info_free(), the array free(). */
void volumes_list_snapshots(struct volumes *v, const char *after, size_t max, struct snapshot_info ***ret,
	size_t *ret_n, bool *ret_more);

struct group_request {
	const char *name;
	char *const *sources; /* strv: handles of volumes */
	bool made_by_controller;
	const struct strmap *parameters; /* of the VolumeGroupSnapshotClass */
};

struct group_info {
	char *id;
	struct snapshot_info **snapshots; /* that are ready, in order of their IDs */
	size_t n;
	bool complete; /* those are all that were taken */
};

void group_info_free(struct group_info *g);
DEFINE_CLEANUP(struct group_info *, group_info_free);

/**
 * volumes_create_group() - take snapshots of several volumes that show all of them at one moment, or return
 * those of that name.
 *
 * The writers of all volumes stand still together until the last is copied, for at most maxPause. All
 * snapshots come to be, or none. Return: as volumes_create_snapshot(), and -1 with ERR_INVALID_ARGUMENT (a
 * volume is listed twice, more than VOLUME_GROUP_MAX), ERR_EXISTS (it is of other volumes), ERR_PRECONDITION
 * (some of its snapshots are gone; a volume is on another node). @ret: group_info_free().
 */
int volumes_create_group(struct volumes *v, const struct group_request *request, struct group_info **ret,
	struct error **err) MUST_CHECK;

/** volumes_get_group() - get the group @id. @snapshots: strv of IDs that must belong to it; NULL: none.
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_INVALID_ARGUMENT (one of @snapshots does not). @ret:
 * group_info_free(). */
int volumes_get_group(struct volumes *v, const char *id, char *const *snapshots, struct group_info **ret,
	struct error **err) MUST_CHECK;

/** volumes_delete_group() - volumes_delete_snapshot() of all snapshots that name the group @id, and of
 * @snapshots (strv; NULL: none). Snapshots that do not exist are success. Return: as
 * volumes_delete_snapshot(), and -1 with ERR_INVALID_ARGUMENT (one of @snapshots is something else; nothing
 * was deleted). */
int volumes_delete_group(
	struct volumes *v, const char *id, char *const *snapshots, struct error **err) MUST_CHECK;

struct expand_request {
	const char *handle;
	uint64_t required_bytes; /* 0: any */
	uint64_t limit_bytes;    /* 0: none */
};

struct expand_result {
	uint64_t size_bytes; /* of the device */
	bool is_block;       /* created as a block volume only: it has no file system that has to grow, too */
};

/**
 * volumes_expand() - make the device of a volume larger, whether it is in use or not. It never shrinks.
 *
 * Its file system grows by volumes_node_expand(), or when it is staged next. Space that a block volume gains
 * is zeroed before it gets it, which takes time: a retry meanwhile gets ERR_ABORTED. Idempotent: a volume
 * that is large enough is success. After a crash the volume has its old or its new size, which a retry takes
 * over. Return: 0, or -1 with ERR_NOT_FOUND, ERR_INVALID_ARGUMENT (no size given, inline volume, a volume for
 * Kata Containers, devices of a fixed size), ERR_RANGE (rounded size exceeds the limit), ERR_EXHAUSTED (no
 * room in its pool; the text says how large it can be), ERR_PRECONDITION (as device_view_require_content()),
 * ERR_ABORTED, ERR_UNAVAILABLE (missing; the outcome is not known), ERR_DEADLINE, ERR_INTERNAL.
 */
int volumes_expand(struct volumes *v, const struct expand_request *request, struct expand_result *ret,
	struct error **err) MUST_CHECK;

/** volumes_can_expand() - whether the device mode allows volumes_expand() at all. Never waits. */
bool volumes_can_expand(const struct volumes *v);

struct modify_request {
	const char *handle;
	const struct strmap *parameters; /* those that change: keys of PARAMS_MODIFY (params.h) */
};

/**
 * volumes_modify() - change parameters of a volume, whether it is in use or not. Others stay as they are.
 *
 * A new usage counts from the next time that the volume is staged. Idempotent: what is so already is success.
 * After a crash all parameters are as before, or all are changed; they need no device. Return: 0, or -1 with
 * ERR_NOT_FOUND (also of a snapshot), ERR_INVALID_ARGUMENT (an unknown parameter, or one that cannot be
 * changed, or a bad value: names both; another usage of an inline or cache volume, of one for Kata
 * Containers, or of one that is a namespace), ERR_ABORTED, ERR_UNAVAILABLE (not ready; the state folder is
 * full or failing), ERR_INTERNAL.
 */
int volumes_modify(struct volumes *v, const struct modify_request *request, struct error **err) MUST_CHECK;

/** volumes_get() - get the properties of a volume by its handle. Return: 0, or -1 with ERR_NOT_FOUND. @ret:
 * volume_info_free(). */
int volumes_get(
	struct volumes *v, const char *handle, struct volume_info **ret, struct error **err) MUST_CHECK;

/**
 * volumes_list() - get a page of the volumes in order of their IDs.
 * @after: ID after which the page begins, or NULL
 * @max:   most entries; 0: all
 * @ret:   array of *@ret_n, each volume_info_free(), the array free()
 * @ret_more: whether more follow
 *
 * Stable: changes between pages neither repeat nor hide other volumes. Does not block. Cannot fail.
 */
void volumes_list(struct volumes *v, const char *after, size_t max, struct volume_info ***ret, size_t *ret_n,
	bool *ret_more);

/** volumes_offers_kata() - whether volumes for Kata Containers are made: mounts in the state folder have to
 * reach the host, where the runtime looks for images. @ret_why: why they are not, caller frees; may be NULL.
 * As of the last listing of devices; never waits. */
bool volumes_offers_kata(struct volumes *v, char **ret_why);

/** volumes_offers_direct() - whether volumes are made whose device is given to guests: the folder in which
 * runtimes look for them can be used. @ret_why: why they are not, caller frees; may be NULL. Blocks on the
 * file system of that folder, which is in memory. */
bool volumes_offers_direct(struct volumes *v, char **ret_why);

/** volumes_capacity() - get the capacity of all pools together, from the device view. @sync: for volumes that
 * need MAP_SYNC (durability_needs_sync()). Return: false before the first device view. Never waits. */
bool volumes_capacity(struct volumes *v, bool sync, struct capacity *ret);

/** volumes_report() - report pools and volumes, from memory. Return: false until volumes_is_ready().
 * @ret: volumes_report_done(). Never waits. */
bool volumes_report(struct volumes *v, struct volumes_report *ret);

/** volumes_limit() - get how many volumes the node can have, from the device view. Return: 0: no limit is
 * known. Never waits. */
uint64_t volumes_limit(struct volumes *v);

struct volumes_overview {
	size_t n_creating;
	size_t n_ready;   /* and the last listing has their device */
	size_t n_missing; /* ready, and the last listing does not have their device */
	size_t n_erasing;
	unsigned erasures_running;
	uint64_t to_erase_bytes; /* of all that are being erased */
	uint64_t erased_bytes;   /* since the start of the driver */
	uint64_t copied_bytes;   /* likewise */
	uint64_t to_copy_bytes;  /* that copies under way have to copy and to zero, as far as that is known */
	uint64_t copy_pauses;   /* how often writers were stopped for a clone since the start of the driver */
	uint64_t copy_pause_ns; /* how long all of these pauses lasted together */
	size_t n_damaged;       /* their state file could not be read when the driver started */
	size_t n_strangers;     /* devices of ours without a state file */
	size_t n_pools[DURABILITY_FSYNC +
		       1];      /* in which volumes are made, by the durability of their memory */
	size_t n_failing_pools; /* in which the last device could not be created; the log has the reasons */
};

/** volumes_overview() - count volumes by phase, and get the progress of erasing. Before the first device view
 * all is 0. Never waits. */
void volumes_overview(struct volumes *v, struct volumes_overview *ret);

/**
 * volumes_current_step() - describe what the operation on a volume is doing and for how long, and which
 * command of the device manager runs: "volume ID: mkfs.ext4 for 130 s". @handle: a handle, or a volume name;
 * NULL: of the operation that takes longest. Never waits. Return: caller frees; NULL: no operation is
 * running.
 */
char *volumes_current_step(struct volumes *v, const char *handle);

/** volumes_is_ready() - whether the first device view exists, and the health of volumes was looked at. Never
 * waits. */
bool volumes_is_ready(struct volumes *v);

/** volumes_require_ready() - fail unless volumes_is_ready(). Never waits. Return: 0, or -1 with
 * ERR_UNAVAILABLE and a text that says what the start is doing, and why the last attempt failed. */
int volumes_require_ready(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_start_failed() - remember why an attempt to start has failed, in volumes_start() or before it, for
 * volumes_require_ready(). @e: copied. */
void volumes_start_failed(struct volumes *v, const struct error *e);

/* How a volume is to be staged or published. */
struct use_request {
	const char *handle;
	const char *staging_path;
	const char *target_path;  /* NULL when staging */
	bool block;               /* the device itself: its node is bound to a file at the target */
	const char *fs_type;      /* "": as created, or as staged */
	char *const *mount_flags; /* strv from the capability, one flag each */
	enum access_mode access_mode;
	bool readonly; /* publish read-only */
	const struct strmap *context;
};

/**
 * volumes_stage() - format the device if it is empty, and mount it at the staging path; with DAX if the usage
 * is AppDirect. Return: 0, or -1 with ERR_NOT_FOUND, ERR_INVALID_ARGUMENT (flag not in the allow-list, path),
 * ERR_EXISTS (has another file system, or is staged there in another way), ERR_PRECONDITION (no
 * DAX; hidden by another mount; e2fsck found errors that need a decision), ERR_UNAVAILABLE, ERR_ABORTED,
 * ERR_INTERNAL.
 */
int volumes_stage(struct volumes *v, const struct use_request *request, struct error **err) MUST_CHECK;

/** volumes_unstage() - unmount the volume from the staging path; if it is not mounted there, that is success.
 * Works also when the state cannot be read or written, when the device does not respond, and before
 * volumes_start(). Return: 0, or -1 with ERR_NOT_FOUND (unknown
 * volume), ERR_INVALID_ARGUMENT (path), ERR_PRECONDITION (busy; hidden), ERR_ABORTED, ERR_INTERNAL. */
int volumes_unstage(
	struct volumes *v, const char *handle, const char *staging_path, struct error **err) MUST_CHECK;

/**
 * volumes_publish() - bind the staged file system, or the device's node, to the target. An inline ephemeral
 * volume is created, formatted and mounted there. If that fails, it is undone; if it cannot be undone, the
 * error is ERR_UNAVAILABLE, after which kubelet tries again or unpublishes.
 * Return: 0 (also if it is already published there in the same way), or -1 with ERR_NOT_FOUND,
 * ERR_INVALID_ARGUMENT, ERR_PRECONDITION (not staged there; single writer with another target), ERR_EXISTS
 * (target mounted in another way), ERR_UNAVAILABLE, ERR_ABORTED, ERR_INTERNAL.
 */
int volumes_publish(struct volumes *v, const struct use_request *request, struct error **err) MUST_CHECK;

/** volumes_unpublish() - unmount and remove the target, and delete an inline ephemeral volume. A target that
 * is not a mount and is not empty is left as it is, which is success. Like volumes_unstage() it works without
 * state and device, except for the deletion. Return: 0, or -1 with ERR_NOT_FOUND (unknown volume and the
 * target is a mount), ERR_INVALID_ARGUMENT (path), ERR_PRECONDITION (busy; hidden), ERR_UNAVAILABLE (an
 * inline volume that cannot be deleted yet), ERR_ABORTED, ERR_INTERNAL. */
int volumes_unpublish(
	struct volumes *v, const char *handle, const char *target_path, struct error **err) MUST_CHECK;

struct node_expand_request {
	const char *handle;
	const char *path;        /* where it is staged or published */
	uint64_t required_bytes; /* 0: any */
	uint64_t limit_bytes;    /* 0: none */
};

/**
 * volumes_node_expand() - make the file system of a volume as large as its device, while it is in use. For a
 * block volume there is nothing to do.
 * @ret_size_bytes: size of the device
 *
 * Idempotent. Return: 0, or -1 with ERR_NOT_FOUND (unknown volume; it is not at that path), ERR_RANGE (the
 * device has not that size), ERR_PRECONDITION (mounted read-only; it has errors), ERR_UNAVAILABLE (missing),
 * ERR_ABORTED, ERR_INTERNAL.
 */
int volumes_node_expand(struct volumes *v, const struct node_expand_request *request,
	uint64_t *ret_size_bytes, struct error **err) MUST_CHECK;

struct volume_stats {
	bool block; /* a block volume: only the total bytes are known */
	struct fs_usage usage;
};

/**
 * volumes_stats() - get how full a volume is.
 * @path: where it is staged or published
 *
 * Does not take the lock of the volume, and waits at most 5 s for a file system that hangs.
 * Return: 0, or -1 with ERR_NOT_FOUND (unknown volume; it is not at that path), ERR_DEADLINE, ERR_UNAVAILABLE
 * (the file systems of several volumes hang), ERR_INTERNAL.
 */
int volumes_stats(struct volumes *v, const char *handle, const char *path, struct volume_stats *ret,
	struct error **err) MUST_CHECK;

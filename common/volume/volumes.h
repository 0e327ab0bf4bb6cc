/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.h - the volumes of one node: the domain. Knows neither protobuf nor sockets.
 *
 * The kernel says what exists, the state store what is intended. Every operation is idempotent and
 * takes the volume's lock; a second caller meanwhile gets ERR_ABORTED. Volumes whose device cannot be seen
 * while its pool is absent or incomplete, or while listing fails, are *missing*: create, stage, publish and
 * delete of them answer ERR_UNAVAILABLE, and nothing of their state is dropped. Threads: safe. Blocks on
 * devices and LVM, except for volumes_capacity() and volumes_is_ready(), which never wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strmap.h"
#include "os/fs_usage.h"
#include "pmem/capacity.h"
#include "volume/access.h"

#define VOLUME_DEFAULT_FS "ext4"

struct device_manager;
struct path_roots;
struct volumes;

struct volumes_config {
	const char *node_id;
	const char *state_path;
	struct device_manager *devices; /* borrowed */
	struct path_roots *roots;       /* borrowed */
	uint64_t erase_bytes_per_s;     /* limit for all deleted volumes together; 0: none */
	int mkfs_timeout_ms;            /* 0: five minutes */
	bool erase_in_call; /* volumes_delete() answers when the volume is gone: for users that want no
			       threads */
	/* what volumes_report() says may have changed: from any thread, often for nothing; must not wait, nor
	 * call back. NULL: not needed */
	void (*changed)(void *user);
	void *user;
};

/**
 * volumes_new() - the volumes of a node. Nothing is opened or looked at yet: volumes_start() does.
 * @config: copied, but for what it says is borrowed
 * Return: never NULL; volumes_free().
 */
struct volumes *volumes_new(const struct volumes_config *config);

/** volumes_stop() - end soon what takes long and can be resumed: erasing, and zeroing of new block volumes,
 * which then fail. Idempotent; any thread. Never waits. */
void volumes_stop(struct volumes *v);

/** volumes_free() - volumes_stop(), wait for erasures to end, release; no operation may be running. NULL is
 * allowed. */
void volumes_free(struct volumes *v);
DEFINE_CLEANUP(struct volumes *, volumes_free);

/**
 * volumes_start() - take the state folder, list and activate devices, roll back `.creating`, go on
 * erasing `.erasing`, publish the first snapshot (ready from then on). May be repeated after a failure.
 * @v:   volumes
 * @err: see docs/ERRORS.md
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (another driver holds the state folder; listing failed: nothing was
 * changed), or as state_open().
 */
int volumes_start(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_refresh() - list devices again, publish a snapshot, retry roll-backs and erasures whose pool came
 * back. */
int volumes_refresh(struct volumes *v, struct error **err) MUST_CHECK;

struct volume_request {
	const char *name;
	uint64_t required_bytes; /* 0: the smallest */
	uint64_t limit_bytes;    /* 0: none */
	const char *fs_type;     /* "ext4" or "xfs"; NULL: nobody asks for a file system */
	bool block;              /* somebody asks for the device itself: all of it is zeroed first */
	bool spans_nodes;        /* an access mode does: for cache volumes only */
	bool made_by_controller; /* the central controller asks, which may lose the answer: recorded */
	const struct strmap *parameters;
	const char *inline_target; /* canonical, of the pod with which it goes; NULL: a volume that stays */
};

struct volume_info {
	char *id;
	uint64_t size_bytes;
	struct strmap context;
	bool missing;
	bool is_cache;
	bool may_be_block;  /* nothing of former owners can be read from the device itself */
	bool is_taken_over; /* made by the Go driver, which took every access mode */
	char *fs_type;      /* asked for at creation; NULL: none, or not known */
	char *claim;        /* that it was made for, as claim_text(); NULL: not known */
	char *pod;          /* of an inline one, as claim_pod(); NULL: not known */
};

void volume_info_free(struct volume_info *i);
DEFINE_CLEANUP(struct volume_info *, volume_info_free);

/**
 * volumes_create() - make the volume, or give back the one of that name.
 *
 * An existing one fits when its size is within required and limit and its parameters are the same; as block
 * device only if it was zeroed when it was made, or is the Go driver's. Zeroing takes its time: a retry
 * meanwhile gets ERR_ABORTED, and when many do so already, ERR_UNAVAILABLE.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (name, parameters, fs type), ERR_EXISTS (other size or
 * parameters), ERR_RANGE (rounded size passes the limit; below the file system's minimum), ERR_EXHAUSTED (no
 * pool has room), ERR_PRECONDITION (a device of that ID without state: names `check -repair`; an existing one
 * whose device is not what it was made as), ERR_ABORTED,
 * ERR_UNAVAILABLE (missing, not ready), ERR_INTERNAL. @ret: volume_info_free().
 */
int volumes_create(struct volumes *v, const struct volume_request *request, struct volume_info **ret,
	struct error **err) MUST_CHECK;

/**
 * volumes_delete() - destroy a volume and what was in it.
 * @handle: anything; one that is in no form of ours, or unknown, is success
 *
 * After a success the volume is gone for all callers, also after a crash. Its content is erased and its space
 * given back in the background, resumed at the next start and tried again until it is done; its ID is not
 * given out before. Idempotent. Return: 0, or -1 with ERR_PRECONDITION (in use; nothing was touched),
 * ERR_UNAVAILABLE (missing), ERR_ABORTED, ERR_INTERNAL.
 */
int volumes_delete(struct volumes *v, const char *handle, struct error **err) MUST_CHECK;

/** volumes_get() - facts of a volume by handle. Return: 0, or -1 with ERR_NOT_FOUND. @ret:
 * volume_info_free(). */
int volumes_get(
	struct volumes *v, const char *handle, struct volume_info **ret, struct error **err) MUST_CHECK;

/**
 * volumes_list() - a page of the volumes in order of their IDs.
 * @after: ID behind which the page begins, or NULL
 * @max:   most entries; 0: all
 * @ret:   array of *@ret_n, each volume_info_free(), the array free()
 * @ret_more: whether more follow
 *
 * Stable: changes between pages neither repeat nor hide other volumes. Does not block. Cannot fail.
 */
void volumes_list(struct volumes *v, const char *after, size_t max, struct volume_info ***ret, size_t *ret_n,
	bool *ret_more);

/** volumes_capacity() - of all pools, from the snapshot. Return: false before the first one. Never waits. */
bool volumes_capacity(struct volumes *v, struct capacity *ret);

/** volumes_limit() - how many volumes the node can have, from the snapshot. Return: 0: no limit is known.
 * Never waits. */
uint64_t volumes_limit(struct volumes *v);

struct volumes_overview {
	size_t n_creating;
	size_t n_ready;   /* and their device was seen last */
	size_t n_missing; /* ready otherwise */
	size_t n_erasing;
	unsigned erasures_running;
	uint64_t to_erase_bytes; /* of all that are being erased */
	uint64_t erased_bytes;   /* since the start of the driver */
	size_t n_damaged;        /* their state file could not be read when the driver started */
	size_t n_strangers;      /* devices of ours without a state file */
	size_t n_failing_pools;  /* in which the last device could not be made; see the log for the reasons */
};

/** volumes_overview() - volumes by phase, and how far erasing is. Before the first snapshot all is 0. Never
 * waits. */
void volumes_overview(struct volumes *v, struct volumes_overview *ret);

/**
 * volumes_current_step() - what the operation on a volume is at and for how long, and which command of the
 * device manager runs: "volume ID: mkfs.ext4 for 130 s". @handle: or the name that a volume is made for;
 * NULL: what takes longest of all. Never waits. Return: caller frees; NULL: nothing is going on.
 */
char *volumes_current_step(struct volumes *v, const char *handle);

/** volumes_is_ready() - the first snapshot exists. Never waits. */
bool volumes_is_ready(struct volumes *v);

/** volumes_require_ready() - the same with the reason. Never waits. Return: 0, or -1 with ERR_UNAVAILABLE,
 * which says what the start is doing, and why the last attempt failed. */
int volumes_require_ready(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_start_failed() - remember why an attempt to start has failed, in volumes_start() or before it, for
 * volumes_require_ready(). @e: copied. */
void volumes_start_failed(struct volumes *v, const struct error *e);

struct stage_request {
	const char *handle;
	const char *staging_path;
	bool block;               /* the device itself: it is looked at, and nothing is mounted */
	const char *fs_type;      /* "": as created */
	char *const *mount_flags; /* strv from the capability */
	enum access_mode access_mode;
	const struct strmap *context;
};

/**
 * volumes_stage() - file system on the device if it is empty, mounted at the staging path; with DAX where the
 * usage is AppDirect. Return: 0, or -1 with ERR_NOT_FOUND, ERR_INVALID_ARGUMENT (flag not in the allow-list,
 * path), ERR_EXISTS (formatted otherwise, or staged there in another way), ERR_PRECONDITION (Kata volume; no
 * DAX; hidden by another mount; e2fsck wants a decision), ERR_UNAVAILABLE, ERR_ABORTED, ERR_INTERNAL.
 */
int volumes_stage(struct volumes *v, const struct stage_request *request, struct error **err) MUST_CHECK;

/** volumes_unstage() - unmount; not mounted is success. Needs neither a state that can be read or written nor
 * a device that answers, and works before volumes_start(). Return: 0, or -1 with ERR_NOT_FOUND (unknown
 * volume), ERR_INVALID_ARGUMENT (path), ERR_PRECONDITION (busy; hidden), ERR_ABORTED, ERR_INTERNAL. */
int volumes_unstage(
	struct volumes *v, const char *handle, const char *staging_path, struct error **err) MUST_CHECK;

struct publish_request {
	const char *handle;
	const char *staging_path;
	const char *target_path;
	bool block;          /* a file at the target becomes the device's node */
	const char *fs_type; /* "": as staged */
	char *const *mount_flags;
	enum access_mode access_mode;
	bool readonly;
	const struct strmap *context;
};

/**
 * volumes_publish() - bind the staged file system, or the device's node, to the target. An inline ephemeral
 * volume is made, formatted and mounted there; when that fails, it is undone, or if it stays the error is
 * ERR_UNAVAILABLE: kubelet then asks again, or unpublishes.
 * Return: 0 (already there in the same way too), or -1 with ERR_NOT_FOUND, ERR_INVALID_ARGUMENT,
 * ERR_PRECONDITION (not staged there; single writer with another target), ERR_EXISTS (target mounted in
 * another way), ERR_UNAVAILABLE, ERR_ABORTED, ERR_INTERNAL.
 */
int volumes_publish(struct volumes *v, const struct publish_request *request, struct error **err) MUST_CHECK;

/** volumes_unpublish() - unmount and remove the target, and delete an inline ephemeral volume. A target that
 * is no mount and holds something is left as it is, which is success. Like volumes_unstage() it works when
 * state or device do not, but for the deletion. Return: 0, or -1 with ERR_NOT_FOUND (unknown volume and the
 * target is a mount), ERR_INVALID_ARGUMENT (path), ERR_PRECONDITION (busy; hidden), ERR_UNAVAILABLE (an
 * inline volume that cannot be deleted yet), ERR_ABORTED, ERR_INTERNAL. */
int volumes_unpublish(
	struct volumes *v, const char *handle, const char *target_path, struct error **err) MUST_CHECK;

struct volume_stats {
	bool block; /* then only the total bytes are known */
	struct fs_usage usage;
};

/**
 * volumes_stats() - how full a volume is.
 * @path: where it is staged or published
 *
 * Takes no lock of the volume, and waits 5 s at most for a file system that hangs.
 * Return: 0, or -1 with ERR_NOT_FOUND (unknown volume; it is not at that path), ERR_DEADLINE, ERR_UNAVAILABLE
 * (the file systems of several volumes hang), ERR_INTERNAL.
 */
int volumes_stats(struct volumes *v, const char *handle, const char *path, struct volume_stats *ret,
	struct error **err) MUST_CHECK;

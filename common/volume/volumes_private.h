/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_private.h - what the files of volumes.h share. */
#pragma once

#include <pthread.h>

#include "base/turn.h"
#include "pmem/device/device.h"
#include "volume/concurrency_limit.h"
#include "volume/eraser.h"
#include "volume/failing.h"
#include "volume/locks.h"
#include "volume/presence.h"
#include "volume/records.h"
#include "volume/volumes.h"

#define PUBLISH_WAIT_MS   2000
#define MKFS_TIMEOUT_MS   300000
#define USAGE_HELPERS_MAX 8
/* More at once would not be faster; with those that wait they leave most workers to other calls. */
#define ZEROING_MAX         4
#define ZEROING_WAITING_MAX 8
/* Devices are made one after the other. While one takes long, those inside leave most workers to other calls.
 */
#define MAKING_MAX         12
#define MAKING_WAITING_MAX 32

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
	struct turn relisting; /* one listing at a time, so that an older one never replaces a newer one */
	/* guarded by shared.mutex: */
	struct device_list *seen; /* last listing, kept up to date; NULL before the first, and until the state
				   * folder was read */
	uint64_t changes;  /* devices that we created or destroyed: a listing that overlaps one is not used */
	uint64_t listings; /* that were used in `seen`, of pools alone too */
	char **in_doubt;   /* ids whose removal failed, and may have been done, or whose device's path was
			    * another's, until the next new listing: strv */
	struct failing *failing;
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

/** volumes_is_missing() - whether the device of @r cannot be seen. A device of its name that bears another
 * identity is not its own. The caller has the mutex. */
bool volumes_is_missing(const struct volumes *v, const struct volume_record *r);

/** volumes_takes_new() - whether new devices are made in @p now. The caller has the mutex. */
bool volumes_takes_new(const struct volumes *v, const struct device_pool *p);

/** volumes_load() - take the state folder, read it and list devices, and do nothing about what is found: for
 * repairs. Return: 0, or -1 as volumes_start(). */
int volumes_load(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_set_step() - as volume_lock_set_step(). */
void volumes_set_step(struct volumes *v, const char *id, const char *what);

/** volumes_relist() - list devices again. On failure what was seen stays. Return: 0, or -1 as
 * device_list_read(). */
int volumes_relist(struct volumes *v, struct error **err) MUST_CHECK;

/** volumes_note() - @d was created or destroyed by us. Of its pool what the manager has seen is shown, or
 * else computed. */
void volumes_note(struct volumes *v, const struct device *d, bool exists);

/** volumes_destroy_device() - device_destroy(), and note it; after a failure what was seen is in doubt, and
 * volumes_find_device() lists again. Parameters and return as device_destroy(). */
int volumes_destroy_device(
	struct volumes *v, const struct device *d, int exclusive_fd, struct error **err) MUST_CHECK;

/** volumes_seen_device() - a copy of the device of @r, if present in what was seen last, else NULL. */
struct device *volumes_seen_device(struct volumes *v, const struct volume_record *r);

/**
 * volumes_find_device() - the device of @r, which bears its identity where that is recorded; lists again if
 * it is not among those seen.
 * @ret_device: a copy if present, else NULL
 * @ret:        as presence_of()
 * Return: 0, or -1 with ERR_UNAVAILABLE (listing failed).
 */
int volumes_find_device(struct volumes *v, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err) MUST_CHECK;

/** volumes_activate_own() - activate the devices in @list that have records: nothing but we does where no
 * udev rule does it. Others of the same form are left as they are: names of namespaces are anybody's. Return:
 * 0, or -1 as device_activate(). */
int volumes_activate_own(struct volumes *v, const struct device_list *list, struct error **err) MUST_CHECK;

/** volumes_require_device() - volumes_find_device() that must be present, active, with a node.
 * Return: 0, or -1 with ERR_UNAVAILABLE that says what is missing. */
int volumes_require_device(
	struct volumes *v, const struct volume_record *r, struct device **ret, struct error **err) MUST_CHECK;

/** volumes_require_content() - volumes_require_device() whose content is where it belongs. Return: 0, or -1
 * as that, or with ERR_PRECONDITION. */
int volumes_require_content(
	struct volumes *v, const struct volume_record *r, struct device **ret, struct error **err) MUST_CHECK;

/** volumes_make() - volumes_create() for callers that keep using the volume. @wait_ms: as volume_lock();
 * @ret_lock: its lock; @ret: its record, in phase READY. Return: as volumes_create(). */
int volumes_make(struct volumes *v, const struct volume_request *request, int wait_ms,
	struct volume_lock **ret_lock, struct volume_record **ret, struct error **err) MUST_CHECK;

/** volumes_roll_back() - undo a `.creating`: remove its device if it bears the recorded identity, then the
 * file. The caller holds the lock. Return: 0, or -1 (the record stays) with ERR_UNAVAILABLE (pool absent) or
 * as device_destroy(). */
int volumes_roll_back(struct volumes *v, const struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_find_content() - what is recognised on the device of @r, as fs_probe() says it; "" also where it
 * has no path, or is not active. Blocks on the device. Return: 0, or -1 as volumes_find_device() and
 * fs_probe(). */
int volumes_find_content(
	struct volumes *v, const struct volume_record *r, char **ret_found, struct error **err) MUST_CHECK;

/** volumes_undo_leftover() - volumes_roll_back() of what an earlier run of the driver, or an earlier call,
 * left. A device on which content is recognised is not removed, since its creation was finished. The caller
 * holds the lock. Return: as volumes_roll_back(), or -1 with ERR_PRECONDITION (content). */
int volumes_undo_leftover(struct volumes *v, const struct volume_record *r, struct error **err) MUST_CHECK;

/** volumes_confirm_path() - make sure that @d, the device of @r, still has its path: the kernel gives names
 * of namespaces again. To be asked while it is held open, before anything is written. Return: 0, or -1 with
 * ERR_UNAVAILABLE. */
int volumes_confirm_path(struct volumes *v, const struct volume_record *r, const struct device *d,
	struct error **err) MUST_CHECK;

/** volumes_claim_device() - make sure that nobody uses the device of @r, and keep everybody out. @ret_fd: the
 * caller closes. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_NOT_FOUND, ERR_UNAVAILABLE (it is
 * another one by now), ERR_INTERNAL. */
int volumes_claim_device(struct volumes *v, const struct volume_record *r, const struct device *d,
	int *ret_fd, struct error **err) MUST_CHECK;

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
struct mount_table;
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

/** volumes_check_block() - whether the device @dev of @r may be handed out itself. Return: 0, or -1 with
 * ERR_PRECONDITION (not zeroed, or mounted). */
int volumes_check_block(const struct volume_record *r, const struct mount_table *table, dev_t dev,
	struct error **err) MUST_CHECK;

/** volumes_forget_target() - take @target out of the targets of @r, in memory. */
void volumes_forget_target(struct volume_record *r, const char *target);

/** volumes_save_detached() - volumes_save() of what is not mounted somewhere any more. That a path is
 * recorded keeps nobody from anything, so a disk that takes no changes does not make it fail: it is kept in
 * memory, and goes to the disk with the next change. */
void volumes_save_detached(struct volumes *v, const struct volume_record *r);

/** volumes_is_taken_over() - whether @r was made by the Go driver, which neither looked at access modes and
 * mount flags nor recorded what it did. Pure. */
bool volumes_is_taken_over(const struct volume_record *r);

/** volumes_lacks_record() - whether there may be a volume @id although there is no record of it: its state
 * file is damaged, a device of that name has none, or the state was not read yet. */
bool volumes_lacks_record(struct volumes *v, const char *id);

/** volumes_seen_stranger() - a copy of the only device called @id, if it was seen last, else NULL. */
struct device *volumes_seen_stranger(struct volumes *v, const char *id);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the devices and pools of a node as they were seen last, kept up to date; finds, claims and
 * destroys the devices of recorded volumes.
 *
 * Shares its mutex with the records, which determine which devices are ours (records.h says why). Functions
 * whose comment says so must be called with the mutex held, and all others without it. Threads: safe. Blocks
 * on devices and LVM where it may list, activate, claim or destroy.
 */
#pragma once

#include "pmem/device/device.h"
#include "volume/locks.h"
#include "volume/presence.h"
#include "volume/records.h"

struct failing_pools;
struct snapshot;

/** snapshot_new() - make a snapshot without any listing. All parameters are borrowed; @locks: get the current
 * step.
 * Return: never NULL; snapshot_free(). */
struct snapshot *snapshot_new(struct volumes_shared *shared, struct records *records,
	struct device_manager *devices, struct volume_locks *locks);

/** snapshot_free() - release @s. NULL is allowed. */
void snapshot_free(struct snapshot *s);

/** snapshot_begin() - list devices for the first time, after the records were loaded: from then on the driver
 * is ready. @activate: first activate the devices that have records. Return: 0, or -1 as device_list_read().
 */
int snapshot_begin(struct snapshot *s, bool activate, struct error **err) MUST_CHECK;

/** snapshot_list() - get the last listing, borrowed; NULL before snapshot_begin(). The caller has the mutex.
 */
const struct device_list *snapshot_list(const struct snapshot *s);

/** snapshot_failing_pools() - get the pools in which devices could not be created, borrowed. The caller has
 * the mutex. */
struct failing_pools *snapshot_failing_pools(const struct snapshot *s);

/** snapshot_is_missing() - whether the device of @r is not in the last listing. A device with its name and
 * another identity does not count. The caller has the mutex. */
bool snapshot_is_missing(const struct snapshot *s, const struct volume_record *r);

/** snapshot_phase() - get the phase of @r, which is PHASE_MISSING for a ready one that snapshot_is_missing().
 * The caller has the mutex. */
enum volume_phase snapshot_phase(const struct snapshot *s, const struct volume_record *r);

/** snapshot_relist() - list devices again. On failure the last listing stays. Return: 0, or -1 as
 * device_list_read(). */
int snapshot_relist(struct snapshot *s, struct error **err) MUST_CHECK;

/** snapshot_apply_change() - update the snapshot after this driver has created or destroyed @d. The capacity
 * of its pool is taken from what the device manager has seen, or computed. Lists devices again if the device
 * manager does not know what it has seen. */
void snapshot_apply_change(struct snapshot *s, const struct device *d, bool exists);

/** snapshot_apply_growth() - update the snapshot after this driver has grown @d, which is as it is now. */
void snapshot_apply_growth(struct snapshot *s, const struct device *d);

/** snapshot_destroy_device() - call device_destroy() and update the snapshot. After a failure, the snapshot
 * may be wrong, so the next snapshot_find_device() lists devices again. Parameters and return as
 * device_destroy(). */
int snapshot_destroy_device(
	struct snapshot *s, const struct device *d, int exclusive_fd, struct error **err) MUST_CHECK;

/** snapshot_seen_device() - copy the device of @r, if it is present in the last listing; otherwise NULL. */
struct device *snapshot_seen_device(struct snapshot *s, const struct volume_record *r);

/**
 * snapshot_find_device() - find the device of @r, which has the recorded identity, if one is recorded; lists
 * devices again if it is not in the last listing.
 * @ret_device: a copy if present, else NULL
 * @ret:        as presence_of()
 * Return: 0, or -1 with ERR_UNAVAILABLE (listing failed).
 */
int snapshot_find_device(struct snapshot *s, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err) MUST_CHECK;

/** snapshot_require_device() - snapshot_find_device(), but fail unless the device is present and active, and
 * has a node in /dev. Return: 0, or -1 with ERR_UNAVAILABLE and a text that says what is missing. */
int snapshot_require_device(struct snapshot *s, const struct volume_record *r, struct device **ret,
	struct error **err) MUST_CHECK;

/** snapshot_require_content() - snapshot_require_device(), but fail also if the content is not at the
 * expected place of the device. Return: 0, or -1 as snapshot_require_device(), or with ERR_PRECONDITION. */
int snapshot_require_content(struct snapshot *s, const struct volume_record *r, struct device **ret,
	struct error **err) MUST_CHECK;

/** snapshot_confirm_path() - make sure that @d, the device of @r, still has its path: the kernel reuses
 * names of namespaces. To be called while the device is held open, before anything is written. Return: 0, or
 * -1 with ERR_UNAVAILABLE. */
int snapshot_confirm_path(struct snapshot *s, const struct volume_record *r, const struct device *d,
	struct error **err) MUST_CHECK;

/** snapshot_claim_device() - make sure that the device of @r is not in use, and open it exclusively. @ret_fd:
 * the caller closes. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_NOT_FOUND, ERR_UNAVAILABLE (the
 * path belongs to another device by now), ERR_INTERNAL. */
int snapshot_claim_device(struct snapshot *s, const struct volume_record *r, const struct device *d,
	int *ret_fd, struct error **err) MUST_CHECK;

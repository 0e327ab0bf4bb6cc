/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_view.h - the devices and pools of a node as they were seen last, kept up to date; finds, claims and
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
struct device_view;

/** device_view_new() - make a view without any listing. All parameters are borrowed; @locks: get the current
 * step.
 * Return: never NULL; device_view_free(). */
struct device_view *device_view_new(struct volumes_shared *shared, struct records *records,
	struct device_manager *devices, struct volume_locks *locks);

/** device_view_free() - release @s. NULL is allowed. */
void device_view_free(struct device_view *s);

/** device_view_begin() - list devices for the first time, after the records were loaded: from then on the
 * driver is ready. @activate: first activate the devices that have records. Return: 0, or -1 as
 * device_list_read().
 */
int device_view_begin(struct device_view *s, bool activate, struct error **err) MUST_CHECK;

/** device_view_list() - get the last listing, borrowed; NULL before device_view_begin(). The caller has the
 * mutex.
 */
const struct device_list *device_view_list(const struct device_view *s);

/** device_view_failing_pools() - get the pools in which devices could not be created, borrowed. The caller
 * has the mutex. */
struct failing_pools *device_view_failing_pools(const struct device_view *s);

/** device_view_is_missing() - whether the device of @r is not in the last listing. A device with its name and
 * another identity does not count. The caller has the mutex. */
bool device_view_is_missing(const struct device_view *s, const struct volume_record *r);

/** device_view_phase() - get the phase of @r, which is PHASE_MISSING for a ready one that
 * device_view_is_missing(). The caller has the mutex. */
enum volume_phase device_view_phase(const struct device_view *s, const struct volume_record *r);

/** device_view_relist() - list devices again. On failure the last listing stays. Return: 0, or -1 as
 * device_list_read(). */
int device_view_relist(struct device_view *s, struct error **err) MUST_CHECK;

/** device_view_apply_change() - update the device view after this driver has created or destroyed @d. The
 * capacity of its pool is taken from what the device manager has seen, or computed. Lists devices again if
 * the device manager does not know what it has seen. */
void device_view_apply_change(struct device_view *s, const struct device *d, bool exists);

/** device_view_apply_growth() - update the device view after this driver has grown @d, which is as it is now.
 */
void device_view_apply_growth(struct device_view *s, const struct device *d);

/** device_view_destroy_device() - call device_destroy() and update the device view. After a failure, the
 * device view may be wrong, so the next device_view_find_device() lists devices again. Parameters and return
 * as device_destroy(). */
int device_view_destroy_device(
	struct device_view *s, const struct device *d, int exclusive_fd, struct error **err) MUST_CHECK;

/** device_view_seen_device() - copy the device of @r, if it is present in the last listing; otherwise NULL.
 */
struct device *device_view_seen_device(struct device_view *s, const struct volume_record *r);

/** device_view_seen_as() - copy the device called @id, if the last listing has one such device, and only one;
 * otherwise NULL. For a volume whose record cannot be read. */
struct device *device_view_seen_as(struct device_view *s, const char *id);

/**
 * device_view_find_device() - find the device of @r, which has the recorded identity, if one is recorded;
 * lists devices again if it is not in the last listing.
 * @ret_device: a copy if present, else NULL
 * @ret:        as presence_of()
 * Return: 0, or -1 with ERR_UNAVAILABLE (listing failed).
 */
int device_view_find_device(struct device_view *s, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err) MUST_CHECK;

/** device_view_require_device() - device_view_find_device(), but fail unless the device is present and
 * active, and has a node in /dev. Return: 0, or -1 with ERR_UNAVAILABLE and a text that says what is missing.
 */
int device_view_require_device(struct device_view *s, const struct volume_record *r, struct device **ret,
	struct error **err) MUST_CHECK;

/** device_view_require_content() - device_view_require_device(), but fail also if the content is not at the
 * expected place of the device. Return: 0, or -1 as device_view_require_device(), or with ERR_PRECONDITION.
 */
int device_view_require_content(struct device_view *s, const struct volume_record *r, struct device **ret,
	struct error **err) MUST_CHECK;

/** device_view_confirm_path() - make sure that @d, the device of @r, still has its path: the kernel reuses
 * names of namespaces. To be called while the device is held open, before anything is written. Return: 0, or
 * -1 with ERR_UNAVAILABLE. */
int device_view_confirm_path(struct device_view *s, const struct volume_record *r, const struct device *d,
	struct error **err) MUST_CHECK;

/** device_view_claim_device() - make sure that the device of @r is not in use, and open it exclusively.
 * @ret_fd: the caller closes. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_NOT_FOUND, ERR_UNAVAILABLE
 * (the path belongs to another device by now), ERR_INTERNAL. */
int device_view_claim_device(struct device_view *s, const struct volume_record *r, const struct device *d,
	int *ret_fd, struct error **err) MUST_CHECK;

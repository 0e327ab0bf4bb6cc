/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the devices and pools of a node as they were seen last, kept up to date, and what is done with
 * the devices of recorded volumes.
 *
 * Shares its mutex with the records (records.h says why), which tell it which devices are ours. Functions
 * whose results are borrowed require that the caller has the mutex; all others take it. Threads: safe. Blocks
 * on devices and LVM where it may list, activate, claim or destroy.
 */
#pragma once

#include "pmem/device/device.h"
#include "volume/locks.h"
#include "volume/presence.h"
#include "volume/records.h"

struct failing;
struct snapshot;

/** snapshot_new() - nothing is seen yet. All parameters are borrowed; @locks: shown what is being done.
 * Return: never NULL; snapshot_free(). */
struct snapshot *snapshot_new(struct volumes_shared *shared, struct records *records,
	struct device_manager *devices, struct volume_locks *locks);

/** snapshot_free() - release @s. NULL is allowed. */
void snapshot_free(struct snapshot *s);

/** snapshot_begin() - list devices for the first time, after the records were loaded: from then on the driver
 * is ready. @activate: the devices that have records, first. Return: 0, or -1 as device_list_read(). */
int snapshot_begin(struct snapshot *s, bool activate, struct error **err) MUST_CHECK;

/** snapshot_list() - what was seen last, borrowed; NULL before snapshot_begin(). The caller has the mutex. */
const struct device_list *snapshot_list(const struct snapshot *s);

/** snapshot_failing() - the pools in which devices could not be made, borrowed. The caller has the mutex. */
struct failing *snapshot_failing(const struct snapshot *s);

/** snapshot_is_missing() - whether the device of @r cannot be seen. A device of its name that bears another
 * identity is not its own. The caller has the mutex. */
bool snapshot_is_missing(const struct snapshot *s, const struct volume_record *r);

/** snapshot_phase() - of @r, which is missing when it is ready and its device cannot be seen. The caller has
 * the mutex. */
enum volume_phase snapshot_phase(const struct snapshot *s, const struct volume_record *r);

/** snapshot_relist() - list devices again. On failure what was seen stays. Return: 0, or -1 as
 * device_list_read(). */
int snapshot_relist(struct snapshot *s, struct error **err) MUST_CHECK;

/** snapshot_note() - @d was created or destroyed by us. Of its pool what the manager has seen is shown, or
 * else computed. */
void snapshot_note(struct snapshot *s, const struct device *d, bool exists);

/** snapshot_destroy_device() - device_destroy(), and note it; after a failure what was seen is in doubt, and
 * snapshot_find_device() lists again. Parameters and return as device_destroy(). */
int snapshot_destroy_device(
	struct snapshot *s, const struct device *d, int exclusive_fd, struct error **err) MUST_CHECK;

/** snapshot_seen_device() - a copy of the device of @r, if present in what was seen last, else NULL. */
struct device *snapshot_seen_device(struct snapshot *s, const struct volume_record *r);

/**
 * snapshot_find_device() - the device of @r, which bears its identity where that is recorded; lists again if
 * it is not among those seen.
 * @ret_device: a copy if present, else NULL
 * @ret:        as presence_of()
 * Return: 0, or -1 with ERR_UNAVAILABLE (listing failed).
 */
int snapshot_find_device(struct snapshot *s, const struct volume_record *r, struct device **ret_device,
	enum presence *ret, struct error **err) MUST_CHECK;

/** snapshot_require_device() - snapshot_find_device() that must be present, active, with a node.
 * Return: 0, or -1 with ERR_UNAVAILABLE that says what is missing. */
int snapshot_require_device(struct snapshot *s, const struct volume_record *r, struct device **ret,
	struct error **err) MUST_CHECK;

/** snapshot_require_content() - snapshot_require_device() whose content is where it belongs. Return: 0, or -1
 * as that, or with ERR_PRECONDITION. */
int snapshot_require_content(struct snapshot *s, const struct volume_record *r, struct device **ret,
	struct error **err) MUST_CHECK;

/** snapshot_confirm_path() - make sure that @d, the device of @r, still has its path: the kernel gives names
 * of namespaces again. To be asked while it is held open, before anything is written. Return: 0, or -1 with
 * ERR_UNAVAILABLE. */
int snapshot_confirm_path(struct snapshot *s, const struct volume_record *r, const struct device *d,
	struct error **err) MUST_CHECK;

/** snapshot_claim_device() - make sure that nobody uses the device of @r, and keep everybody out. @ret_fd:
 * the caller closes. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_NOT_FOUND, ERR_UNAVAILABLE (it is
 * another one by now), ERR_INTERNAL. */
int snapshot_claim_device(struct snapshot *s, const struct volume_record *r, const struct device *d,
	int *ret_fd, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteVolume: refuse what is in use, record that the volume is to go, and leave the rest to the erase
 * queue. */
#include <stdio.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "volume/direct/volumes_direct.h"
#include "volume/id.h"
#include "volume/volumes_private.h"

/* Records the pool of the device before it is erased, because after a crash the absence of the device is
 * certain only for a known pool. The state files of the Go driver name no pool. */
static int record_pool(struct volumes *v, struct volume_record *r, const struct device *d, struct error **err)
{
	if (r->pool)
		return 0;
	r->pool = x_strdup(d->pool);
	return records_save(v->records, r, err);
}

/* A file that was removed meanwhile is written again: all that it said is in @r. */
static int record_deletion(struct volumes *v, struct volume_record *r, struct error **err)
{
	if (records_advance(v->records, r, PHASE_ERASING, err) == 0)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	if (records_save(v->records, r, err) < 0)
		return -1;
	return records_advance(v->records, r, PHASE_ERASING, err);
}

/* Settles a growth that was interrupted, so that the whole device is erased. */
static int settle_growth(struct volumes *v, struct volume_record *r, struct error **err)
{
	if (volumes_settle_growth(v, r, err) == 0)
		return 0;
	err_recode(err, ERR_UNAVAILABLE);
	return -1;
}

/* Earlier versions wrote a record for any device that an administrator named. */
static int refuse_foreign(const struct volume_record *r, struct error **err)
{
	if (!volume_record_is_foreign(r))
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"device %s is foreign, because its name does not have the form of an ID of this driver, and is "
		"not erased, although there is a state file for it: remove that with pmem-csi-driver check "
		"-forget %s",
		r->id, r->id);
}

int volumes_delete_record(
	struct volumes *v, struct volume_lock **lock, struct volume_record *r, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(erase_claim_done) struct erase_claim claim = ERASE_CLAIM_NONE;
	const struct volume_change change = {
		.what = r->snapshot ? "snapshot deleted" : "volume deleted", .begun_ns = clock_ns()};
	enum presence presence;

	if (r->phase == PHASE_CREATING)
		return volumes_roll_back(v, r, err);
	if (r->phase == PHASE_READY) {
		if (refuse_foreign(r, err) < 0)
			return -1;
		volumes_settle_direct_entry(v, r);
		if (device_view_find_device(v->device_view, r, &d, &presence, err) < 0)
			return -1;
		if (presence == DEVICE_GONE) {
			if (records_remove(v->records, r, err) < 0)
				return -1;
			volumes_log_change(v, r, &change);
			return 0;
		}
		if (presence == DEVICE_PRESENT && settle_growth(v, r, err) < 0)
			return -1;
		device_free(TAKE_PTR(d));
		if (device_view_require_device(v->device_view, r, &d, err) < 0)
			return -1;
		if (volumes_refuse_guest(v, r, d, err) < 0)
			return -1;
		if (d->path && device_view_claim_device(v->device_view, r, d, &claim.fd, err) < 0)
			return -1;
		if (record_pool(v, r, d, err) < 0)
			return -1;
		if (record_deletion(v, r, err) < 0)
			return -1;
		STEP_POINT("delete-recorded");
		volumes_log_change(v, r, &change);
	}
	claim.lock = TAKE_PTR(*lock);
	return erase_queue_add(v->erase_queue, r->id, &claim, err);
}

struct deletion {
	const char *handle;
	bool snapshot; /* it is the handle of a snapshot, and not of a volume */
	bool if_never_staged;
};

static int require_never_staged(const struct volume_record *r, struct error **err)
{
	if (!volume_record_may_hold_data(r))
		return 0;
	return err_set(err, ERR_PRECONDITION, "volume %s was in use and may hold data", r->id);
}

/* Whether a snapshot has the handle where a volume is to be deleted, or the reverse: then nothing of the
 * requested kind exists. */
static bool is_of_other_kind(const struct volume_record *r, const struct deletion *what)
{
	return r && r->snapshot != what->snapshot && !what->if_never_staged;
}

static int delete(struct volumes *v, const struct deletion *what, struct error **err)
{
	const char *handle = what->handle;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_record_freep) struct volume_record *known = NULL;
	char id[VOLUME_ID_MAX + 1];

	if (volumes_require_ready(v, err) < 0)
		return -1;
	known = records_find(v->records, handle);
	if (is_of_other_kind(known, what))
		return 0;
	if (known && known->phase == PHASE_ERASING)
		return erase_queue_add(v->erase_queue, known->id, /* claim= */ NULL, err);
	/* one that is not known yet may be about to be created, by a call that holds the lock of its ID */
	if (known || volume_id_valid(handle))
		snprintf(id, sizeof(id), "%s", known ? known->id : handle);
	else
		volume_id_mint(handle, v->node_id, id);
	if (volume_lock(v->locks, id, /* wait_ms= */ 0, &lock, err) < 0)
		return -1;
	r = records_find(v->records, id);
	if (is_of_other_kind(r, what))
		return 0;
	if (r && what->if_never_staged && require_never_staged(r, err) < 0)
		return -1;
	if (r)
		return volumes_delete_record(v, &lock, r, err);
	/* what is in no form of ours was never given out, whatever bears that name */
	if (!known && volume_id_valid(handle) && volumes_refuse_stranger(v, handle, err) < 0)
		return -1;
	log_info(what->snapshot ? "there is no such snapshot to delete" : "there is no such volume to delete",
		F_STR("volume", handle));
	return 0;
}

int volumes_delete(struct volumes *v, const char *handle, struct error **err)
{
	return delete (v, &(struct deletion){.handle = handle}, err);
}

int volumes_delete_if_never_staged(struct volumes *v, const char *handle, struct error **err)
{
	return delete (v, &(struct deletion){.handle = handle, .if_never_staged = true}, err);
}

int volumes_delete_snapshot(struct volumes *v, const char *handle, struct error **err)
{
	return delete (v, &(struct deletion){.handle = handle, .snapshot = true}, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* NodeStage/NodeUnstage: a file system on the device, mounted at the staging path; a block volume is only
 * looked at. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/paths.h"
#include "volume/attachment/attachment.h"
#include "volume/direct/volumes_direct.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

/* Refuses to stage a volume whose record was lost and made again as another kind than its claim has: an
 * administrator may have named the wrong kind, or an earlier version may have taken the volume for one that
 * the node mounts. If such a volume were staged, the node and a guest could write to the device at the same
 * time. */
static int refuse_other_kind(const struct volume_record *r, const struct volume_params *recorded,
	const struct volume_params *context, struct error **err)
{
	if (!r->adopted)
		return 0;
	if (context->direct_volume && !r->direct)
		return err_set(err, ERR_PRECONDITION,
			"volume %s was repaired as one that the node mounts, and its claim gives it to guests: "
			"stop the driver on this node and repair it again with check -repair %s -direct",
			r->id, r->id);
	if (context->kata_containers && !recorded->kata_containers)
		return err_set(err, ERR_PRECONDITION,
			"volume %s was repaired as one without the image for Kata Containers that its claim has: "
			"stop the driver on this node and repair it again with check -repair %s -filesystem",
			r->id, r->id);
	return 0;
}

int volumes_stage(struct volumes *v, const struct use_request *q, struct error **err)
{
	CLEANUP(free_charp) char *at = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(params_done) struct volume_params context = {0};
	CLEANUP(params_done) struct volume_params params = {0};

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (params_parse(PARAMS_CONTEXT, q->context, &context, err) < 0)
		return -1;
	if (path_canonical(v->roots, q->staging_path, &at, err) < 0)
		return err_wrap(err, "staging path");
	if (volumes_lock_ready(v, q->handle, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	if (volumes_check_use(r, q->access_mode, &params, err) < 0)
		return -1;
	if (refuse_other_kind(r, &params, &context, err) < 0)
		return -1;
	if (volumes_settle_growth(v, r, err) < 0)
		return -1;
	volumes_note_claim(v, r, q->context);
	const struct attachment_request wanted = {
		.kind = q->block ? ATTACHMENT_STAGED_NODE : ATTACHMENT_STAGED,
		.requested_path = q->staging_path,
		.canonical_path = at,
		.use = q,
		.params = &params};
	return r->direct ? volumes_stage_direct(v, r, &wanted, err) : volumes_attach(v, r, &wanted, err);
}

/* A volume that is only partly created, or being erased, is staged nowhere; one without a record may be. */
static bool may_be_staged(struct volumes *v, const char *id, const struct volume_record *r)
{
	return r ? volume_record_is_volume(r) : volumes_may_exist_unrecorded(v, id);
}

/* The record may have changed or gone while the lock was waited for. @ret: of a volume that is ready; NULL:
 * there is none that can be read */
static int lock_staged(struct volumes *v, const char *handle, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = records_find(v->records, handle);
	const char *id = known ? known->id : handle;

	if (!may_be_staged(v, id, known))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	if (volume_lock(v->locks, id, /* wait_ms= */ 0, ret_lock, err) < 0)
		return -1;
	*ret = records_find(v->records, id);
	if (!may_be_staged(v, id, *ret))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	return 0;
}

/* The Go driver recorded no path. */
static void note_unstaged(
	struct volumes *v, struct volume_record *r, const struct volume_change *change, bool detached)
{
	if (str_eq(r->staging_path, change->staging)) {
		free(TAKE_PTR(r->staging_path));
		strv_free(TAKE_PTR(r->staged_flags));
		free(TAKE_PTR(r->staged_usage));
		r->staged_block = false;
		volumes_save_detached(v, r);
	} else if (!detached) {
		return;
	}
	volumes_log_change(v, r, change);
}

int volumes_unstage(struct volumes *v, const char *handle, const char *staging_path, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(free_charp) char *at = NULL;
	bool detached;

	if (path_canonical(v->roots, staging_path, &at, err) < 0)
		return err_wrap(err, "staging path");
	const struct volume_change change = {
		.what = "volume unstaged", .staging = at, .begun_ns = clock_ns()};
	if (lock_staged(v, handle, &lock, &r, err) < 0)
		return -1;
	const char *id = r ? r->id : handle;
	if (volumes_detach(v, id, r, at, &detached, err) < 0)
		return err_wrap(err, "unstage volume %s", id);
	if (r)
		note_unstaged(v, r, &change, detached);
	else if (detached)
		log_warn("volume without a readable record is unstaged", F_STR("volume", id),
			F_STR("path", at));
	return 0;
}

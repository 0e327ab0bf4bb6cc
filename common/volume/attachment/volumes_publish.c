/* SPDX-License-Identifier: Apache-2.0 */
/* NodePublish/NodeUnpublish: the staged file system, or the device's node, shown at a pod's path. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/mount_table.h"
#include "os/paths.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/kata.h"
#include "volume/direct/volumes_direct.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

struct publication {
	char *staging; /* canonical */
	char *target;  /* canonical */
};

static void publication_done(struct publication *p)
{
	free(p->staging);
	free(p->target);
}

static int check_request(
	struct volumes *v, const struct use_request *q, struct publication *p, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};

	if (params_parse(PARAMS_CONTEXT, q->context, &params, err) < 0)
		return -1;
	if (str_empty(q->staging_path))
		return err_set(
			err, ERR_PRECONDITION, "staging_target_path is missing: the volume must be staged");
	if (path_canonical(v->roots, q->staging_path, &p->staging, err) < 0)
		return err_wrap(err, "staging path");
	if (path_canonical(v->roots, q->target_path, &p->target, err) < 0)
		return err_wrap(err, "target path");
	if (str_eq(p->staging, p->target))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "target_path is staging_target_path: %s", p->target);
	return 0;
}

/* By the context's word. Kubernetes before 1.16 says nothing: what is neither known nor staged, and comes
 * with a size, must be one. */
static int is_inline(struct volumes *v, const struct use_request *q, bool *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = NULL;
	bool said;

	if (params_say_inline(q->context, &said, ret, err) < 0)
		return -1;
	if (said || !str_empty(q->staging_path) || !params_look_inline(q->context))
		return 0;
	known = records_find(v->records, q->handle);
	if (!known)
		known = records_find_name(v->records, q->handle);
	*ret = !known || volume_record_is_inline(known);
	return 0;
}

/* Before the volume is locked, since that may wait for another program. */
static int ask_for_pod(struct volumes *v, const struct use_request *q, bool *ret_guest,
	struct direct_pod *ret_pod, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, q->handle);

	if (r && r->direct)
		return volumes_find_fs_group(v, q, ret_pod, err);
	return r && kata_has_image(r) ? volumes_find_runtime(v, q, ret_guest, err) : 0;
}

int volumes_publish(struct volumes *v, const struct use_request *q, struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(publication_done) struct publication p = {0};
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(claim_done) struct volume_claim claim = {0};
	CLEANUP(direct_pod_done) struct direct_pod pod = {0};
	bool ephemeral;
	bool guest = true;

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (is_inline(v, q, &ephemeral, err) < 0)
		return -1;
	if (ephemeral)
		return volumes_publish_inline(v, q, err);
	if (check_request(v, q, &p, err) < 0)
		return -1;
	if (ask_for_pod(v, q, &guest, &pod, err) < 0)
		return -1;
	if (volumes_lock_ready(v, q->handle, PUBLISH_WAIT_MS, &lock, &r, err) < 0)
		return -1;
	if (volumes_check_use(r, q->access_mode, &params, err) < 0)
		return -1;
	volumes_note_claim(v, r, q->context);
	claim_read(q->context, CLAIM_POD, &claim);
	const struct attachment_request wanted = {
		.kind = q->block ? ATTACHMENT_TARGET_NODE : ATTACHMENT_TARGET,
		.requested_path = q->target_path,
		.canonical_path = p.target,
		.canonical_staging_path = p.staging,
		/* the Go driver did not look at the mode */
		.readonly = q->readonly ||
			    (access_mode_is_reader(q->access_mode) && !volume_record_is_taken_over(r)),
		.use = q,
		.params = &params,
		.claim = &claim};
	if (r->direct)
		return volumes_publish_direct(v, r, &wanted, &pod, err);
	if (params.kata_containers)
		return volumes_publish_kata(v, r, &wanted, guest, err);
	return volumes_attach(v, r, &wanted, err);
}

/* kubelet removes the target, too, and says so when it cannot: that something lies in a folder where nothing
 * is mounted is no reason to hold the volume (pkg/volume/csi/csi_mounter.go, removeMountDir()). */
static int remove_target(struct volumes *v, const char *id, const char *target_path, struct error **err)
{
	if (path_remove(v->roots, target_path, err) == 0)
		return 0;
	if ((*err)->code != ERR_PRECONDITION)
		return -1;
	log_warn("target path stays", F_STR("volume", id), F_STR("path", target_path), F_ERR(*err));
	error_clear(err);
	return 0;
}

/* An unknown volume: nothing to do, unless something is mounted that cannot be attributed to a volume. */
static int unpublish_unknown(struct volumes *v, const char *handle, const char *target_path,
	const char *canonical, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;

	if (mount_table_read(&table, err) < 0)
		return -1;
	if (mount_table_at(table, canonical))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist, but %s is a mount point",
			handle, canonical);
	return remove_target(v, handle, target_path, err);
}

/* An inline volume's handle is its name, in whatever form. */
static struct volume_record *find_published(struct volumes *v, const char *handle)
{
	struct volume_record *r = records_find(v->records, handle);

	if (r)
		return r;
	r = records_find_name(v->records, handle);
	if (r && volume_record_is_inline(r))
		return r;
	volume_record_free(r);
	return NULL;
}

static int take_down(struct volumes *v, struct volume_record *r, const char *target_path, const char *target,
	bool *ret_detached, struct error **err)
{
	if (str_eq(r->staging_path, target))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"volume %s is staged at target_path %s, not published", r->id, target);
	bool is_direct = r->direct && strv_contains(r->targets, target);
	if (is_direct)
		volumes_withdraw_direct(v, r);
	if (volumes_detach(v, r->id, r, target, ret_detached, err) < 0)
		return -1;
	if (remove_target(v, r->id, target_path, err) < 0)
		return -1;
	if (is_direct)
		volumes_remove_direct(v, r);
	return kata_may_have_image(r) ? kata_clean(v, r->id, r, err) : 0;
}

/* Before the start it is unknown whether a handle in no form of ours is an inline volume's. */
static int finish_later(struct volumes *v, const char *handle, struct error **err)
{
	if (volumes_is_ready(v) || volume_id_valid(handle))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"the target of volume %s has been removed; whether the volume has to be deleted is not known "
		"until the driver has started",
		handle);
}

/* A volume of which no record can be read is taken down by what is mounted; it stays for the administrator.
 */
static int unpublish_unrecorded(struct volumes *v, const char *id, const char *handle,
	const char *target_path, const char *target, struct error **err)
{
	bool detached;

	if (volumes_detach(v, id, NULL, target, &detached, err) < 0)
		return err_wrap(err, "unpublish volume %s", id);
	if (detached)
		log_warn("volume without a readable record is unpublished", F_STR("volume", id),
			F_STR("path", target));
	if (remove_target(v, id, target_path, err) < 0 || kata_clean(v, id, /* r= */ NULL, err) < 0)
		return err_wrap(err, "unpublish volume %s", id);
	return finish_later(v, handle, err);
}

/* A volume that is only partly created, or being erased, is mounted nowhere. */
static int unpublish_unready(struct volumes *v, struct volume_lock **lock, struct volume_record *r,
	const char *handle, const char *target_path, const char *target, struct error **err)
{
	if (r && r->phase == PHASE_CREATING && volume_record_is_inline(r) &&
		(volumes_require_ready(v, err) < 0 || volumes_delete_record(v, lock, r, err) < 0))
		return err_wrap(err, "inline volume %s", handle);
	return unpublish_unknown(v, handle, target_path, target, err);
}

static int unpublish_locked(struct volumes *v, struct volume_lock **lock, struct volume_record *r,
	const char *target_path, const char *target, struct error **err)
{
	const struct volume_change change = {
		.what = "volume unpublished", .target = target, .begun_ns = clock_ns()};
	bool ends = volume_record_is_inline(r);
	bool is_recorded = !ends && strv_contains(r->targets, target);
	bool detached;

	if (take_down(v, r, target_path, target, &detached, err) < 0)
		return err_wrap(err, "unpublish volume %s", r->id);
	if (is_recorded) {
		volumes_forget_target(r, target);
		volumes_save_detached(v, r);
	}
	if (is_recorded || detached)
		volumes_log_change(v, r, &change);
	if (!ends)
		return 0;
	return volumes_require_ready(v, err) < 0 ? -1 : volumes_delete_record(v, lock, r, err);
}

/* A volume that is not known yet may be about to be made: the publish that makes it has the lock of the ID
 * that the handle gives. */
static int lock_published(struct volumes *v, const char *id, struct volume_lock **ret_lock,
	struct volume_record **ret, struct error **err)
{
	if (volume_lock(v->locks, id, PUBLISH_WAIT_MS, ret_lock, err) < 0)
		return -1;
	/* it may have changed or gone while we waited, or be there now */
	*ret = records_find(v->records, id);
	return 0;
}

/* The ID of the volume that @handle means. @minted: room for one that is made of it */
static const char *id_of(struct volumes *v, const char *handle, const struct volume_record *known,
	char minted[static VOLUME_ID_MAX + 1])
{
	if (known)
		return known->id;
	if (volume_id_valid(handle) && volumes_may_exist_unrecorded(v, handle))
		return handle;
	volume_id_mint(handle, v->node_id, minted);
	return minted;
}

static bool is_dying(const struct volume_record *known)
{
	return known && (known->phase == PHASE_ERASING ||
				(known->phase == PHASE_CREATING && !volume_record_is_inline(known)));
}

int volumes_unpublish(struct volumes *v, const char *handle, const char *target_path, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(free_charp) char *target = NULL;
	char minted[VOLUME_ID_MAX + 1];

	if (path_canonical(v->roots, target_path, &target, err) < 0)
		return err_wrap(err, "target path");
	known = find_published(v, handle);
	if (is_dying(known))
		return unpublish_unknown(v, handle, target_path, target, err);
	const char *id = id_of(v, handle, known, minted);
	if (lock_published(v, id, &lock, &r, err) < 0)
		return -1;
	if (!r && volumes_may_exist_unrecorded(v, id))
		return unpublish_unrecorded(v, id, handle, target_path, target, err);
	if (!r || !volume_record_is_volume(r) || (!known && !volume_record_is_inline(r)))
		return unpublish_unready(v, &lock, r, handle, target_path, target, err);
	return unpublish_locked(v, &lock, r, target_path, target, err);
}

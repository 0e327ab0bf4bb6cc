/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline ephemeral volumes: made, formatted and mounted by NodePublish, deleted by NodeUnpublish.
 *
 * The handle is a name, from which the ID is minted as in CreateVolume. The record says from the first moment
 * on that the volume is an inline one, and for which target: whatever is cut off, the repeated publish
 * continues it, or unpublish takes it away.
 */
#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/mount_table.h"
#include "os/paths.h"
#include "volume/attachment/allowed_mount_flags.h"
#include "volume/attachment/attachment.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

struct inline_volume {
	char *target; /* canonical */
	const char *fs_type;
	bool guest; /* the pod runs in one */
	struct volume_params params;
};

static void inline_volume_done(struct inline_volume *i)
{
	free(i->target);
	params_done(&i->params);
}

static int check_request(
	struct volumes *v, const struct use_request *q, struct inline_volume *i, struct error **err)
{
	if (params_parse(PARAMS_INLINE, q->context, &i->params, err) < 0)
		return -1;
	if (q->block)
		return err_set(err, ERR_INVALID_ARGUMENT, "an inline volume cannot be a block device");
	i->fs_type = str_empty(q->fs_type) ? VOLUME_DEFAULT_FS : q->fs_type;
	if (!fs_known(i->fs_type))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "file system \"%s\" is neither ext4 nor xfs", i->fs_type);
	if (path_canonical(v->roots, q->target_path, &i->target, err) < 0)
		return err_wrap(err, "target path");
	return 0;
}

/* Checks the request before anything is made. An inline volume that the Go driver made may have properties
 * that are not supported. */
static int check_use(struct volumes *v, const struct use_request *q, const char *fs_type, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find_name(v->records, q->handle);
	CLEANUP(params_done) struct volume_params params = {0};

	if ((!r || !volume_record_is_taken_over(r)) &&
		allowed_mount_flags_check(q->mount_flags, fs_type, err) < 0)
		return -1;
	return r ? volumes_check_use(r, q->access_mode, &params, err) : 0;
}

/* Refuses a second pod for an inline volume: the volume is deleted when either of them ends. */
static int refuse_second(
	struct volumes *v, const struct volume_record *r, const char *target, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;

	if (mount_table_read(&table, err) < 0)
		return -1;
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		const struct mount_entry *e = mount_table_at(table, r->targets[i]);
		CLEANUP(error_freep) struct error *other = NULL;

		if (e && !str_eq(r->targets[i], target) && volumes_require_mount(v, r, e, &other) == 0)
			return err_set(err, ERR_PRECONDITION, "inline volume %s is published at %s already",
				r->id, r->targets[i]);
	}
	return 0;
}

/* kubelet takes most codes for final and forgets the volume, which it then never unpublishes
 * (pkg/volume/csi/csi_client.go, isFinalError()): while the volume is there, the code is another one. */
static int stays(struct error **err, const char *why)
{
	CLEANUP(error_freep) struct error *cause = TAKE_PTR(*err);

	return err_set(err, ERR_UNAVAILABLE, "publishing failed and %s: %s", why, cause->msg);
}

static int mount_at_target(struct volumes *v, struct volume_record *r,
	const struct attachment_request *wanted, const struct inline_volume *i, struct error **err)
{
	return i->params.kata_containers ? volumes_publish_kata_inline(v, r, wanted, i->guest, err)
					 : volumes_attach(v, r, wanted, err);
}

static int mount_or_undo(struct volumes *v, struct volume_lock **lock, struct volume_record *r,
	const struct use_request *q, const struct inline_volume *i, struct error **err)
{
	CLEANUP(error_freep) struct error *undo = NULL;
	const struct attachment_request wanted = {.kind = ATTACHMENT_INLINE,
		.requested_path = q->target_path,
		.canonical_path = i->target,
		.readonly = q->readonly || access_mode_is_reader(q->access_mode),
		.use = q,
		.params = &i->params};
	/* one that a pod has used survives: the node may just have been restarted. The Go driver did not
	 * record whether one has */
	bool unused = r->identity && !r->ever_staged;

	if (mount_at_target(v, r, &wanted, i, err) == 0)
		return 0;
	if (!unused)
		return stays(err, "the volume, which was in use before, stays until it is unpublished");
	if (volumes_delete_record(v, lock, r, &undo) == 0)
		return -1;
	CLEANUP(free_charp) char *why = x_asprintf("could not be undone yet (%s)", undo->msg);
	return stays(err, why);
}

int volumes_publish_inline(struct volumes *v, const struct use_request *q, struct error **err)
{
	CLEANUP(inline_volume_done) struct inline_volume i = {0};
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	if (check_request(v, q, &i, err) < 0)
		return err_wrap(err, "inline volume %s", q->handle);
	if (check_use(v, q, i.fs_type, err) < 0)
		return err_wrap(err, "inline volume %s", q->handle);
	if (i.params.kata_containers && volumes_find_runtime(v, q, &i.guest, err) < 0)
		return err_wrap(err, "inline volume %s", q->handle);
	const struct volume_request create = {.name = q->handle,
		.required_bytes = i.params.size_bytes,
		.fs_type = i.fs_type,
		.mount_flags = q->mount_flags,
		.spans_nodes = access_mode_spans_nodes(q->access_mode),
		.parameters = q->context,
		.inline_target = i.target};
	if (volumes_create_and_lock(v, &create, PUBLISH_WAIT_MS, &lock, &r, err) < 0)
		return err_wrap(err, "inline volume %s", q->handle);
	if (refuse_second(v, r, i.target, err) < 0)
		return -1;
	if (mount_or_undo(v, &lock, r, q, &i, err) < 0)
		return err_wrap(err, "inline volume %s", q->handle);
	return 0;
}

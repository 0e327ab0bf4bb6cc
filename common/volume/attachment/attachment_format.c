/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device is formatted, checked or refused before its file system is mounted. */
#include <sys/stat.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "os/mount_table.h"
#include "volume/attachment/attachment.h"
#include "volume/volumes_private.h"

/* what every CreateVolume has zeroed, also the Go driver's with eraseafter=false */
#define HEAD_BYTES 4096
/* A check of everything, after an error, reads all inodes; a signal in the middle of a repair does harm.
 */
#define FSCK_TIMEOUT_MS 3600000

/* Data in no form that is recognised is data nevertheless. */
static int refuse_data(const struct volume_record *r, const struct device *d, struct error **err)
{
	bool zero;

	if (r->ever_staged)
		return err_set(err, ERR_PRECONDITION,
			"the device was in use before, and no file system is recognised on it now: it is not "
			"formatted again");
	/* a mkfs of ours was begun on a device that held nothing: if it is cut off, what it leaves is not
	 * recognised
	 */
	if (r->fs_uuid || r->formatting)
		return 0;
	if (blockdev_starts_zero(d->path, HEAD_BYTES, &zero, err) < 0)
		return -1;
	if (!zero)
		return err_set(err, ERR_PRECONDITION,
			"the device holds data, and no file system is recognised on it: it is not formatted");
	return 0;
}

/* A mkfs that was started before the driver ended goes on without it, and holds the device. */
static int refuse_held(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (blockdev_open_exclusive(d->path, &fd, err) == 0)
		return device_view_confirm_path(v->device_view, r, d, err);
	if ((*err)->code == ERR_PRECONDITION)
		err_recode(err, ERR_UNAVAILABLE);
	return err_wrap(
		err, "another program holds the device; it may be a mkfs that an earlier call started");
}

/* A direct volume of an earlier version, on which nothing is yet. */
static int clear_raw(struct volumes *v, struct volume_record *r, const struct device *d, struct error **err)
{
	CLEANUP(concurrency_limit_leavep)
	struct concurrency_limit *zeroing = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (!r->direct || r->block_clean)
		return 0;
	if (volumes_enter_zeroing(v, r->id, &zeroing, err) < 0)
		return err_wrap(err, "zero a direct volume");
	volume_lock_set_step(v->locks, r->id, "zeroing its device");
	if (blockdev_open_exclusive(d->path, &fd, err) < 0 || volumes_zero(v, fd, d->size_bytes, err) < 0)
		return -1;
	STEP_POINT("raw-zeroed");
	r->block_clean = true;
	return records_save(v->records, r, err);
}

/* With the UUID in the record, what a mkfs that was cut off leaves can be distinguished from the data of
 * other programs.
 */
static int format(struct volumes *v, struct volume_record *r, const struct device *d, const char *fs_type,
	struct fs_layout layout, struct error **err)
{
	if (!r->fs_uuid || r->formatting) {
		char uuid[UUID_TEXT_LEN + 1];

		uuid_generate_text(uuid);
		free(r->fs_uuid);
		r->fs_uuid = x_strdup(uuid);
		r->formatting = false;
		if (records_save(v->records, r, err) < 0)
			return -1;
	}
	if (refuse_held(v, r, d, err) < 0 || clear_raw(v, r, d, err) < 0)
		return -1;
	volume_lock_set_step(v->locks, r->id, str_eq(fs_type, "xfs") ? "mkfs.xfs" : "mkfs.ext4");
	layout.uuid = r->fs_uuid;
	return fs_make(fs_type, d->path, &layout, v->mkfs_timeout_ms, err);
}

/* Whether what is found is what a mkfs of ours left, and nothing can be in it. Earlier versions recorded only
 * that there was one. */
static int is_unfinished(const struct volume_record *r, const struct device *d, const char *found, bool *ret,
	struct error **err)
{
	struct fs_super super;

	*ret = false;
	if (r->ever_staged || (!r->fs_uuid && !r->formatting) || !fs_known(found))
		return 0;
	if (fs_read_super(found, d->path, &super, err) < 0)
		return -1;
	*ret = super.unused && (r->formatting || str_eq(super.uuid, r->fs_uuid));
	return 0;
}

int volumes_check_fs(struct volumes *v, const struct volume_record *r, const char *device,
	const char *fs_type, struct error **err)
{
	CLEANUP(free_charp) char *verdict = NULL;

	volume_lock_set_step(v->locks, r->id, "checking the file system");
	if (fs_check(fs_type, device, FSCK_TIMEOUT_MS, &verdict, err) < 0)
		return -1;
	if (verdict)
		log_warn("file system was checked before mounting", F_STR("volume", r->id),
			F_STR("device", device), F_STR("verdict", verdict));
	return 0;
}

/* Whether the file system of @e has @uuid. A mount that was made in another mount namespace may name a source
 * that is another device here: then this returns false. */
static bool has_uuid(const struct mount_entry *e, const char *uuid)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct fs_super super;
	struct stat st;

	if (stat(e->source, &st) < 0 || !S_ISBLK(st.st_mode) || st.st_rdev != e->dev)
		return false;
	/* a read would wait in the kernel */
	if (dm_refuse_suspended(e->source, &ignored) < 0)
		return false;
	return fs_read_super(e->fstype, e->source, &super, &ignored) == 0 && str_eq(super.uuid, uuid);
}

static char *describe_twin(
	const struct device *d, const char *uuid, const char *other_id, const struct mount_entry *e)
{
	return x_asprintf(
		"its xfs has the UUID %s, which the xfs of volume %s, mounted at %s, also has; the kernel "
		"mounts only one of them at a time: unstage that volume, or give one of them a UUID of its "
		"own (xfs_admin -U generate %s)",
		uuid, other_id, e->target, d->path);
}

/* fs/xfs/xfs_mount.c, xfs_uuid_mount() */
char *volumes_find_twin(
	struct volumes *v, const char *fs_type, const struct device *d, const struct mount_table *t)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct fs_super super;

	if (!str_eq(fs_type, "xfs") || fs_read_super(fs_type, d->path, &super, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->entries[i];
		/* a device that is not of ours may hang, as one in a network does */
		CLEANUP(free_charp) char *id = records_mounted_at(v->records, e->target, /* but= */ NULL);
		if (id && str_eq(e->fstype, fs_type) && has_uuid(e, super.uuid))
			return describe_twin(d, super.uuid, id, e);
	}
	return NULL;
}

/* A request for another type than that of creation is served while nothing is on the device; copies and later
 * requests go by the record. */
static int record_fs_type(struct volumes *v, struct volume_record *r, const char *fs_type, struct error **err)
{
	if (!r->fs_type || str_eq(r->fs_type, fs_type))
		return 0;
	free(r->fs_type);
	r->fs_type = x_strdup(fs_type);
	return records_save(v->records, r, err);
}

int volumes_prepare_fs(struct volumes *v, struct volume_record *r, const struct device *d,
	const char *fs_type, struct fs_layout layout, bool readonly, struct error **err)
{
	CLEANUP(free_charp) char *found = NULL;
	bool unfinished;

	volume_lock_set_step(v->locks, r->id, "looking at the device");
	if (volumes_recognise(r, d->path, &found, err) < 0)
		return -1;
	if (!*found && refuse_data(r, d, err) < 0)
		return -1;
	if (is_unfinished(r, d, found, &unfinished, err) < 0)
		return -1;
	bool is_made = *found && !unfinished;
	if (is_made && !str_eq(found, fs_type))
		return err_set(err, ERR_EXISTS, "the device holds %s already, not %s", found, fs_type);
	if (record_fs_type(v, r, fs_type, err) < 0)
		return -1;
	if (!is_made)
		return format(v, r, d, fs_type, layout, err);
	return readonly ? 0 : volumes_check_fs(v, r, d->path, fs_type, err);
}

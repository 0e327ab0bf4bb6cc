/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping the processes that write to a volume, while it is copied.
 *
 * The record says so before the file system is frozen, or the device suspended: when the driver dies
 * meanwhile, the next one lets the writers go on.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/copy/fs_detached.h"
#include "os/copy/fs_flush.h"
#include "os/copy/fs_freeze.h"
#include "os/fs.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/kata.h"
#include "volume/volumes_private.h"

/* In memory in any case: another program may freeze the file system next, and that is not to be undone. */
static void clear_mark(struct volumes *v, struct volume_record *r)
{
	CLEANUP(error_freep) struct error *err = NULL;

	r->freezing = false;
	r->suspending = false;
	if (records_save(v->records, r, &err) == 0)
		return;
	records_update_memory(v->records, r);
	log_warn("that the writers of a volume go on is recorded with its next change",
		F_STR("volume", r->id), F_ERR(err));
}

/* One that still is, is thawed by the next refresh. */
static void clear_mark_unless_frozen(struct volumes *v, struct volume_record *r, const struct error *failure)
{
	if (!failure || failure->code != ERR_INTERNAL)
		clear_mark(v, r);
}

bool volumes_copies_go_on(void *user)
{
	struct volumes *v = user;

	return !erase_queue_is_stopping(v->erase_queue);
}

int volumes_pause_writers(struct volumes *v, struct volume_record *r, int dir_fd, uint64_t max_pause_ms,
	struct fs_freeze **ret, struct error **err)
{
	struct fs_freeze *f = NULL;

	r->freezing = true;
	if (records_save(v->records, r, err) < 0) {
		r->freezing = false;
		return -1;
	}
	STEP_POINT("freeze-recorded");
	if (kata_has_image(r))
		kata_flush(v, r);
	/* what is written now is not written while writers stand still */
	(void)STEP("freeze-flush", syncfs(dir_fd));
	uint64_t pause_end_ns = clock_ns() + max_pause_ms * NS_PER_MS;
	if (fs_freeze_begin(dir_fd, (int)max_pause_ms, &f, err) < 0) {
		clear_mark_unless_frozen(v, r, *err);
		return -1;
	}
	STEP_POINT("freeze-begun");
	const struct fs_flush_until until = {
		.deadline_ns = pause_end_ns, .go_on = volumes_copies_go_on, .user = v};
	if (fs_flush_files(dir_fd, &until, /* ret_files= */ NULL, err) == 0) {
		*ret = f;
		return 0;
	}
	CLEANUP(error_freep) struct error *later = NULL;
	uint64_t pause_ns;
	if (volumes_resume_writers(v, r, f, &pause_ns, &later) < 0)
		log_debug("a pause that failed did not end in order", F_STR("volume", r->id), F_ERR(later));
	return -1;
}

int volumes_pause_device(struct volumes *v, struct volume_record *r, dev_t dev, uint64_t max_pause_ms,
	struct fs_freeze **ret, struct error **err)
{
	r->suspending = true;
	if (records_save(v->records, r, err) < 0) {
		r->suspending = false;
		return -1;
	}
	STEP_POINT("suspend-recorded");
	if (fs_freeze_begin_device(dev, (int)max_pause_ms, ret, err) < 0) {
		clear_mark_unless_frozen(v, r, *err);
		return -1;
	}
	STEP_POINT("suspend-begun");
	return 0;
}

/* Since 1970. */
static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

int volumes_resume_writers(struct volumes *v, struct volume_record *r, struct fs_freeze *f,
	uint64_t *ret_pause_ns, struct error **err)
{
	int rc = fs_freeze_end(f, ret_pause_ns, err);

	STEP_POINT("freeze-ended");
	clear_mark_unless_frozen(v, r, rc < 0 ? *err : NULL);
	pthread_mutex_lock(&v->shared.mutex);
	v->copied.pauses++;
	v->copied.pause_ns += *ret_pause_ns;
	copy_reports_pause(&v->copy_reports, r->id, *ret_pause_ns, now_ms());
	pthread_mutex_unlock(&v->shared.mutex);
	volumes_changed(&v->shared);
	return rc;
}

static int thaw_mounted(const struct mount_entry *e, bool *ret_was_frozen, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	return volumes_open_mounted(e, &fd, err) < 0 ? -1 : fs_thaw(fd, ret_was_frozen, err);
}

/* A file system that was unmounted while it was frozen stays frozen, and a further mount shows it. */
static int thaw_unmounted(
	const struct volume_record *r, const char *device, bool *ret_was_frozen, struct error **err)
{
	CLEANUP(free_charp) char *fs_type = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (volumes_recognise(r, device, &fs_type, err) < 0 || fs_open_further(fs_type, device, &fd, err) < 0)
		return -1;
	return fs_thaw(fd, ret_was_frozen, err);
}

static int thaw_device(
	const struct volume_record *r, const char *device, bool *ret_was_frozen, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(error_freep) struct error *hidden = NULL;
	struct blockdev_info info;

	/* each access would wait for the end of that */
	if (dm_refuse_suspended(device, err) < 0)
		return -1;
	if (blockdev_stat(device, &info, err) < 0 || mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *e = blockdev_mount_find_kind(table, info.dev, BLOCKDEV_MOUNT_FS);
	if (e && thaw_mounted(e, ret_was_frozen, &hidden) == 0)
		return 0;
	return thaw_unmounted(r, device, ret_was_frozen, err);
}

static int resume_device(const char *device, bool *ret_was_suspended, struct error **err)
{
	struct blockdev_info info;

	return blockdev_stat(device, &info, err) < 0 ? -1 : dm_resume(info.dev, ret_was_suspended, err);
}

static int thaw(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(device_freep) struct device *d = device_view_seen_device(v->device_view, r);
	bool was_frozen = false;
	bool was_suspended = false;

	if (!d || !d->path)
		return err_set(err, ERR_UNAVAILABLE, "its device is not seen");
	/* only what we have marked: others suspend devices, too */
	if (r->suspending && resume_device(d->path, &was_suspended, err) < 0)
		return -1;
	if (r->freezing && thaw_device(r, d->path, &was_frozen, err) < 0)
		return -1;
	clear_mark(v, r);
	if (was_frozen)
		log_warn("file system was still frozen for a clone that was cut off, and is thawed",
			F_STR("volume", r->id));
	if (was_suspended)
		log_warn("device was still suspended for a clone that was cut off, and is resumed",
			F_STR("volume", r->id));
	return 0;
}

static char **ids_to_thaw(struct volumes *v)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (view.list[i]->freezing || view.list[i]->suspending)
			strv_add(&ids, view.list[i]->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return ids;
}

static void thaw_staged(const char *path)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	bool was_frozen = false;

	if (mount_table_read(&table, &err) < 0)
		return;
	const struct mount_entry *e = mount_table_at(table, path);
	if (e && blockdev_mount_kind(e, e->dev) == BLOCKDEV_MOUNT_FS &&
		thaw_mounted(e, &was_frozen, &err) == 0 && was_frozen)
		log_warn("file system was still frozen for a clone that was cut off, and is thawed",
			F_STR("path", path));
}

/* By the node that a pod has. One that fails is tried again when devices are listed. */
static void resume_published(const char *target)
{
	CLEANUP(error_freep) struct error *err = NULL;
	bool was_suspended = false;
	struct stat st;

	if (stat(target, &st) < 0 || !S_ISBLK(st.st_mode))
		return;
	if (dm_resume(st.st_rdev, &was_suspended, &err) < 0)
		log_warn(
			"device may still be suspended for a clone that was cut off: will try again; if its pods "
			"hang, dmsetup resume on it ends that",
			F_STR("path", target), F_ERR(err));
	else if (was_suspended)
		log_warn("device was still suspended for a clone that was cut off, and is resumed",
			F_STR("path", target));
}

void volumes_thaw_staged(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = ids_to_thaw(v);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, ids[i]);

		if (r && r->freezing && r->staging_path)
			thaw_staged(r->staging_path);
		for (size_t t = 0; r && r->suspending && r->targets && r->targets[t]; t++)
			resume_published(r->targets[t]);
	}
}

static bool is_freezing(void *user, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(user, id);

	return r && (r->freezing || r->suspending);
}

void volumes_thaw_marked(struct volumes *v)
{
	CLEANUP(strv_freep) char **ids = ids_to_thaw(v);

	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(error_freep) struct error *err = NULL;

		if (!volume_lock_if(v->locks, ids[i], is_freezing, v->records, &lock))
			continue;
		r = records_find(v->records, ids[i]);
		if (thaw(v, r, &err) < 0)
			log_warn(
				r->suspending
					? "device may still be suspended for a clone that was cut off: will try again; "
					  "if its pods hang, dmsetup resume on it ends that"
					: "file system may still be frozen for a clone that was cut off: will try again; "
					  "if its pods hang, fsfreeze -u on its staging path thaws it",
				F_STR("volume", ids[i]), F_ERR(err));
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which guests may have the device of a direct volume, and the end of its entry. */
#include <sys/types.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/boot_id.h"
#include "os/mount_table.h"
#include "volume/attachment/attachment.h"
#include "volume/direct/direct_folder.h"
#include "volume/direct/volumes_direct.h"
#include "volume/volumes_private.h"

bool volumes_offers_direct(struct volumes *v, char **ret_why)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (!v->direct_dir)
		(void)err_set(&err, ERR_PRECONDITION, "it is not configured (-directVolumesDir)");
	else if (direct_folder_open(v->direct_dir, /* create= */ true, &fd, &err) == 0)
		return true;
	if (ret_why)
		*ret_why =
			x_asprintf("the folder in which runtimes look for them cannot be used: %s", err->msg);
	return false;
}

/* --- which guests */

static bool runs(const struct volumes *v, const char *sandbox)
{
	return !v->guests || v->guests->runs(v->guests->user, sandbox);
}

/* Opens the folder of entries, for a volume that has an entry. The folder is in memory and disappears with a
 * reboot, as the guests do. If it is missing for another reason, it is made again, which fails in a container
 * that has lost the bind mount of the host's folder. @ret_fd: -1: the node was rebooted since the volume was
 * used */
static int open_folder(struct volumes *v, const struct volume_record *r, int *ret_fd, struct error **err)
{
	CLEANUP(free_charp) char *boot = NULL;

	*ret_fd = -1;
	if (!v->direct_dir)
		return err_set(err, ERR_PRECONDITION,
			"entry %s names the guests of the volume, and -directVolumesDir does not say where it is",
			r->direct_entry);
	if (direct_folder_open(v->direct_dir, /* create= */ false, ret_fd, err) == 0)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	if (boot_id_read(&boot, err) < 0)
		return -1;
	if ((r->sandbox_boot && !str_eq(r->sandbox_boot, boot)) ||
		direct_folder_open(v->direct_dir, /* create= */ true, ret_fd, err) == 0)
		return 0;
	return err_wrap(err, "the folder with entry %s is not seen: set up the component kata again",
		r->direct_entry);
}

/* Adds the sandboxes of the volume's entry that may still run to @all. */
static int add_sandboxes(struct volumes *v, const struct volume_record *r, char ***all, struct error **err)
{
	CLEANUP(strv_freep) char **seen = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (!r->direct_entry)
		return 0;
	if (open_folder(v, r, &fd, err) < 0 ||
		(fd >= 0 && direct_entry_sandboxes(fd, r->direct_entry, &seen, err) < 0))
		return -1;
	for (size_t i = 0; seen && seen[i]; i++) {
		if (!strv_contains(*all, seen[i]) && runs(v, seen[i]))
			strv_add(all, seen[i]);
	}
	return 0;
}

/* Guests end with the node that they run on. @ret: strv */
static int find_sandboxes(struct volumes *v, const struct volume_record *r, char ***ret, struct error **err)
{
	CLEANUP(free_charp) char *boot = NULL;

	if (r->sandboxes && boot_id_read(&boot, err) < 0)
		return -1;
	for (size_t i = 0; r->sandboxes && r->sandboxes[i] && str_eq(r->sandbox_boot, boot); i++) {
		if (runs(v, r->sandboxes[i]))
			strv_add(ret, r->sandboxes[i]);
	}
	return add_sandboxes(v, r, ret, err);
}

static int refuse_sandboxes(struct volumes *v, const struct volume_record *r, struct error **err)
{
	CLEANUP(strv_freep) char **running = NULL;

	if (find_sandboxes(v, r, &running, err) < 0)
		return err_wrap(err, "volume %s: whether a guest uses its device is not known", r->id);
	if (!running)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"volume %s is in use by the guest of sandbox %s, whose runtime still answers", r->id,
		running[0]);
}

int volumes_refuse_process(const struct volume_record *r, const struct device *d, struct error **err)
{
	struct blockdev_info info;
	pid_t pid;

	if (blockdev_stat(d->path, &info, err) < 0 || blockdev_find_user(info.dev, &pid, err) < 0)
		return -1;
	if (pid > 0)
		return err_set(err, ERR_PRECONDITION, "volume %s is in use: process %d has %s open", r->id,
			pid, d->path);
	return dm_wait_unused(d->path, err) < 0 ? err_wrap(err, "volume %s", r->id) : 0;
}

int volumes_refuse_guest(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	struct blockdev_info info;

	if (!r->direct)
		return 0;
	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *target = volumes_direct_target(r, table);
	if (target)
		return err_set(err, ERR_PRECONDITION,
			"volume %s is published at %s already: a guest uses its device", r->id,
			target->target);
	if (refuse_sandboxes(v, r, err) < 0)
		return -1;
	if (!d->path)
		return 0;
	if (blockdev_stat(d->path, &info, err) < 0)
		return -1;
	const struct mount_entry *mounted = blockdev_mount_find(table, info.dev);
	if (mounted)
		return err_set(
			err, ERR_PRECONDITION, "volume %s is in use: mounted at %s", r->id, mounted->target);
	return volumes_refuse_process(r, d, err);
}

/* --- the end of its entry */

void volumes_forget_sandboxes(struct volume_record *r)
{
	strv_free(TAKE_PTR(r->sandboxes));
	free(TAKE_PTR(r->sandbox_boot));
}

/* If this is not durable, the entry stays, and it is tried again. */
static int save_seen(struct volumes *v, const struct volume_record *r, struct error **err)
{
	if (volumes_require_ready(v, err) == 0 && records_save(v->records, r, err) == 0)
		return 0;
	records_update_memory(v->records, r);
	return -1;
}

/* They are recorded before their files, by which they are known, are removed. */
static int note_sandboxes(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(strv_freep) char **running = NULL;
	CLEANUP(free_charp) char *boot = NULL;

	if (find_sandboxes(v, r, &running, err) < 0)
		return -1;
	if (strv_eq(r->sandboxes, running))
		return 0;
	if (running && boot_id_read(&boot, err) < 0)
		return -1;
	/* without guests it stays that of the entry, whose folder may have ended with that boot */
	if (boot) {
		free(r->sandbox_boot);
		r->sandbox_boot = TAKE_PTR(boot);
	}
	strv_free(r->sandboxes);
	r->sandboxes = TAKE_PTR(running);
	return save_seen(v, r, err);
}

/* Earlier versions did not record it. A mount shows that it is this one. */
static int note_boot(struct volumes *v, struct volume_record *r, struct error **err)
{
	if (r->sandbox_boot)
		return 0;
	return boot_id_read(&r->sandbox_boot, err) < 0 ? -1 : save_seen(v, r, err);
}

static void warn_of_entry(const struct volume_record *r, const struct error *err)
{
	log_warn("the entry of a direct volume could not be removed, will try again", F_STR("volume", r->id),
		F_STR("entry", r->direct_entry), F_ERR(err));
}

void volumes_withdraw_direct(struct volumes *v, struct volume_record *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (!r->direct_entry)
		return;
	if (open_folder(v, r, &fd, &err) < 0 ||
		(fd >= 0 && direct_entry_withdraw(fd, r->direct_entry, &err) < 0) ||
		note_sandboxes(v, r, &err) < 0)
		warn_of_entry(r, err);
}

static int remove_entry(struct volumes *v, struct volume_record *r, struct error **err)
{
	CLEANUP(free_charp) char *left = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (open_folder(v, r, &fd, err) < 0)
		return -1;
	if (fd >= 0 && direct_entry_withdraw(fd, r->direct_entry, err) < 0)
		return -1;
	if (note_sandboxes(v, r, err) < 0)
		return -1;
	if (fd >= 0 && direct_entry_remove(fd, r->direct_entry, &left, err) < 0)
		return -1;
	if (left)
		log_warn("the entry of a direct volume stays, since something else is in it",
			F_STR("volume", r->id), F_STR("entry", r->direct_entry), F_STR("name", left));
	return 0;
}

void volumes_remove_direct(struct volumes *v, struct volume_record *r)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (!r->direct_entry)
		return;
	if (remove_entry(v, r, &err) < 0) {
		warn_of_entry(r, err);
		return;
	}
	free(TAKE_PTR(r->direct_entry));
	volumes_save_detached(v, r);
}

/* --- entries of targets that ended otherwise */

static bool has_entry(void *user, const char *id)
{
	struct volumes *v = user;
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, id);

	return r && r->direct_entry;
}

/* Without its lock: nothing is to fail because it is looked at, and each change is checked again under it. */
static bool needs_settling(struct volumes *v, const struct volume_record *r, const struct mount_table *t)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(strv_freep) char **running = NULL;

	if (!volumes_direct_target(r, t) || !r->sandbox_boot)
		return true;
	return find_sandboxes(v, r, &running, &ignored) == 0 && !strv_eq(running, r->sandboxes);
}

static char **ids_with_entry(struct volumes *v)
{
	char **ids = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (view.list[i]->direct_entry)
			strv_add(&ids, view.list[i]->id);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return ids;
}

void volumes_settle_direct_entry(struct volumes *v, struct volume_record *r)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (!r->direct_entry)
		return;
	if (mount_table_read(&table, &err) < 0) {
		warn_of_entry(r, err);
		return;
	}
	if (volumes_direct_target(r, table)) {
		if (note_boot(v, r, &err) < 0 || note_sandboxes(v, r, &err) < 0)
			log_warn("the guests of a direct volume could not be recorded, will try again",
				F_STR("volume", r->id), F_ERR(err));
		return;
	}
	volumes_remove_direct(v, r);
	if (!r->direct_entry)
		log_info("the entry of a direct volume whose target is no mount any more was removed",
			F_STR("volume", r->id));
}

void volumes_settle_direct(struct volumes *v)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(strv_freep) char **ids = ids_with_entry(v);
	CLEANUP(error_freep) struct error *err = NULL;

	if (ids && mount_table_read(&table, &err) < 0) {
		log_warn("it is not known which direct volumes are published, will try again", F_ERR(err));
		return;
	}
	for (size_t i = 0; ids && ids[i]; i++) {
		CLEANUP(volume_record_freep) struct volume_record *seen = records_find(v->records, ids[i]);
		CLEANUP(volume_record_freep) struct volume_record *r = NULL;
		CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;

		if (!seen || !needs_settling(v, seen, table) ||
			!volume_lock_if(v->locks, ids[i], has_entry, v, &lock))
			continue;
		r = records_find(v->records, ids[i]);
		volumes_settle_direct_entry(v, r);
	}
}

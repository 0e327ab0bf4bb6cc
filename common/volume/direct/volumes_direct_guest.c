/* SPDX-License-Identifier: Apache-2.0 */
/* NodeGetVolumeStats and NodeExpandVolume of a direct volume: its file system is mounted in the guest alone.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/copy/fs_detached.h"
#include "os/fs.h"
#include "os/fs_grow.h"
#include "os/mount_table.h"
#include "os/paths.h"
#include "volume/attachment/attachment.h"
#include "volume/direct/direct_folder.h"
#include "volume/direct/volumes_direct.h"
#include "volume/volumes_private.h"

/* Finds the sandbox that uses the volume, which is the one whose runtime answers: IDs of sandboxes that have
 * ended may be there, too. @ret: caller frees. Return: 0, or -1 with ERR_UNAVAILABLE (none does). */
static int find_runtime(struct volumes *v, const struct volume_record *r, char **ret, struct error **err)
{
	CLEANUP(strv_freep) char **seen = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (v->guests && v->direct_dir && r->direct_entry && r->direct_device) {
		if (direct_folder_open(v->direct_dir, /* create= */ false, &fd, err) < 0 ||
			direct_entry_sandboxes(fd, r->direct_entry, &seen, err) < 0)
			return err_recode(err, ERR_UNAVAILABLE);
	}
	for (size_t i = 0; seen && seen[i]; i++) {
		if (v->guests->runs(v->guests->user, seen[i])) {
			*ret = x_strdup(seen[i]);
			return 0;
		}
	}
	return err_set(err, ERR_UNAVAILABLE,
		"no runtime answers that has left its sandbox's ID in the entry of the volume: the guest is not "
		"there yet, or its runtime does not leave it (runtime-rs)");
}

static bool is_at(const struct volume_record *r, const struct mount_entry *target, const char *at)
{
	return target && (str_eq(target->target, at) || str_eq(r->staging_path, at));
}

int volumes_stat_direct(struct volumes *v, const struct volume_record *r, const struct mount_table *t,
	const char *at, struct volume_stats *ret, struct error **err)
{
	CLEANUP(free_charp) char *sandbox = NULL;
	struct volume_stats stats = {0};

	if (!is_at(r, volumes_direct_target(r, t), at))
		return err_set(err, ERR_NOT_FOUND, "direct volume %s is not published at %s", r->id, at);
	if (find_runtime(v, r, &sandbox, err) < 0 ||
		v->guests->stats(v->guests->user, sandbox, r->direct_device, &stats.usage, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	*ret = stats;
	return 0;
}

static void log_growth(struct volumes *v, const struct volume_record *r, const struct device *d,
	const struct fs_growth *g, uint64_t begun_ns)
{
	const struct volume_change change = {.what = "file system of a volume grown",
		.device = d->path,
		.from_bytes = g->from_bytes,
		.begun_ns = begun_ns};

	if (g->to_bytes > g->from_bytes)
		volumes_log_change(v, r, &change);
}

int volumes_grow_unmounted(struct volumes *v, const struct volume_record *r, const struct device *d,
	const char *fs_type, struct error **err)
{
	CLEANUP(error_freep) struct error *busy = NULL;
	uint64_t begun_ns = clock_ns();
	struct fs_growth growth = {0};
	struct fs_super super;
	int dir_fd;

	if (fs_read_super(fs_type, d->path, &super, err) < 0)
		return -1;
	if (super.size_bytes >= d->size_bytes)
		return 0;
	volume_lock_set_step(v->locks, r->id, "growing its file system");
	if (fs_open_detached(fs_type, d->path, /* readonly= */ false, &dir_fd, err) < 0)
		return -1;
	int rc = fs_grow(fs_type, d->path, dir_fd, d->size_bytes, &growth, err);
	if (fs_close_detached(dir_fd, d->path, &busy) < 0 && rc == 0) {
		*err = TAKE_PTR(busy);
		return -1;
	}
	if (rc == 0)
		log_growth(v, r, d, &growth, begun_ns);
	return rc;
}

/* kubelet takes this code for "not while it is in use", and the claim keeps it as the reason. */
static int later(struct error **err)
{
	err_recode(err, ERR_PRECONDITION);
	return err_wrap(err,
		"its device is larger now, and its file system grows when the volume is staged while no guest "
		"uses it");
}

static int ask_to_grow(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	CLEANUP(free_charp) char *sandbox = NULL;

	if (find_runtime(v, r, &sandbox, err) < 0)
		return later(err);
	if (v->guests->resize(v->guests->user, sandbox, r->direct_device, d->size_bytes, err) == 0)
		return 0;
	return (*err)->code == ERR_UNIMPLEMENTED ? later(err) : -1;
}

static int grow_here(
	struct volumes *v, const struct volume_record *r, const struct device *d, struct error **err)
{
	if (volumes_refuse_guest(v, r, d, err) < 0)
		return later(err);
	return volumes_grow_unmounted(v, r, d, r->fs_type ? r->fs_type : VOLUME_DEFAULT_FS, err);
}

int volumes_grow_direct(struct volumes *v, struct volume_lock **lock, const struct volume_record *r,
	const struct device *d, const char *path, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(free_charp) char *at = NULL;

	/* CSI: a path at which the volume is not, is not found, whatever is wrong with it */
	if (path_canonical(v->roots, path, &at, err) < 0)
		return err_recode(err, ERR_NOT_FOUND);
	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *target = volumes_direct_target(r, table);
	if (is_at(r, target, at)) {
		volume_unlock(TAKE_PTR(*lock));
		return ask_to_grow(v, r, d, err);
	}
	if (target || !r->staged_block || !str_eq(r->staging_path, at))
		return err_set(
			err, ERR_NOT_FOUND, "volume %s is neither staged nor published at %s", r->id, at);
	return grow_here(v, r, d, err);
}

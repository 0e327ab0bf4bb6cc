/* SPDX-License-Identifier: Apache-2.0 */
/* NodeGetVolumeStats: how full a volume is, whatever else is done with it. */
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/fs_usage.h"
#include "os/paths.h"
#include "volume/attachment/attachment.h"
#include "volume/direct/volumes_direct.h"
#include "volume/volumes_private.h"

#define TIMEOUT_MS 5000

static int no_mount(const char *id, const char *path, struct error **err)
{
	return err_set(err, ERR_NOT_FOUND, "volume %s is neither staged nor published at %s", id, path);
}

int volumes_mount_usage(struct volumes *v, const struct mount_table *t, const struct mount_entry *e,
	int timeout_ms, struct fs_usage *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	const struct mount_entry *found;

	if (path_open_canonical(e->target, &fd, err) < 0 || mount_table_of(t, fd, &found, err) < 0)
		return -1;
	if (found != e)
		return err_set(err, ERR_NOT_FOUND, "%s is hidden by another mount", e->target);
	return fs_usage_read(v->usage_helpers, fd, e->dev, timeout_ms, ret, err);
}

static int ask(struct volumes *v, const struct volume_record *r, const struct mount_table *t,
	const struct mount_entry *e, struct volume_stats *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = device_view_seen_device(v->device_view, r);
	struct blockdev_info info = {0};

	if (d && d->path && blockdev_stat(d->path, &info, err) < 0)
		error_clear(err);
	if (blockdev_mount_kind(e, info.dev) == BLOCKDEV_MOUNT_NODE) {
		*ret = (struct volume_stats){.block = true, .usage.total_bytes = info.size_bytes};
		return 0;
	}
	if (volumes_require_mount(v, r, e, err) < 0) {
		if ((*err)->code == ERR_PRECONDITION)
			err_recode(err, ERR_NOT_FOUND);
		return -1;
	}
	struct volume_stats stats = {0};
	if (volumes_mount_usage(v, t, e, TIMEOUT_MS, &stats.usage, err) < 0)
		return -1;
	*ret = stats;
	return 0;
}

int volumes_stats(
	struct volumes *v, const char *handle, const char *path, struct volume_stats *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(free_charp) char *canonical = NULL;

	if (volumes_require_ready(v, err) < 0)
		return -1;
	r = records_find(v->records, handle);
	if (!r || !volume_record_is_volume(r))
		return err_set(err, ERR_NOT_FOUND, "volume %s does not exist", handle);
	/* CSI: a path at which the volume is not, is not found, whatever is wrong with it */
	if (path_canonical(v->roots, path, &canonical, err) < 0) {
		error_clear(err);
		return no_mount(r->id, path, err);
	}
	if (mount_table_read(&table, err) < 0)
		return -1;
	const struct mount_entry *e = mount_table_at(table, canonical);
	if (r->direct)
		return volumes_stat_direct(v, r, table, canonical, ret, err);
	if (!e)
		return no_mount(r->id, path, err);
	if (ask(v, r, table, e, ret, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* NodeExpandVolume, and growth when a volume is staged: the file system of a volume grows to the end of its
 * device. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/fs_grow.h"
#include "os/paths.h"
#include "volume/attachment/attachment.h"
#include "volume/direct/volumes_direct.h"
#include "volume/volumes_private.h"

int volumes_open_mounted(const struct mount_entry *e, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int path_fd = -1;
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (path_open_canonical(e->target, &path_fd, err) < 0)
		return -1;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", e->target);
	if (st.st_dev != e->dev)
		return err_set(err, ERR_PRECONDITION, "the mount at %s is hidden by another one", e->target);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int volumes_grow_fs(struct volumes *v, const struct volume_record *r, const struct device *d,
	const struct mount_entry *e, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	struct volume_change change = {.what = "file system expanded",
		.target = e->target,
		.device = d->path,
		.begun_ns = clock_ns()};
	struct blockdev_info info;
	struct fs_growth growth;

	volume_lock_set_step(v->locks, r->id, "growing its file system");
	if (blockdev_stat(d->path, &info, err) < 0 || volumes_open_mounted(e, &fd, err) < 0)
		return -1;
	/* neither beyond what the kernel has, nor beyond what belongs to the volume */
	uint64_t bytes = info.size_bytes < d->size_bytes ? info.size_bytes : d->size_bytes;
	if (fs_grow(e->fstype, d->path, fd, bytes, &growth, err) < 0)
		return -1;
	change.from_bytes = growth.from_bytes;
	if (growth.to_bytes > growth.from_bytes)
		volumes_log_change(v, r, &change);
	return 0;
}

static int no_mount(const struct volume_record *r, const char *path, struct error **err)
{
	return err_set(err, ERR_NOT_FOUND, "volume %s is neither staged nor published at %s", r->id, path);
}

const struct mount_entry *volumes_find_whole_mount(
	const struct mount_table *t, const struct volume_record *r, dev_t dev, bool writable)
{
	const struct mount_entry *found = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->entries[i];

		if (e->dev != dev || (writable && mount_entry_is_readonly(e)) || !str_eq(e->root, "/") ||
			blockdev_mount_kind(e, dev) != BLOCKDEV_MOUNT_FS)
			continue;
		if (!found || str_eq(r->staging_path, e->target))
			found = e;
	}
	return found;
}

/* @dev: of the device, which is another one than that of @at where an image in the volume is mounted */
static int grow_mounted(struct volumes *v, const struct volume_record *r, const struct device *d, dev_t dev,
	const struct mount_table *t, const struct mount_entry *at, struct error **err)
{
	if (volumes_require_mount(v, r, at, err) < 0) {
		if ((*err)->code == ERR_PRECONDITION)
			err_recode(err, ERR_NOT_FOUND);
		return -1;
	}
	/* pods may have it read-only */
	const struct mount_entry *e = volumes_find_whole_mount(t, r, dev, /* writable= */ true);
	if (!e)
		return err_set(err, ERR_PRECONDITION,
			"the file system of volume %s is mounted read-only, so it cannot be grown now; it will be "
			"grown when the volume is next staged read-write",
			r->id);
	return volumes_grow_fs(v, r, d, e, err);
}

/* For block access, nothing is mounted where a volume is staged. */
static bool is_staged_node(const struct volume_record *r, const char *canonical)
{
	return r->staged_block && str_eq(r->staging_path, canonical);
}

static int grow_at(struct volumes *v, const struct volume_record *r, const struct device *d,
	const char *requested_path, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(free_charp) char *canonical = NULL;
	struct blockdev_info info;

	/* CSI: a path at which the volume is not, is not found, whatever is wrong with it */
	if (path_canonical(v->roots, requested_path, &canonical, err) < 0) {
		error_clear(err);
		return no_mount(r, requested_path, err);
	}
	if (is_staged_node(r, canonical))
		return 0;
	if (!d->path)
		return no_mount(r, requested_path, err);
	if (blockdev_stat(d->path, &info, err) < 0 || mount_table_read(&table, err) < 0)
		return -1;
	/* lvextend that was cut off behind its change of the metadata leaves that */
	if (info.size_bytes < d->size_bytes)
		return err_set(err, ERR_UNAVAILABLE, "the kernel has %ju of the %ju bytes of %s",
			(uintmax_t)info.size_bytes, (uintmax_t)d->size_bytes, d->path);
	const struct mount_entry *e = mount_table_at(table, canonical);
	if (!e)
		return no_mount(r, requested_path, err);
	if (blockdev_mount_kind(e, info.dev) == BLOCKDEV_MOUNT_NODE)
		return 0;
	return grow_mounted(v, r, d, info.dev, table, e, err);
}

static int check_range(const struct volume_record *r, const struct node_expand_request *q, struct error **err)
{
	if (q->required_bytes > r->size_bytes)
		return err_set(err, ERR_RANGE,
			"the device of volume %s has %ju bytes, and %ju are required: ControllerExpandVolume, which "
			"makes it larger, comes first",
			r->id, (uintmax_t)r->size_bytes, (uintmax_t)q->required_bytes);
	if (q->limit_bytes > 0 && r->size_bytes > q->limit_bytes)
		return err_set(err, ERR_RANGE,
			"the device of volume %s has %ju bytes, which is more than limit_bytes", r->id,
			(uintmax_t)r->size_bytes);
	return 0;
}

int volumes_node_expand(
	struct volumes *v, const struct node_expand_request *q, uint64_t *ret_size_bytes, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(device_freep) struct device *d = NULL;

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (volumes_lock_ready(v, q->handle, PUBLISH_WAIT_MS, &lock, &r, err) < 0)
		return -1;
	if (volumes_settle_growth(v, r, err) < 0 ||
		device_view_require_content(v->device_view, r, &d, err) < 0)
		return -1;
	if (r->direct ? volumes_grow_direct(v, &lock, r, d, q->path, err) < 0
		      : grow_at(v, r, d, q->path, err) < 0)
		return err_wrap(err, "expand volume %s", r->id);
	if (check_range(r, q, err) < 0)
		return -1;
	*ret_size_bytes = d->size_bytes;
	return 0;
}

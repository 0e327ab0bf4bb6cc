/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a mount belongs to a volume, or forbids a use of it; and unmounting. */
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/blockdev_mounts.h"
#include "os/mount.h"
#include "os/paths.h"
#include "volume/attachment/attachment.h"
#include "volume/attachment/kata.h"
#include "volume/direct/volumes_direct.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

/* The file system of a block device, or the node of one. */
static bool is_of_block_device(const struct mount_entry *e)
{
	CLEANUP(free_charp) char *sysfs = x_asprintf("/sys/dev/block/%u:%u", major(e->dev), minor(e->dev));
	struct stat st;

	return access(sysfs, F_OK) == 0 || (lstat(e->target, &st) == 0 && S_ISBLK(st.st_mode));
}

/* Paths of the devices that were seen of other volumes. Return: strv */
static char **other_devices(struct volumes *v, const char *id)
{
	char **paths = NULL;

	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	for (size_t i = 0; seen && i < seen->n_devices; i++) {
		const struct device *d = &seen->devices[i];

		if (d->path && !str_eq(d->id, id))
			strv_add(&paths, d->path);
	}
	pthread_mutex_unlock(&v->shared.mutex);
	return paths;
}

static bool is_of_another(struct volumes *v, const char *id, const struct mount_entry *e)
{
	CLEANUP(strv_freep) char **paths = other_devices(v, id);
	CLEANUP(free_charp) char *other = NULL;

	for (size_t i = 0; paths && paths[i]; i++) {
		CLEANUP(error_freep) struct error *ignored = NULL;
		struct blockdev_info info;

		if (blockdev_stat(paths[i], &info, &ignored) == 0 &&
			blockdev_mount_kind(e, info.dev) != BLOCKDEV_MOUNT_NONE)
			return true;
	}
	other = records_mounted_at(v->records, e->target, /* but= */ id);
	return other != NULL;
}

/* @ret_known: false: the device cannot be seen. Return: 0, or -1 as blockdev_stat(). */
static int is_device_of(
	const struct device *d, const struct mount_entry *e, bool *ret_known, bool *ret, struct error **err)
{
	struct blockdev_info info;

	*ret_known = false;
	if (!d || !d->path)
		return 0;
	if (blockdev_stat_if_there(d->path, &info, ret_known, err) < 0)
		return -1;
	if (*ret_known)
		*ret = blockdev_mount_kind(e, info.dev) != BLOCKDEV_MOUNT_NONE;
	return 0;
}

/* Whether what is mounted at a path belongs to @r. A missing device is known by the path recorded; the Go
 * driver recorded none. */
static int is_mount_of(struct volumes *v, const struct volume_record *r, const struct mount_entry *e,
	bool *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = device_view_seen_device(v->device_view, r);
	bool known;

	*ret = volumes_is_direct_mount(r->id, e);
	if (*ret)
		return 0;
	if (kata_may_have_image(r) && kata_is_loop(v, r->id, r, e->dev, ret, err) < 0)
		return -1;
	if (*ret)
		return 0;
	if (is_device_of(d, e, &known, ret, err) < 0)
		return -1;
	if (known)
		return 0;
	*ret = str_eq(r->staging_path, e->target) || strv_contains(r->targets, e->target) ||
	       (volume_record_is_taken_over(r) && is_of_block_device(e) && !is_of_another(v, r->id, e));
	return 0;
}

/* The same of a volume without a record that can be read. */
static int is_mount_of_stranger(
	struct volumes *v, const char *id, const struct mount_entry *e, bool *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = device_view_seen_as(v->device_view, id);
	bool known;

	*ret = volumes_is_direct_mount(id, e);
	if (*ret)
		return 0;
	if (kata_is_loop(v, id, /* r= */ NULL, e->dev, ret, err) < 0)
		return -1;
	if (*ret)
		return 0;
	if (is_device_of(d, e, &known, ret, err) < 0)
		return -1;
	if (!known)
		*ret = is_of_block_device(e) && !is_of_another(v, id, e);
	return 0;
}

static int something_else(const char *id, const struct mount_entry *e, struct error **err)
{
	return err_set(
		err, ERR_PRECONDITION, "something other than volume %s is mounted at %s", id, e->target);
}

int volumes_require_mount(
	struct volumes *v, const struct volume_record *r, const struct mount_entry *e, struct error **err)
{
	bool ours;

	if (is_mount_of(v, r, e, &ours, err) < 0)
		return -1;
	return ours ? 0 : something_else(r->id, e, err);
}

int volumes_check_use(const struct volume_record *r, enum access_mode mode, struct volume_params *ret_params,
	struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};

	if (params_parse(PARAMS_STATE, &r->parameters, &params, err) < 0)
		return err_wrap(err, "state of volume %s", r->id);
	if (access_check(access_mode_spans_nodes(mode), params.is_cache || volume_record_is_taken_over(r),
		    err) < 0)
		return err_wrap(err, "volume %s", r->id);
	*ret_params = params;
	params = (struct volume_params){0};
	return 0;
}

void volumes_forget_target(struct volume_record *r, const char *target)
{
	char **rest = NULL;

	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (!str_eq(r->targets[i], target))
			strv_add(&rest, r->targets[i]);
	}
	strv_free(r->targets);
	r->targets = rest;
}

int volumes_open_if_exists(const char *at, int *ret_fd, struct error **err)
{
	if (path_open_canonical(at, ret_fd, err) == 0)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	return 0;
}

/* Finds the mount at @at. If the path leads to no mount and the table has one at @at, that mount is hidden by
 * another one. The descriptor is closed again: it would keep the mount busy. */
static int find_mount(
	const char *at, struct mount_table **ret_table, const struct mount_entry **ret, struct error **err)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(fd_closep) int fd = -1;
	const struct mount_entry *e = NULL;

	if (volumes_open_if_exists(at, &fd, err) < 0) {
		/* a link on the way leads to no mount of ours */
		if ((*err)->code != ERR_INVALID_ARGUMENT)
			return -1;
		error_clear(err);
	}
	if (mount_table_read(&table, err) < 0)
		return -1;
	if (fd >= 0 && mount_table_of(table, fd, &e, err) < 0)
		return -1;
	*ret = e && str_eq(e->target, at) ? e : NULL;
	if (!*ret && mount_table_at(table, at))
		return err_set(err, ERR_PRECONDITION, "the mount at %s is hidden by another one, at %s", at,
			e ? e->target : "a folder above");
	*ret_table = TAKE_PTR(table);
	return 0;
}

static int require_own(struct volumes *v, const char *id, const struct volume_record *r,
	const struct mount_entry *e, struct error **err)
{
	bool ours;

	if (r)
		return volumes_require_mount(v, r, e, err);
	if (is_mount_of_stranger(v, id, e, &ours, err) < 0)
		return -1;
	return ours ? 0 : something_else(id, e, err);
}

int volumes_detach(struct volumes *v, const char *id, const struct volume_record *r, const char *at,
	bool *ret, struct error **err)
{
	bool was_mounted = false;

	volume_lock_set_step(v->locks, id, "unmounting");
	for (;;) {
		CLEANUP(mount_table_freep) struct mount_table *table = NULL;
		const struct mount_entry *e;

		if (find_mount(at, &table, &e, err) < 0)
			return -1;
		if (!e) {
			*ret = was_mounted;
			return 0;
		}
		if (require_own(v, id, r, e, err) < 0)
			return -1;
		if (mount_remove(at, err) < 0)
			return -1;
		was_mounted = true;
	}
}

void volumes_save_detached(struct volumes *v, const struct volume_record *r)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (volumes_is_ready(v) && records_save(v->records, r, &err) == 0)
		return;
	records_update_memory(v->records, r);
	log_warn("volume was unmounted, but that could not be recorded", F_STR("volume", r->id),
		err ? F_ERR(err) : F_STR("reason", "the driver is still starting"));
}

/* Whether a mount belongs to a volume, or forbids a use of it; and unmounting. */
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/mount.h"
#include "os/mount_shown.h"
#include "volume/kata.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

/* Whether what is mounted at a path belongs to @r; a missing device is known by the path recorded. */
static int is_mount_of(struct volumes *v, const struct volume_record *r, const struct mount_entry *e,
	bool *ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = volumes_seen_device(v, r);
	struct blockdev_info info;

	*ret = false;
	if (kata_has_image(r) && kata_is_loop(v->state_path, r, e->dev, ret, err) < 0)
		return -1;
	if (*ret)
		return 0;
	if (d && d->path) {
		if (blockdev_stat(d->path, &info, err) == 0) {
			*ret = mount_shown(e, info.dev) != MOUNT_SHOWN_NOT;
			return 0;
		}
		if ((*err)->code != ERR_NOT_FOUND && (*err)->code != ERR_PRECONDITION)
			return -1;
		error_clear(err);
	}
	*ret = str_eq(r->staging_path, e->target) || strv_contains(r->targets, e->target);
	return 0;
}

int volumes_require_mount(
	struct volumes *v, const struct volume_record *r, const struct mount_entry *e, struct error **err)
{
	bool ours;

	if (is_mount_of(v, r, e, &ours, err) < 0)
		return -1;
	if (!ours)
		return err_set(err, ERR_PRECONDITION, "something else than volume %s is mounted at %s", r->id,
			e->target);
	return 0;
}

int volumes_check_use(const struct volume_record *r, enum access_mode mode, struct volume_params *ret_params,
	struct error **err)
{
	CLEANUP(params_done) struct volume_params params = {0};

	if (params_parse(PARAMS_STATE, &r->parameters, &params, err) < 0)
		return err_wrap(err, "state of volume %s", r->id);
	if (params.kata_containers)
		return err_set(err, ERR_PRECONDITION,
			"volume %s is for Kata Containers, which is not supported", r->id);
	if (access_check(access_mode_spans_nodes(mode), params.is_cache, err) < 0)
		return err_wrap(err, "volume %s", r->id);
	*ret_params = params;
	params = (struct volume_params){0};
	return 0;
}

int volumes_check_block(
	const struct volume_record *r, const struct mount_table *table, dev_t dev, struct error **err)
{
	const struct mount_entry *mounted = mount_shown_as(table, dev, MOUNT_SHOWN_FS);

	if (!volumes_may_be_block(r))
		return err_set(err, ERR_PRECONDITION,
			"volume %s was not made as a block device: content of others may be left on it",
			r->id);
	if (mounted)
		return err_set(err, ERR_PRECONDITION,
			"the file system of volume %s is mounted at %s: it cannot be a block device "
			"meanwhile",
			r->id, mounted->target);
	return 0;
}

static size_t count_at(const struct mount_table *table, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < table->n; i++)
		n += str_eq(table->entries[i].target, path);
	return n;
}

int volumes_unmount(struct volumes *v, const struct volume_record *r, const char *path, struct error **err)
{
	volumes_say(v, r->id, "unmounting");
	for (size_t n_before = SIZE_MAX;;) {
		CLEANUP(mount_table_freep) struct mount_table *table = NULL;

		if (mount_table_read(&table, err) < 0)
			return -1;
		const struct mount_entry *e = mount_table_at(table, path);
		if (!e)
			return 0;
		/* The table shows also what lies under a mount on a folder above, where no path leads. */
		if (count_at(table, path) >= n_before)
			return err_set(
				err, ERR_PRECONDITION, "the mount at %s is hidden by another one", path);
		n_before = count_at(table, path);
		if (volumes_require_mount(v, r, e, err) < 0)
			return -1;
		if (mount_remove(path, err) < 0)
			return -1;
	}
}

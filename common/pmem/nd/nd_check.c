/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies in sysfs that the kernel did what was requested: a context of libndctl shows only what it has set
 * itself. */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/nd/nd_private.h"
#include "pmem/zero_range.h"

#define BLOCK_DEV_TIMEOUT_MS 5000
#define END_BYTES            (4ULL << 20)

int nd_check_writable(const char *device, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/", device);
	struct statvfs fs;

	if (statvfs(path, &fs) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "%s", path);
	if (fs.f_flag & ST_RDONLY)
		/* not a fault of the request, which has to be repeated when the pod is set up correctly */
		return err_set(err, ERR_UNAVAILABLE,
			"/sys is mounted read-only, but creating namespaces requires writing there; the "
			"container must be privileged");
	return 0;
}

/* @ret: the device on the nd bus, such as "pfn0.1", behind a block device; caller frees. */
static int read_front(const char *block_path, char **ret, struct error **err)
{
	const char *slash = strrchr(block_path, '/');
	CLEANUP(free_charp)
	char *path = x_asprintf("/sys/class/block/%s/device", slash ? slash + 1 : block_path);
	CLEANUP(free_charp) char *target = NULL;

	if (nd_link(path, &target, err) < 0)
		return -1;
	const char *name = strrchr(target, '/');
	*ret = x_strdup(name ? name + 1 : target);
	return 0;
}

/* @ret: the uuid of the namespace behind a block device, "" when it has none; caller frees. */
static int read_uuid_behind(const char *block_path, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *front = NULL;
	CLEANUP(free_charp) char *dev = NULL;

	if (read_front(block_path, &front, err) < 0)
		return -1;
	if (str_starts(front, "namespace"))
		return nd_attr(front, "uuid", ret, err);
	if (nd_attr(front, "namespace", &dev, err) < 0)
		return -1;
	return nd_attr(dev, "uuid", ret, err);
}

int nd_confirm_read(const char *block_path, const char *uuid, struct error **err)
{
	CLEANUP(free_charp) char *found = NULL;

	if (read_uuid_behind(block_path, &found, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(
			err, "cannot confirm that %s is the device of namespace %s", block_path, uuid);
	}
	if (!str_empty(found) && str_eq(found, uuid))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "%s is not the device of namespace %s", block_path, uuid);
}

/* @uuid: or NULL, then @dev counts. Return: NULL when there is none. */
static const struct nd_namespace *find(const struct nd_inventory *inv, const char *uuid, const char *dev)
{
	for (size_t i = 0; i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];
		for (size_t k = 0; k < r->n_namespaces; k++) {
			const struct nd_namespace *ns = &r->namespaces[k];
			if (uuid ? *uuid && str_eq(ns->uuid, uuid) : str_eq(ns->dev, dev))
				return ns;
		}
	}
	return NULL;
}

int nd_read_one(const char *uuid, const char *dev, struct nd_namespace **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

	if (nd_list_read(&inv, err) < 0)
		return -1;
	const struct nd_namespace *ns = find(inv, uuid, dev);
	*ret = ns ? nd_namespace_dup(ns) : NULL;
	return 0;
}

static int verify(const struct nd_spec *spec, const struct nd_namespace *ns, struct error **err)
{
	if (!ns)
		return err_set(err, ERR_INTERNAL, "the new namespace does not exist");
	if (!str_eq(ns->name, spec->label) || ns->raw_bytes != spec->raw_bytes)
		return err_set(err, ERR_INTERNAL, "%s has name \"%s\" and %ju bytes instead of what was set",
			ns->dev, ns->name, (uintmax_t)ns->raw_bytes);
	if (!ns->active || ns->mode != spec->mode || !ns->block_path)
		return err_set(err, ERR_INTERNAL, "%s did not become a block device of mode %s", ns->dev,
			nd_mode_name(spec->mode));
	return 0;
}

int nd_open_block_device(const char *path, int *ret_fd, struct error **err)
{
	if (blockdev_wait(path, BLOCK_DEV_TIMEOUT_MS, err) < 0)
		return -1;
	return blockdev_open_exclusive(path, ret_fd, err);
}

/* A second metadata area of LVM begins at the last multiple of the data alignment, 2 MiB in our groups, that
 * leaves it 1 MiB (add_metadata_area_to_pv() of LVM's lib/format_text/format-text.c). */
static int wipe_end(int fd, uint64_t size_bytes, struct error **err)
{
	uint64_t length = size_bytes < END_BYTES ? size_bytes : END_BYTES;

	return blockdev_zero(fd, size_bytes - length, length, err);
}

int nd_wipe_held(int fd, const struct nd_namespace *ns, struct error **err)
{
	if (zero_ends(fd, ns->usable_bytes, err) < 0 || wipe_end(fd, ns->usable_bytes, err) < 0)
		return err_wrap(err, "wipe old signatures");
	/* Partitions of the old content appeared with the device. */
	if (ioctl(fd, BLKRRPART) < 0 && errno != EINVAL)
		return err_set_errno(
			err, ERR_INTERNAL, errno, "drop the old partitions of %s", ns->block_path);
	return 0;
}

int nd_wipe(const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (nd_open_block_device(ns->block_path, &fd, err) < 0)
		return err_wrap(err, "wipe old signatures");
	return nd_wipe_held(fd, ns, err);
}

int nd_check_created(const struct nd_spec *spec, struct nd_namespace **ret, struct nd_inventory **ret_after,
	struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

	if (nd_list_read(&inv, err) < 0)
		return -1;
	const struct nd_namespace *ns = find(inv, spec->uuid, /* dev= */ NULL);
	if (verify(spec, ns, err) < 0 || nd_wipe(ns, err) < 0)
		return -1;
	*ret = nd_namespace_dup(ns);
	*ret_after = TAKE_PTR(inv);
	return 0;
}

int nd_check_gone(const char *uuid, struct nd_inventory **ret_after, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

	if (nd_list_read(&inv, err) < 0)
		return -1;
	const struct nd_namespace *ns = find(inv, uuid, /* dev= */ NULL);
	if (ns)
		return err_set(err, ERR_INTERNAL, "%s still exists after its removal", ns->dev);
	*ret_after = TAKE_PTR(inv);
	return 0;
}

int nd_check_enabled(const char *uuid, struct error **err)
{
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;

	if (nd_read_one(uuid, NULL, &ns, err) < 0)
		return -1;
	if (!ns || !ns->active || !ns->block_path)
		return err_set(err, ERR_INTERNAL, "it did not become a block device");
	return blockdev_wait(ns->block_path, BLOCK_DEV_TIMEOUT_MS, err);
}

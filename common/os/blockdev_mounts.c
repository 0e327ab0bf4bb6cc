/* SPDX-License-Identifier: Apache-2.0 */
#include "os/blockdev_mounts.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

#define DEV_DIR "/dev"

static bool is_node(const char *path, dev_t dev)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == dev;
}

/* A device node stands in devtmpfs, or in a container's own /dev, and only a bind mount shows it alone. */
static bool is_bound_node(const struct mount_entry *e, dev_t dev)
{
	bool in_devtmpfs = str_eq(e->fstype, "devtmpfs");

	if (str_eq(e->root, "/") || (!in_devtmpfs && !str_eq(e->fstype, "tmpfs")))
		return false;
	CLEANUP(free_charp) char *node = in_devtmpfs ? x_asprintf(DEV_DIR "%s", e->root) : NULL;
	return (node && is_node(node, dev)) || is_node(e->target, dev);
}

enum blockdev_mount blockdev_mount_kind(const struct mount_entry *e, dev_t dev)
{
	if (!e)
		return BLOCKDEV_MOUNT_NONE;
	if (e->dev == dev)
		return BLOCKDEV_MOUNT_FS;
	return is_bound_node(e, dev) ? BLOCKDEV_MOUNT_NODE : BLOCKDEV_MOUNT_NONE;
}

const struct mount_entry *blockdev_mount_find(const struct mount_table *t, dev_t dev)
{
	for (size_t i = 0; i < t->n; i++) {
		if (blockdev_mount_kind(&t->entries[i], dev) != BLOCKDEV_MOUNT_NONE)
			return &t->entries[i];
	}
	return NULL;
}

const struct mount_entry *blockdev_mount_find_kind(
	const struct mount_table *t, dev_t dev, enum blockdev_mount kind)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->entries[i];

		/* by the number alone: there may be a node for each volume, and a call for each volume */
		if (kind == BLOCKDEV_MOUNT_FS ? e->dev == dev : blockdev_mount_kind(e, dev) == kind)
			return e;
	}
	return NULL;
}

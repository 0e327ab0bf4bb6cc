/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount_shown.h"

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

enum mount_shown mount_shown(const struct mount_entry *e, dev_t dev)
{
	if (!e)
		return MOUNT_SHOWN_NOT;
	if (e->dev == dev)
		return MOUNT_SHOWN_FS;
	return is_bound_node(e, dev) ? MOUNT_SHOWN_NODE : MOUNT_SHOWN_NOT;
}

const struct mount_entry *mount_shown_any(const struct mount_table *t, dev_t dev)
{
	for (size_t i = 0; i < t->n; i++) {
		if (mount_shown(&t->entries[i], dev) != MOUNT_SHOWN_NOT)
			return &t->entries[i];
	}
	return NULL;
}

const struct mount_entry *mount_shown_as(const struct mount_table *t, dev_t dev, enum mount_shown how)
{
	for (size_t i = 0; i < t->n; i++) {
		if (mount_shown(&t->entries[i], dev) == how)
			return &t->entries[i];
	}
	return NULL;
}

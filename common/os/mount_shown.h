/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_shown.h - which mounts show a block device: its file system, or its node bound to a file.
 *
 * By number, not by name: a device has several nodes where LVM or a container has its own /dev. Threads:
 * safe. Blocks: looks at the mount points of what is bound from a devtmpfs or tmpfs.
 */
#pragma once

#include "os/mount_table.h"

enum mount_shown {
	MOUNT_SHOWN_NOT,
	MOUNT_SHOWN_FS,  /* its file system */
	MOUNT_SHOWN_NODE /* its device node, bound to a file */
};

/**
 * mount_shown() - how a mount shows a block device.
 * @e:   entry of the table of our mount namespace; NULL: none
 * @dev: number of the block device
 *
 * A node that is hidden by another mount is known where it stands in devtmpfs.
 *
 * Return: how.
 */
enum mount_shown mount_shown(const struct mount_entry *e, dev_t dev);

/**
 * mount_shown_any() - the first mount that shows a block device in whatever way.
 * @t:   table of our mount namespace
 * @dev: number of the block device
 *
 * Return: the entry, borrowed, or NULL.
 */
const struct mount_entry *mount_shown_any(const struct mount_table *t, dev_t dev);

/**
 * mount_shown_as() - the first mount that shows a block device in one way.
 * @t:   table of our mount namespace
 * @dev: number of the block device
 * @how: the way
 *
 * Return: the entry, borrowed, or NULL.
 */
const struct mount_entry *mount_shown_as(const struct mount_table *t, dev_t dev, enum mount_shown how);

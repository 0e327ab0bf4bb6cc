/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockdev_mounts.h - which mounts show a block device: its file system, or its node bound to a file.
 *
 * By number, not by name: a device has several nodes if LVM or a container has its own /dev. Threads: safe.
 * Blocks: examines the mount points of nodes that are bound from a devtmpfs or tmpfs, except for the kind FS.
 */
#pragma once

#include "os/mount_table.h"

enum blockdev_mount {
	BLOCKDEV_MOUNT_NONE,
	BLOCKDEV_MOUNT_FS,  /* its file system */
	BLOCKDEV_MOUNT_NODE /* its device node, bound to a file */
};

/**
 * blockdev_mount_kind() - how a mount shows a block device.
 * @e:   entry of the table of our mount namespace; NULL: none
 * @dev: number of the block device
 *
 * A node that is hidden by another mount is recognised if it is in devtmpfs.
 *
 * Return: one of enum blockdev_mount.
 */
enum blockdev_mount blockdev_mount_kind(const struct mount_entry *e, dev_t dev);

/**
 * blockdev_mount_find() - the first mount that shows a block device in any way.
 * @t:   table of our mount namespace
 * @dev: number of the block device
 *
 * Return: the entry, borrowed, or NULL.
 */
const struct mount_entry *blockdev_mount_find(const struct mount_table *t, dev_t dev);

/**
 * blockdev_mount_find_kind() - the first mount that shows a block device in one way.
 * @t:    table of our mount namespace
 * @dev:  number of the block device
 * @kind: which way
 *
 * Return: the entry, borrowed, or NULL.
 */
const struct mount_entry *blockdev_mount_find_kind(
	const struct mount_table *t, dev_t dev, enum blockdev_mount kind);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_table.h - what is mounted, from /proc/self/mountinfo, over libmount. It is read again each time.
 *
 * Threads: safe; a table belongs to one owner. Blocks: reads procfs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct mount_entry {
	uint64_t id;  /* of the mount, while it exists */
	dev_t dev;    /* st_dev of files in it */
	char *root;   /* directory or file of the file system that is visible here ("/" unless bind) */
	char *target; /* mount point */
	char *fstype;
	char *source;     /* as given to mount(2), may be "none" */
	char *options;    /* per-mount options: "rw,noatime" */
	char *fs_options; /* super-block options: "rw,dax=always" */
	bool shared;      /* mounts below it spread to its peers */
};

struct mount_table {
	struct mount_entry *entries; /* in mount order: the last one at a target is on top */
	size_t n;
};

/**
 * mount_table_read() - read the table of our mount namespace.
 * @ret: mount_table_free()
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int mount_table_read(struct mount_table **ret, struct error **err) MUST_CHECK;

/**
 * mount_table_parse() - the same from text, so that tests need no mounts.
 * @text: in the format of proc(5), /proc/pid/mountinfo
 * @ret:  mount_table_free()
 *
 * Return: 0, or -1 with ERR_INTERNAL (a line is malformed).
 */
int mount_table_parse(const char *text, struct mount_table **ret, struct error **err) MUST_CHECK;

/** mount_table_free() - destroy @t; NULL is allowed. */
void mount_table_free(struct mount_table *t);
DEFINE_CLEANUP(struct mount_table *, mount_table_free);

/**
 * mount_table_at() - what is mounted exactly at a path.
 * @target: canonical path
 *
 * Return: the topmost entry, borrowed, or NULL.
 */
const struct mount_entry *mount_table_at(const struct mount_table *t, const char *target);

/**
 * mount_table_of() - the mount in which a descriptor is.
 * @t:   table of our mount namespace, read after the descriptor was opened
 * @fd:  any descriptor, also O_PATH
 * @ret: the entry, borrowed; NULL: the mount is not in the table, for example after it was unmounted
 *
 * By the mount's number, so that it is not misled by a mount that hides another one at the same path. Does
 * not ask the file system, which may be shut down. Source: proc(5), /proc/pid/fdinfo, mnt_id. Return: 0, or
 * -1 with ERR_INTERNAL.
 */
int mount_table_of(
	const struct mount_table *t, int fd, const struct mount_entry **ret, struct error **err) MUST_CHECK;

/**
 * mount_table_propagates() - whether mounts that are made in a folder propagate to other mount namespaces,
 * such as from the driver's container to the host, and from there to the pods.
 * @t:          table of the mount namespace in which they are made
 * @path:       canonical path of the folder
 * @ret_target: target of the mount that decides, borrowed from @t; "/" if no mount of @t shows the folder
 *
 * They do if the mount that shows the folder is shared. Source: mount_namespaces(7), "Shared subtrees".
 */
bool mount_table_propagates(const struct mount_table *t, const char *path, const char **ret_target);

/**
 * mount_entry_has() - whether an option is in force for the mount or its file system.
 * @option: one whole option ("ro", "noatime", "logbufs=8"); "dax" and "dax=always" are the same
 *
 * Return: whether it is there.
 */
bool mount_entry_has(const struct mount_entry *e, const char *option);

/** mount_entry_is_readonly() - whether the mount itself is read-only, whatever its file system is, which an
 * error may have made so ("errors=remount-ro"). */
bool mount_entry_is_readonly(const struct mount_entry *e);

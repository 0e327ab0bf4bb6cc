/*
 * mount_table.h - what is mounted, from /proc/self/mountinfo, over libmount. Truth is read anew each time.
 *
 * Threads: safe; a table belongs to one owner. Blocks: reads procfs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct mount_entry {
	dev_t dev;	   /* st_dev of files in it */
	char *root;	   /* directory or file of the file system that is visible here ("/" unless bind) */
	char *target;	   /* mount point */
	char *fstype;
	char *source;	   /* as given to mount(2), may be "none" */
	char *options;	   /* per-mount options: "rw,noatime" */
	char *fs_options; /* super-block options: "rw,dax=always" */
};

struct mount_table {
	struct mount_entry *entries; /* in mount order: the last one at a target is on top */
	size_t n;
};

/** mount_table_read() - read the table. @ret: mount_table_free(). Return: 0, or -1 with ERR_INTERNAL. */
int mount_table_read(struct mount_table **ret, struct error **err) MUST_CHECK;

/** mount_table_parse() - the same from text in mountinfo's format (tests). */
int mount_table_parse(const char *text, struct mount_table **ret, struct error **err) MUST_CHECK;
void mount_table_free(struct mount_table *t);
DEFINE_CLEANUP(struct mount_table *, mount_table_free);

/** mount_table_at() - topmost entry mounted exactly at @target (canonical path), or NULL. Borrowed. */
const struct mount_entry *mount_table_at(const struct mount_table *t, const char *target);

/** mount_table_uses() - first entry that shows block device @dev: as a mounted file system or as a bound device
 * node (fstype devtmpfs, @root equal to @node_root such as "/dm-3"; may be NULL), or NULL. Borrowed. */
const struct mount_entry *mount_table_uses(const struct mount_table *t, dev_t dev, const char *node_root);

/** mount_entry_has() - whether @option ("ro", "noatime", "dax") is in the mount's or the file system's options;
 * "dax" and "dax=always" are the same. */
bool mount_entry_has(const struct mount_entry *e, const char *option);

/*
 * mount_flags.h - the mount flags that a request may carry; anything else is refused by name.
 *
 * Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct mount_entry;

/** mount_flags_check() - every string of @flags (strv or NULL) is allowed for @fs_type; comma lists are
 * refused. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag up to its "=". */
int mount_flags_check(char *const *flags, const char *fs_type, struct error **err) MUST_CHECK;

/** mount_flag_is_per_mount() - @flag can differ between mounts of one file system, as ro, nosuid, noatime;
 * the others belong to the file system as staged. */
bool mount_flag_is_per_mount(const char *flag);

/** mount_flag_in_force() - whether the mount @e is as @flag wants it. The kernel shows no defaults: one of
 * those is in force when its opposite is not shown. */
bool mount_flag_in_force(const struct mount_entry *e, const char *flag);

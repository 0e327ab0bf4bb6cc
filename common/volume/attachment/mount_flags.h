/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_flags.h - what mount flags ask of a mount, and whether it is as they ask. Which ones a request may
 * carry is decided in allowed_mount_flags.h. Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct mount_entry;
struct volume_record;

/** mount_flag_is_per_mount() - @flag can differ between mounts of one file system, as ro, nosuid, noatime;
 * the others belong to the file system as staged. */
bool mount_flag_is_per_mount(const char *flag);

/** mount_flag_is_no_option() - @flag only takes another one back, or nothing ("defaults", "atime"). */
bool mount_flag_is_no_option(const char *flag);

/** mount_flag_in_force() - whether the mount @e is as @flag wants it. The kernel shows no defaults: one of
 * those is in force when its opposite is not shown. */
bool mount_flag_in_force(const struct mount_entry *e, const char *flag);

/** mount_flags_check_known() - this kernel's @fs_type takes each of @flags (strv or NULL), as far as it says.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag. */
int mount_flags_check_known(char *const *flags, const char *fs_type, struct error **err) MUST_CHECK;

/**
 * mount_flags_fit_kernel() - take those out of @flags (strv), with a warning, that this kernel's @fs_type
 * does not take, if @r was in use before: they worked then, on an older kernel.
 *
 * Return: 0, or -1 as mount_flags_check_known() for a volume that was never used.
 */
int mount_flags_fit_kernel(
	const struct volume_record *r, const char *fs_type, char ***flags, struct error **err) MUST_CHECK;

/* The attributes that can differ between several mounts of one file system. */
struct mount_attributes {
	bool readonly;
	bool nosuid;
	bool nodev;
	bool noexec;
	bool nodiratime;
	enum { ATIME_RELATIVE, ATIME_NEVER, ATIME_STRICT } atime;
};

/** mount_attributes_of_flags() - what @flags (strv or NULL) ask for; where they say nothing, what mount(2)
 * does by itself. If two flags contradict each other, the later one is used. */
struct mount_attributes mount_attributes_of_flags(char *const *flags);

/** mount_attributes_in_force() - what the kernel shows of the mount @e. */
struct mount_attributes mount_attributes_in_force(const struct mount_entry *e);

/**
 * mount_attributes_differ() - where a mount is not as it is wanted, in either direction.
 * @ret_is: what it is, for messages ("noexec")
 * Return: what was wanted in its place ("exec"); NULL: nothing differs. Both are static.
 */
const char *mount_attributes_differ(
	const struct mount_attributes *wanted, const struct mount_attributes *is, const char **ret_is);

/** mount_attributes_to_flags() - add to @out (strv) the flags that set @a. @all: each, whatever it was
 * before; else only what mount(2) does not do by itself. */
void mount_attributes_to_flags(const struct mount_attributes *a, bool all, char ***out);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_flags.h - the mount flags that a request may carry, and what they ask of a mount.
 *
 * Two sets of rules: for volumes of ours a list of what is allowed; for those that the Go driver made, which
 * handed all flags to mount(8) unseen, only what is dangerous is refused. Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct mount_entry;

/** mount_flags_check() - every string of @flags (strv or NULL) is allowed for @fs_type; comma lists are
 * refused. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag up to its "=". */
int mount_flags_check(char *const *flags, const char *fs_type, struct error **err) MUST_CHECK;

/**
 * mount_flags_take_over() - the flags of a volume that the Go driver made, one each, as they may be handed to
 * the kernel: comma lists are taken apart, and what mount(8) keeps to itself ("nofail", "_netdev") is left
 * out.
 * @ret: strv_free()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag: what would turn the mount into something
 * else (bind, remount, propagation), reach another device (journal, log, loop) or stop the node
 * (errors=panic).
 */
int mount_flags_take_over(char *const *flags, char ***ret, struct error **err) MUST_CHECK;

/** mount_flag_is_per_mount() - @flag can differ between mounts of one file system, as ro, nosuid, noatime;
 * the others belong to the file system as staged. */
bool mount_flag_is_per_mount(const char *flag);

/** mount_flag_is_no_option() - @flag only takes another one back, or nothing ("defaults", "atime"). */
bool mount_flag_is_no_option(const char *flag);

/** mount_flag_in_force() - whether the mount @e is as @flag wants it. The kernel shows no defaults: one of
 * those is in force when its opposite is not shown. */
bool mount_flag_in_force(const struct mount_entry *e, const char *flag);

/* What can differ between mounts of one file system. */
struct mount_attributes {
	bool readonly;
	bool nosuid;
	bool nodev;
	bool noexec;
	bool nodiratime;
	enum { ATIME_RELATIVE, ATIME_NEVER, ATIME_STRICT } atime;
};

/** mount_attributes_of_flags() - what @flags (strv or NULL) ask for; where they say nothing, what mount(2)
 * does by itself. Of two that contradict each other the later one counts. */
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

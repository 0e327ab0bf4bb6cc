/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allowed_mount_flags.h - the mount flags that a request may carry.
 *
 * Two sets of rules: for volumes of ours a list of what is allowed; for those that the Go driver made, which
 * handed all flags to mount(8) unseen, only what is dangerous is refused. Threads: safe.
 */
#pragma once

#include "base/error.h"

/** allowed_mount_flags_check() - every string of @flags (strv or NULL) is allowed for @fs_type; comma lists
 * are refused. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag up to its "=". */
int allowed_mount_flags_check(char *const *flags, const char *fs_type, struct error **err) MUST_CHECK;

/**
 * allowed_mount_flags_take_over() - the flags of a volume that the Go driver made, one each, as they may be
 * handed to the kernel: comma lists are taken apart, and what mount(8) keeps to itself ("nofail", "_netdev")
 * is left out.
 * @ret: strv_free()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag: what would turn the mount into something
 * else (bind, remount, propagation), reach another device (journal, log, loop) or stop the node
 * (errors=panic).
 */
int allowed_mount_flags_take_over(char *const *flags, char ***ret, struct error **err) MUST_CHECK;

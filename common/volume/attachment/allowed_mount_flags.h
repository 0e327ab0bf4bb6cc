/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allowed_mount_flags.h - the mount flags that a request may carry.
 *
 * Two sets of rules: for volumes of ours a list of what is allowed; for those that the Go driver made, which
 * handed all flags to mount(8) unseen, only what is dangerous is refused. Threads: safe.
 */
#pragma once

#include "base/error.h"

/**
 * allowed_mount_flags_split() - the flags in @flags (strv or NULL) as the kernel may get them, one each:
 * comma lists are taken apart, and words that mount(8) keeps to itself ("nofail", "_netdev",
 * "x-systemd.automount") are left out. Return: strv_free(); NULL: none is left
 */
char **allowed_mount_flags_split(char *const *flags);

/** allowed_mount_flags_check() - each of @flags, which have been split, is allowed for @fs_type; NULL: for
 * one that the driver makes. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag up to its "=". */
int allowed_mount_flags_check(char *const *flags, const char *fs_type, struct error **err) MUST_CHECK;

/**
 * allowed_mount_flags_check_taken_over() - each of @flags, which have been split, is harmless for a volume
 * that the Go driver made.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag: one that would turn the mount into
 * something else (bind, remount, propagation), reach another device (journal, log, loop) or stop the node
 * (errors=panic).
 */
int allowed_mount_flags_check_taken_over(char *const *flags, struct error **err) MUST_CHECK;

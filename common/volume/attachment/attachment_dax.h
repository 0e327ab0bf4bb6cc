/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attachment_dax.h - whether a volume's file system is mounted with DAX, and whether the kernel did so.
 *
 * On persistent memory, usage=AppDirect requires DAX; on a device that stands in for it, DAX is used if the
 * device supports it. A mount flag of the request that asks for something else ("dax=never") wins. Threads:
 * safe under the volume's lock. Blocks on the device in attachment_dax_check_device().
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "pmem/usage.h"

struct blockdev_info;
struct device;
struct mount_entry;
struct volume_record;
struct volumes;

enum dax_wish {
	DAX_AS_IT_IS, /* FileIO, or the request says something else */
	DAX_IF_THERE, /* a device that stands in for persistent memory */
	DAX_REQUIRED  /* AppDirect on persistent memory */
};

/** attachment_dax_is_flag() - @flag is a mount flag about DAX, whatever it asks for. */
bool attachment_dax_is_flag(const char *flag);

/** attachment_dax_has_flag() - one of @flags (strv or NULL) is about DAX. */
bool attachment_dax_has_flag(char *const *flags);

/** attachment_dax_choose() - what is wanted for a volume. @mode: of the device manager. @flags: mount flags
 * of the request (strv or NULL). */
enum dax_wish attachment_dax_choose(const char *mode, enum volume_usage usage, char *const *flags);

/**
 * attachment_dax_check_device() - a device can be mounted as @wish says. A file system cannot be mounted with
 * DAX if its device has none, and this must be known before anything is written.
 * @d:    device of @r
 * @info: of @d
 *
 * Return: 0, or -1 with ERR_PRECONDITION (no DAX), or as device_view_confirm_path().
 */
int attachment_dax_check_device(enum dax_wish wish, struct volumes *v, const struct volume_record *r,
	const struct device *d, const struct blockdev_info *info, struct error **err) MUST_CHECK;

/** attachment_dax_add_flag() - add to @flags (strv) the mount flag that @wish needs on a device with @info.
 * Return: whether it was added; it is the last one then. */
bool attachment_dax_add_flag(enum dax_wish wish, const struct blockdev_info *info, char ***flags);

/** attachment_dax_check_mount() - the volume @id is mounted as @wish says. @e: its mount. Return: 0, or -1
 * with ERR_PRECONDITION. */
int attachment_dax_check_mount(
	enum dax_wish wish, const char *id, const struct mount_entry *e, struct error **err) MUST_CHECK;

/** attachment_dax_explain() - add to @err why a mount with dax=always has no DAX: what the kernel says, or
 * what can be seen. @info: of the device. @kmsg_fd: kmsg_mark() before the mount. Return: -1. */
int attachment_dax_explain(const struct blockdev_info *info, int kmsg_fd, struct error **err);

/** attachment_dax_warn() - log that the mount @e of the device @d has no DAX, if @wish allows that. */
void attachment_dax_warn(
	enum dax_wish wish, const char *id, const struct device *d, const struct mount_entry *e);

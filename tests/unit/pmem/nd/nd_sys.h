/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_sys.h - a folder in the place of /sys that looks as the kernel's, with one bus of NVDIMMs.
 *
 * Attributes are files: what is written to one stays there, covers only as much of it as it is long, and
 * changes nothing else. To be called in the mount namespace of scratch_enter(). Each function fails the test
 * when it cannot do its work.
 */
#pragma once

#include <stdbool.h>

#include "pmem/nd/nd_sysfs.h"

#define ND_SYS_DRIVER "/sys/bus/nd/drivers/nd_pmem"
#define ND_SYS_BUS    "/sys/devices/ndbus0"
#define ND_SYS_REGION ND_SYS_BUS "/region0"
#define ND_SYS_UUID   "bc4ff49d-4fa1-454c-b3d2-7d0c5cbf7637" /* of each namespace */
#define ND_SYS_NAME   "some"                                 /* likewise */

/** nd_sys_bus() - a new /sys with the bus and the driver of persistent memory. */
void nd_sys_bus(void);

/** nd_sys_region() - an enabled region of 2 GiB. @nstype: "5" with labels, "4" without */
void nd_sys_region(const char *name, const char *nstype);

/** nd_sys_enter() - nd_sys_bus() with region0, which has labels, its module and its idle page map pfn0.1. */
void nd_sys_enter(void);

/** nd_sys_namespace() - a namespace of region0 that is inactive and not held. @class: as holder_class shows
 * it */
void nd_sys_namespace(const char *name, const char *size, const char *class);

/** nd_sys_folder() - a new folder and what is missing above it. */
void nd_sys_folder(const char *path);

/** nd_sys_file() - a file with a line in it, made or replaced. */
void nd_sys_file(const char *folder, const char *name, const char *content);

/** nd_sys_files() - nd_sys_file() of names and contents in turn, ended by NULL. */
void nd_sys_files(const char *folder, ...);

/** nd_sys_device() - an empty device @name in the folder @parent, and its link on the bus. */
void nd_sys_device(const char *parent, const char *name);

/** nd_sys_bind() - the driver of persistent memory has taken the device of @folder. */
void nd_sys_bind(const char *folder);

/** nd_sys_block() - the device of @folder has a block device /dev/@name. */
void nd_sys_block(const char *folder, const char *name, const char *sectors);

/** nd_sys_link() - @folder/@name becomes a link to @target, so that what is written there is read here. */
void nd_sys_link(const char *folder, const char *name, const char *target);

/** nd_sys_begins() - whether the file @folder/@name begins with @text. */
bool nd_sys_begins(const char *folder, const char *name, const char *text);

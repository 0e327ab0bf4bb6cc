/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_sysfs.h - attributes of the devices on the kernel's nd bus; private to the real nd.h, to nd_dimms.h and
 * to pmem/cxl.
 *
 * @device is always a name on that bus, such as "region0". Threads: safe. Blocks: sysfs. Source: the kernel's
 * drivers/nvdimm, Documentation/driver-api/nvdimm/nvdimm.rst.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ND_SYSFS_DEVICES "/sys/bus/nd/devices"

/** nd_attr() - an attribute without its final newline; other newlines are kept, so that a label's name that
 * contains one is not taken for another name. Return: 0, or -1 with ERR_NOT_FOUND, ERR_EXHAUSTED (more than
 * 4 KiB), ERR_INTERNAL. @ret: caller frees. */
int nd_attr(const char *device, const char *attribute, char **ret, struct error **err) MUST_CHECK;

/** nd_attr_number() - an attribute that is a number. Return: 0, or -1 as nd_attr(), ERR_INVALID_ARGUMENT. */
int nd_attr_number(const char *device, const char *attribute, uint64_t *ret, struct error **err) MUST_CHECK;

/** nd_attr_hint() - as nd_attr(), for attributes that not every kernel or device has. Return: "" when it
 * cannot be read; caller frees. */
char *nd_attr_hint(const char *device, const char *attribute);

/** nd_attr_hint_number() - as nd_attr_number(). Return: @otherwise when it cannot be read. */
uint64_t nd_attr_hint_number(const char *device, const char *attribute, uint64_t otherwise);

/** nd_has_word() - whether @word is one of the words of an attribute, between which there are blanks. */
bool nd_has_word(const char *text, const char *word);

/** nd_attr_write() - set an attribute to @text, "" included. Return: 0, or -1 with ERR_EXHAUSTED (no space),
 * ERR_INTERNAL (the kernel refused); os_errno set. */
int nd_attr_write(const char *device, const char *attribute, const char *text, struct error **err) MUST_CHECK;

/** nd_attr_write_number() - nd_attr_write() of a decimal number. */
int nd_attr_write_number(
	const char *device, const char *attribute, uint64_t number, struct error **err) MUST_CHECK;

/** nd_load_driver() - load the module that drives persistent memory; if udev runs, it has already done so
 * when the region appeared. To be called before anything is claimed: the module takes every device that it
 * finds. Idempotent. Blocks up to 30 s for modprobe. Return: 0, or -1 with ERR_UNAVAILABLE. */
int nd_load_driver(struct error **err) MUST_CHECK;

/** nd_wait_probed() - wait until the kernel has registered and probed the devices on @bus ("ndbus0"). Return:
 * 0, or -1 as nd_attr(). */
int nd_wait_probed(const char *bus, struct error **err) MUST_CHECK;

/** nd_bind() - bind @device to the persistent memory driver. Return: 0, or -1 with ERR_INTERNAL (it
 * refused, or is not loaded). */
int nd_bind(const char *device, struct error **err) MUST_CHECK;

/** nd_unbind() - unbind @device from its driver. Return: 0, or -1 with ERR_INTERNAL. */
int nd_unbind(const char *device, struct error **err) MUST_CHECK;

/** nd_attr_names() - names in the folder @folder of a device, none when it is not there. Return: 0, or -1
 * with ERR_INTERNAL. @ret: strv_free(). */
int nd_attr_names(const char *device, const char *folder, char ***ret, struct error **err) MUST_CHECK;

/** nd_link() - what the symbolic link @path of sysfs points to. Return: 0, or -1 with ERR_INTERNAL. @ret:
 * caller frees. */
int nd_link(const char *path, char **ret, struct error **err) MUST_CHECK;

/** nd_parent() - the device that @device is part of: the region of a namespace, the bus of a region. Return:
 * 0, or -1 as nd_link(). @ret: caller frees. */
int nd_parent(const char *device, char **ret, struct error **err) MUST_CHECK;

/** nd_is_bound() - whether a driver has taken @device. */
bool nd_is_bound(const char *device);

/** nd_module_of() - the memory module ("nmem0") behind part @i of @region. Return: "" if the part has no
 * module; caller frees. */
char *nd_module_of(const char *region, unsigned i);

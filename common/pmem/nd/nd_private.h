/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_private.h - the parts of the real nd.h: nd_list.c, nd_create.c and nd_remove.c read and write sysfs,
 * nd_convert.c lets libndctl write what is on the medium, and nd_check.c verifies the result. Threads: the
 * caller holds the locks of nd.h.
 */
#pragma once

#include "pmem/nd/nd.h"
#include "pmem/nd/nd_sysfs.h"

/** nd_list_read() - list all regions and namespaces. Return: 0, or -1 with ERR_UNAVAILABLE (an object could
 * not be read twice; it may exist). @ret: nd_inventory_free(). */
int nd_list_read(struct nd_inventory **ret, struct error **err) MUST_CHECK;

/** nd_confirm_read() - nd_confirm() for the kernel. */
int nd_confirm_read(const char *block_path, const char *uuid, struct error **err) MUST_CHECK;

/** nd_make() - nd_create() without reading back the result. Return: 0, or -1 as nd_create(). */
int nd_make(const struct nd_spec *spec, struct error **err) MUST_CHECK;

/** nd_claim_fsdax() - put a page map on the medium of the inactive namespace @dev and enable it; on failure
 * nothing claims it. Return: 0, or -1 with ERR_UNAVAILABLE (no seed), ERR_EXHAUSTED, ERR_INTERNAL.
 */
int nd_claim_fsdax(const char *dev, struct error **err) MUST_CHECK;

/** nd_disable() - remove the block device of @ns, and the device that was claimed for it. Return: 0, or -1
 * with ERR_PRECONDITION (in use), ERR_DEADLINE (its node does not appear), ERR_INTERNAL. */
int nd_disable(const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_hold() - open the block device of @ns exclusively, if it has one, and let @look decide then. Return: 0,
 * or -1 as nd_open_block_device() and nd_look_at(). @ret_fd: caller closes */
int nd_hold(const struct nd_namespace *ns, const struct nd_look *look, int *ret_fd,
	struct error **err) MUST_CHECK;

/** nd_disable_held() - nd_disable() by a caller that holds the block device: nd_hold(). */
int nd_disable_held(const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_remove() - nd_destroy() without reading back the result. Return: 0, or -1 as nd_destroy(). */
int nd_remove(const char *uuid, const char *name, struct error **err) MUST_CHECK;

/** nd_region_read() - the region @name ("region0") without its namespaces. Return: 0, or -1 with
 * ERR_NOT_FOUND, ERR_INTERNAL. @ret: nd_region_free(). */
int nd_region_read(const char *name, struct nd_region **ret, struct error **err) MUST_CHECK;

/** nd_block_device() - path and size of the block device of @device ("pfn0.1"). @ret_path: NULL when it has
 * none; caller frees. Return: 0, or -1 with ERR_INTERNAL. */
int nd_block_device(const char *device, char **ret_path, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/** nd_convert_enable(), nd_convert_enable_device(), nd_convert_run() - nd_enable(), nd_enable_device() and
 * nd_convert() for the kernel. */
int nd_convert_enable(const char *uuid, const char *name, struct error **err) MUST_CHECK;
int nd_convert_enable_device(const char *dev, struct error **err) MUST_CHECK;
int nd_convert_run(const struct nd_namespace *ns, const struct nd_look *look, struct nd_namespace **ret,
	struct error **err) MUST_CHECK;

/** nd_wipe() - zero the start and the end of the block device of @ns, and make the kernel drop its
 * partitions. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_DEADLINE (no device), ERR_INTERNAL. */
int nd_wipe(const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_wipe_held() - nd_wipe() by a caller that holds the block device as @fd. */
int nd_wipe_held(int fd, const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_check_writable() - check that sysfs can be written to: otherwise every write would fail with EROFS;
 * this error says why.
 * @device: on the bus, such as "region0". Return: 0, or -1 with ERR_UNAVAILABLE, ERR_INTERNAL. */
int nd_check_writable(const char *device, struct error **err) MUST_CHECK;

/** nd_check_created() - check that the namespace that @spec describes exists with these properties, and wipe
 * the start and end of its block device. Return: 0, or -1 with ERR_INTERNAL. @ret: nd_namespace_free();
 * @ret_after: the listing that shows it, nd_inventory_free(). */
int nd_check_created(const struct nd_spec *spec, struct nd_namespace **ret, struct nd_inventory **ret_after,
	struct error **err) MUST_CHECK;

/** nd_read_one() - the namespace that has @uuid or, when that is NULL, is called @dev.
 * @ret: NULL when there is none. Return: 0, or -1 as nd_list_read(). */
int nd_read_one(const char *uuid, const char *dev, struct nd_namespace **ret, struct error **err) MUST_CHECK;

/** nd_check_gone() - check that no namespace has @uuid. Return: 0, or -1 with ERR_INTERNAL. @ret_after: the
 * listing that shows it, nd_inventory_free(). */
int nd_check_gone(const char *uuid, struct nd_inventory **ret_after, struct error **err) MUST_CHECK;

/** nd_check_enabled() - check that the namespace with @uuid is active and has a block device.
 * Return: 0, or -1 with ERR_INTERNAL. */
int nd_check_enabled(const char *uuid, struct error **err) MUST_CHECK;

/** nd_open_block_device() - wait for the node at @path and open it exclusively. Return: 0, or -1 as
 * blockdev_open_exclusive(). */
int nd_open_block_device(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/** nd_seed_align() - the alignment that nd_create() gives a namespace of @region ("region0"): PFN_ALIGN_BYTES
 * if the kernel supports it, else the one that the kernel has set; 0 when that is unknown. */
uint64_t nd_seed_align(const char *region);

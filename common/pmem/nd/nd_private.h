/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_private.h - the parts of the real nd.h: nd_list.c, nd_make.c and nd_remove.c read and write sysfs,
 * nd_convert.c has libndctl assemble what is on the medium, nd_check.c looks whether that has worked.
 * Threads: the caller holds the locks of nd.h.
 */
#pragma once

#include "pmem/nd/nd.h"
#include "pmem/nd/nd_sysfs.h"

/** nd_list_read() - everything there is. Return: 0, or -1 with ERR_UNAVAILABLE
 * (something could not be read, twice: it may exist). @ret: nd_inventory_free(). */
int nd_list_read(struct nd_inventory **ret, struct error **err) MUST_CHECK;

/** nd_confirm_read() - nd_confirm() of the real one. */
int nd_confirm_read(const char *block_path, const char *uuid, struct error **err) MUST_CHECK;

/** nd_make() - nd_create() without reading back the result. Return: 0, or -1 as nd_create(). */
int nd_make(const struct nd_spec *spec, struct error **err) MUST_CHECK;

/** nd_claim_fsdax() - put a page map on the medium of the inactive namespace @dev and enable it; on failure
 * nothing claims it. Return: 0, or -1 with ERR_UNAVAILABLE (no seed), ERR_EXHAUSTED, ERR_INTERNAL.
 */
int nd_claim_fsdax(const char *dev, struct error **err) MUST_CHECK;

/** nd_disable() - take the block device of @ns away, and what is put before it. Return: 0, or -1 with
 * ERR_PRECONDITION (in use), ERR_DEADLINE (its node does not appear), ERR_INTERNAL. */
int nd_disable(const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_remove() - nd_destroy() without reading back the result. Return: 0, or -1 as nd_destroy(). */
int nd_remove(const char *uuid, const char *name, struct error **err) MUST_CHECK;

/** nd_region_read() - the region @name ("region0") without its namespaces. Return: 0, or -1 with
 * ERR_NOT_FOUND, ERR_INTERNAL. @ret: nd_region_free(). */
int nd_region_read(const char *name, struct nd_region **ret, struct error **err) MUST_CHECK;

/** nd_block_device() - path and size of the block device of @device ("pfn0.1"). @ret_path: NULL when it has
 * none; caller frees. Return: 0, or -1 with ERR_INTERNAL. */
int nd_block_device(const char *device, char **ret_path, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/** nd_convert_enable(), nd_convert_wake(), nd_convert_run() - nd_enable(), nd_wake() and nd_convert() of the
 * real one. */
int nd_convert_enable(const char *uuid, const char *name, struct error **err) MUST_CHECK;
int nd_convert_wake(const char *dev, struct error **err) MUST_CHECK;
int nd_convert_run(const struct nd_namespace *ns, struct nd_namespace **ret, struct error **err) MUST_CHECK;

/** nd_wipe() - zero start and end of the block device of @ns, and forget its partitions. Return: 0, or -1
 * with ERR_PRECONDITION (in use), ERR_DEADLINE (no device), ERR_INTERNAL. */
int nd_wipe(const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_check_writable() - that sysfs can be written to: every setter would fail with EROFS, and this says why.
 * @device: on the bus, such as "region0". Return: 0, or -1 with ERR_UNAVAILABLE, ERR_INTERNAL. */
int nd_check_writable(const char *device, struct error **err) MUST_CHECK;

/** nd_check_created() - that the namespace which @spec describes is there as promised, and wipe the start and
 * end of its block device. Return: 0, or -1 with ERR_INTERNAL. @ret: nd_namespace_free(); @ret_after: the
 * listing that shows it, nd_inventory_free(). */
int nd_check_created(const struct nd_spec *spec, struct nd_namespace **ret, struct nd_inventory **ret_after,
	struct error **err) MUST_CHECK;

/** nd_read_one() - the namespace that has @uuid or, when that is NULL, is called @dev.
 * @ret: NULL when there is none. Return: 0, or -1 as nd_list_read(). */
int nd_read_one(const char *uuid, const char *dev, struct nd_namespace **ret, struct error **err) MUST_CHECK;

/** nd_check_gone() - that no namespace bears @uuid. Return: 0, or -1 with ERR_INTERNAL. @ret_after: the
 * listing that shows it, nd_inventory_free(). */
int nd_check_gone(const char *uuid, struct nd_inventory **ret_after, struct error **err) MUST_CHECK;

/** nd_check_enabled() - that the namespace with @uuid is active and has a block device.
 * Return: 0, or -1 with ERR_INTERNAL. */
int nd_check_enabled(const char *uuid, struct error **err) MUST_CHECK;

/** nd_open_block_device() - wait for the node at @path and open it for ourselves alone. Return: 0, or -1 as
 * blockdev_open_exclusive(). */
int nd_open_block_device(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/** nd_seed_align() - the alignment that nd_create() gives a namespace of @region ("region0"): PFN_ALIGN_BYTES
 * if it is offered, else what the kernel has set; 0 when that is unknown. */
uint64_t nd_seed_align(const char *region);

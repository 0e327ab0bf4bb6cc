/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory.h - what there is on a node, put together from several listings: volumes with their devices,
 * pools with their regions. Pure. Threads: none.
 */
#pragma once

#include "inspect/check.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"
#include "volume/presence.h"

#define INVENTORY_UNKNOWN UINT32_MAX

struct inventory_volume {
	enum presence presence;
	const struct device *device;    /* borrowed; NULL: not there */
	const struct device_pool *pool; /* of the device, or as recorded; borrowed; NULL: unknown or absent */
	bool staged;                    /* mounted now where that is recorded */
	uint32_t n_published;           /* recorded targets that are mounts now */
};

/** inventory_volume() - what belongs to @r, a record of @v. */
void inventory_volume(
	const struct check_view *v, const struct volume_record *r, struct inventory_volume *ret);

/** inventory_phase() - "creating", "ready" or "erasing"; for a ready one whose device is not there "missing",
 * "gone" or "foreign". */
const char *inventory_phase(const struct volume_record *r, enum presence presence);

struct inventory_counts {
	uint32_t n_volumes;   /* of which there is a state file that can be read */
	uint32_t n_absent;    /* those of them that are ready, and whose device is not there */
	uint32_t n_damaged;   /* whose state file cannot be read */
	uint32_t n_strangers; /* devices of ours without a state file */
};

/** inventory_count() - how many there are of what @v shows. */
void inventory_count(const struct check_view *v, struct inventory_counts *ret);

struct inventory_region {
	uint64_t pool_bytes; /* raw, in our pool namespaces */
	uint32_t n_pool;
	uint64_t volume_bytes; /* raw, in namespaces that are volumes */
	uint32_t n_volumes;
	uint64_t foreign_bytes; /* raw, in all others */
	uint32_t n_foreign;
	uint32_t n_free_extents; /* INVENTORY_UNKNOWN where the kernel does not tell what lies where */
};

/** inventory_region() - whose the namespaces of @region are, by the state that @v has. */
void inventory_region(
	const struct nd_region *region, const struct check_view *v, struct inventory_region *ret);

/** inventory_pool_has() - whether @pool is made of @region: is that region, or has a device on its
 * namespaces. @report: NULL: without LVM */
bool inventory_pool_has(
	const struct device_pool *pool, const struct nd_region *region, const struct lvm_report *report);

/** inventory_erasing() - bytes of devices in @pool whose deletion is not finished. */
uint64_t inventory_erasing(const struct check_view *v, const struct device_pool *pool);

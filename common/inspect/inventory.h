/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory.h - combines several listings of a node: volumes with their devices, pools with their regions.
 * Pure. Threads: none.
 */
#pragma once

#include "inspect/check.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"
#include "volume/presence.h"

#define INVENTORY_UNKNOWN UINT32_MAX

struct inventory_volume {
	enum presence presence;
	const struct device *device;    /* borrowed; NULL: not seen */
	const struct device_pool *pool; /* of the device, or as recorded; borrowed; NULL: unknown or absent */
	bool staged;                    /* mounted at the recorded staging path */
	const char *dax;                /* "no", "yes" (its durability is not known), "synchronous", "fsync";
					 * NULL: its file system is not mounted. Static */
	uint32_t n_published;           /* number of recorded targets that are mounted */
};

/** inventory_volume() - find the device, the pool and the mounts of @r, a record of @v. */
void inventory_volume(
	const struct check_view *v, const struct volume_record *r, struct inventory_volume *ret);

/** inventory_phase() - get the phase as text: "creating", "ready" or "erasing"; "missing", "gone" or
 * "foreign" for a ready volume whose device is not present. */
const char *inventory_phase(const struct volume_record *r, enum presence presence);

struct inventory_counts {
	uint32_t n_volumes;   /* with a state file that can be read */
	uint32_t n_absent;    /* ready volumes whose device is not present */
	uint32_t n_damaged;   /* with a state file that cannot be read */
	uint32_t n_strangers; /* devices of ours without a state file */
	uint32_t n_direct;    /* direct volumes */
};

/** inventory_count() - count the volumes and devices of @v. */
void inventory_count(const struct check_view *v, struct inventory_counts *ret);

struct inventory_region {
	uint64_t pool_bytes; /* raw, in our pool namespaces */
	uint32_t n_pool;
	uint64_t volume_bytes; /* raw, in namespaces that are volumes */
	uint32_t n_volumes;
	uint64_t foreign_bytes; /* raw, in all others */
	uint32_t n_foreign;
	uint32_t n_free_extents; /* INVENTORY_UNKNOWN if the kernel does not show offsets */
};

/** inventory_region() - sum up the namespaces of @region by their owners, according to the state in @v. */
void inventory_region(
	const struct nd_region *region, const struct check_view *v, struct inventory_region *ret);

/** inventory_pool_has() - whether @pool is made of @region: is that region, or has a device on its
 * namespaces. @report: NULL: without LVM */
bool inventory_pool_has(
	const struct device_pool *pool, const struct nd_region *region, const struct lvm_report *report);

/** inventory_erasing() - sum up the bytes of devices in @pool whose deletion is not finished. */
uint64_t inventory_erasing(const struct check_view *v, const struct device_pool *pool);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes_durability.h - finds out, with the first mount on a region, or with one that is there when the
 * driver starts, how stores to its memory become durable.
 */
#pragma once

#include "base/error.h"
#include "volume/durability/region_durability.h"

struct device;
struct mount_entry;
struct volume_record;
struct volumes;

/** volumes_load_durability() - read what earlier runs have found out, before the first listing of devices. A
 * failure is logged: then nothing is known. */
void volumes_load_durability(struct volumes *v);

/**
 * volumes_try_durability() - try MAP_SYNC on the region of a volume that was mounted just now, unless that
 * was done since the start of the driver; what is found is kept in the state folder and logged.
 * @d: device of @r
 * @e: its mount; nothing is tried where it is read-only or has no DAX
 *
 * The caller holds the volume's lock. Blocks for ten seconds at most. A failure is logged: what was known
 * stays, and the next mount tries again.
 */
void volumes_try_durability(struct volumes *v, const struct volume_record *r, const struct device *d,
	const struct mount_entry *e);

/**
 * volumes_try_durability_of_mounted() - do the same, in each region of which nothing is known, with one
 * volume that is staged already, when the driver has started.
 *
 * Blocks for ten seconds at most in each such region. Where the kernel does not answer, the next mount tries
 * again. Idempotent.
 */
void volumes_try_durability_of_mounted(struct volumes *v);

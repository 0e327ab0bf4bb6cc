/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_fake_model.h - the regions of the fake device manager and what lies where in them, in memory;
 * device_fake_folder.h makes it durable.
 *
 * Threads: none; device_fake.c holds its lock around every call. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmem/device/device.h"

struct fake_extent {
	char *id;
	char *identity;
	size_t region;
	uint64_t start_bytes;
	uint64_t size_bytes;
};

/* Adjacent extents are merged here, so that the time to find a place grows with the number of free extents
 * and not of devices.
 */
struct fake_region {
	struct extent *used; /* sorted by start */
	size_t n_used;
	uint64_t used_bytes;
};

struct fake_model {
	char **uuids; /* of the regions: strv */
	struct fake_region *regions;
	size_t n_regions;
	uint64_t region_bytes;
	uint64_t unit_bytes;
	struct fake_extent **extents; /* sorted by id */
	size_t n_extents;
};

/** fake_model_init() - empty regions as in @config, with new UUIDs. @m: fake_model_done(). */
void fake_model_init(struct fake_model *m, const struct device_fake_config *config);

/** fake_model_done() - release @m; safe on a zeroed one. */
void fake_model_done(struct fake_model *m);

/** fake_model_find() - the extent called @id, borrowed until the next change, or NULL. */
const struct fake_extent *fake_model_find(const struct fake_model *m, const char *id);

/** fake_model_region() - number of the region with @uuid. Return: false if there is none. */
bool fake_model_region(const struct fake_model *m, const char *uuid, size_t *ret);

/** fake_model_place() - find the best place for @size_bytes, a multiple of the unit, in @region. Return: 0,
 * or -1 with ERR_EXHAUSTED. */
int fake_model_place(const struct fake_model *m, size_t region, uint64_t size_bytes,
	uint64_t *ret_start_bytes, struct error **err) MUST_CHECK;

/**
 * fake_model_place_growth() - find a place for @e, one of the extents of @m, when it has @size_bytes, a
 * multiple of the unit and more than now: where it is, if what follows is free, or else elsewhere in its
 * region.
 *
 * Content does not lie there, so that nothing is moved. Return: 0, or -1 with ERR_EXHAUSTED.
 */
int fake_model_place_growth(struct fake_model *m, const struct fake_extent *e, uint64_t size_bytes,
	uint64_t *ret_start_bytes, struct error **err) MUST_CHECK;

/** fake_model_check() - that @e can be added: aligned, inside its region, over no other, with an id of its
 * own. Return: 0, or -1 with ERR_PRECONDITION. */
int fake_model_check(const struct fake_model *m, const struct fake_extent *e, struct error **err) MUST_CHECK;

/** fake_model_add() - copy @e in. */
void fake_model_add(struct fake_model *m, const struct fake_extent *e);

/** fake_model_clear() - forget all extents. */
void fake_model_clear(struct fake_model *m);

/** fake_model_remove() - forget the extent called @id if there is one. */
void fake_model_remove(struct fake_model *m, const char *id);

/** fake_model_device() - @e as a device, without a node and inactive. Return: device_free(). */
struct device *fake_model_device(const struct fake_model *m, const struct fake_extent *e);

/** fake_model_pools() - all pools, and no devices. Return: device_list_free(). */
struct device_list *fake_model_pools(const struct fake_model *m);

/** fake_model_list() - all devices, as fake_model_device(), and pools. Return: device_list_free(). */
struct device_list *fake_model_list(const struct fake_model *m);

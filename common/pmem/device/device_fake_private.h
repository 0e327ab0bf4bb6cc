/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_fake_private.h - the two halves of the fake device manager: the model (regions and what lies where
 * in them) and the files that make it durable.
 *
 * Threads: none; device_fake.c holds its lock around every call.
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

/* Extents that touch are one here: what it takes to find a place grows with the gaps, not with the devices.
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

/** fake_model_place() - best place for @size_bytes, a multiple of the unit, in @region. Return: 0, or -1 with
 * ERR_EXHAUSTED. */
int fake_model_place(const struct fake_model *m, size_t region, uint64_t size_bytes,
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

struct fake_folder {
	int dir_fd;
	int lock_fd;
};

/**
 * fake_folder_open() - lock the folder, clear away what a crash left, load the model; with config->read_only
 * only the last of these.
 * @config: its path is made if it is missing and may be, the parent is not
 * @m:      as fake_model_init() left it; gets the folder's shape, UUIDs and extents
 * @ret:    fake_folder_close()
 *
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_UNAVAILABLE (another process has the folder), ERR_PRECONDITION
 * (another shape, not a folder of ours, or damaged), ERR_EXHAUSTED, ERR_INTERNAL.
 */
int fake_folder_open(const struct device_fake_config *config, struct fake_model *m, struct fake_folder **ret,
	struct error **err) MUST_CHECK;

/** fake_folder_close() - let go of the folder; its loop devices stay. NULL is allowed. */
void fake_folder_close(struct fake_folder *f);
DEFINE_CLEANUP(struct fake_folder *, fake_folder_close);

/**
 * fake_folder_create() - make @e durable and its loop device.
 * @pool:     UUID of its region
 * @ret_path: loop device, caller frees
 *
 * On failure nothing is left. Return: 0, or -1 with ERR_EXHAUSTED (disk full), ERR_UNAVAILABLE (no free
 * loop), ERR_INTERNAL.
 */
int fake_folder_create(struct fake_folder *f, const struct fake_extent *e, const char *pool, char **ret_path,
	struct error **err) MUST_CHECK;

/** fake_folder_find() - give the devices of @l, which have no paths yet, those of their loop devices; NULL
 * where there is none. Return: 0, or -1 with ERR_INTERNAL. */
int fake_folder_find(struct fake_folder *f, struct device_list *l, struct error **err) MUST_CHECK;

/** fake_folder_attach() - make the loop device of @id if there is none. Return: 0, or -1 with ERR_UNAVAILABLE
 * (no free loop), ERR_INTERNAL. */
int fake_folder_attach(struct fake_folder *f, const char *id, struct error **err) MUST_CHECK;

/** fake_folder_forget() - detach @id and remove its description, so that it is no device any more.
 * Idempotent. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_INTERNAL. */
int fake_folder_forget(struct fake_folder *f, const char *id, struct error **err) MUST_CHECK;

/** fake_folder_clear() - remove the image of @id, which is no device any more; one that stays goes at the
 * next opening. Return: 0, or -1 with ERR_INTERNAL. */
int fake_folder_clear(struct fake_folder *f, const char *id, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_fake_folder.h - the folder of the fake device manager: for each device an image, over which a loop
 * device lies, and a description, from which the model is loaded.
 *
 * Threads: none; device_fake.c holds its lock around every call. Blocks on the file system and on loop
 * devices.
 */
#pragma once

#include "pmem/device/device_fake_model.h"

struct fake_folder {
	int dir_fd;
	int lock_fd;
};

/**
 * fake_folder_open() - lock the folder, clear away what a crash left, load the model; with config->read_only
 * only the last of these.
 * @config: its path is created if it is missing and may be created; the parent is not
 * @m:      as fake_model_init() left it; gets the folder's shape, UUIDs and extents
 * @ret:    fake_folder_close()
 *
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_UNAVAILABLE (another process has the folder), ERR_PRECONDITION
 * (another shape, not a folder of ours, or damaged), ERR_EXHAUSTED, ERR_INTERNAL.
 */
int fake_folder_open(const struct device_fake_config *config, struct fake_model *m, struct fake_folder **ret,
	struct error **err) MUST_CHECK;

/** fake_folder_close() - unlock the folder; its loop devices stay. NULL is allowed. */
void fake_folder_close(struct fake_folder *f);
DEFINE_CLEANUP(struct fake_folder *, fake_folder_close);

/**
 * fake_folder_create() - make @e durable and attach its loop device.
 * @pool:     UUID of its region
 * @ret_path: loop device, caller frees
 *
 * On failure nothing is left. Return: 0, or -1 with ERR_EXHAUSTED (disk full), ERR_UNAVAILABLE (no free
 * loop), ERR_INTERNAL.
 */
int fake_folder_create(struct fake_folder *f, const struct fake_extent *e, const char *pool, char **ret_path,
	struct error **err) MUST_CHECK;

/**
 * fake_folder_grow() - make the device of @e as large as @e says: its image, its description, which decides
 * after a crash, and its loop device.
 * @pool: UUID of its region
 *
 * What the image gains reads as zeros. May be repeated after a failure, with the same size. Return: 0, or -1
 * with ERR_EXHAUSTED (disk full), ERR_INTERNAL.
 */
int fake_folder_grow(
	struct fake_folder *f, const struct fake_extent *e, const char *pool, struct error **err) MUST_CHECK;

/** fake_folder_find() - give the devices of @l, which have no paths yet, those of their loop devices, or
 * NULL where a device has none. Return: 0, or -1 with ERR_INTERNAL. */
int fake_folder_find(struct fake_folder *f, struct device_list *l, struct error **err) MUST_CHECK;

/** fake_folder_attach() - make the loop device of @id if it does not exist. Return: 0, or -1 with
 * ERR_UNAVAILABLE (no free loop), ERR_INTERNAL. */
int fake_folder_attach(struct fake_folder *f, const char *id, struct error **err) MUST_CHECK;

/** fake_folder_forget() - detach @id and remove its description, so that it is no device any more.
 * Idempotent. Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_INTERNAL. */
int fake_folder_forget(struct fake_folder *f, const char *id, struct error **err) MUST_CHECK;

/** fake_folder_clear() - remove the image of @id, which is no device any more; one that cannot be removed is
 * removed when the folder is opened next. Return: 0, or -1 with ERR_INTERNAL. */
int fake_folder_clear(struct fake_folder *f, const char *id, struct error **err) MUST_CHECK;

/** fake_folder_bad_ranges() - read the file "badblocks", with which a test makes parts of the regions
 * unreadable, in the form of the kernel's lists. The regions are one after the other there. Without it there
 * are none. @ret: bad_ranges_done(). Return: 0, or -1 as bad_ranges_parse(). */
int fake_folder_bad_ranges(struct fake_folder *f, struct bad_ranges *ret, struct error **err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media_errors.h - which parts of devices cannot be read, because the memory below them has lost its content.
 *
 * Nothing is opened but sysfs and the control node of device-mapper, and no device is accessed. Threads:
 * safe. Never waits for a device. Source: Documentation/ABI/testing/sysfs-block, badblocks;
 * block/badblocks.c, badblocks_show(): lines "SECTOR LENGTH" in sectors of 512 bytes, cut within a line
 * where a page is full; fs/sysfs/file.c, sysfs_kf_seq_show(): of a full page all but one byte is read;
 * drivers/nvdimm/badrange.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* How many ranges of one device are kept. */
#define MEDIA_ERRORS_MAX 16

struct media_error {
	uint64_t offset_bytes;
	uint64_t length_bytes;
};

/* Media errors of one device, by their offset in the device. If all members are zero, it has none. */
struct media_errors {
	struct media_error list[MEDIA_ERRORS_MAX]; /* the first ones */
	size_t n;
	uint64_t bytes; /* of all, also of those that are not kept */
	bool is_cut;    /* there may be more than the kernel lists */
	bool unknown;   /* there may be others: a list cannot be read */
};

/* All bad blocks of a namespace, or of the memory of the fake device manager. */
struct bad_ranges {
	dev_t dev;
	struct media_error *list;
	size_t n;
	bool is_cut;  /* the kernel may know more than it lists */
	bool unknown; /* the list cannot be read */
};

/** bad_ranges_has_any() - whether the device of @b has bad blocks. */
static inline bool bad_ranges_has_any(const struct bad_ranges *b)
{
	return b->n > 0 || b->is_cut;
}

/** bad_ranges_done() - release what @b owns; safe on a zeroed one. */
void bad_ranges_done(struct bad_ranges *b);

/** bad_ranges_parse() - read the text of a list of bad blocks. If the text fills a page, the kernel may have
 * cut the last line: it is left out if it is incomplete. @ret: bad_ranges_done(). Return: 0, or -1 with
 * ERR_INTERNAL (another form). */
int bad_ranges_parse(const char *text, struct bad_ranges *ret, struct error **err) MUST_CHECK;

/** bad_ranges_read() - read the list of the block device at @path, such as "/dev/pmem0"; one without a list,
 * as that of a BTT, has none. @ret: bad_ranges_done(); if only the list cannot be read, it has the number of
 * the device, and is unknown. Return: 0, or -1 with ERR_NOT_FOUND (no such device), ERR_INTERNAL,
 * ERR_PRECONDITION (no block device), ERR_EXHAUSTED (too long). */
int bad_ranges_read(const char *path, struct bad_ranges *ret, struct error **err) MUST_CHECK;

/** media_errors_add() - add to @e, in the device's terms, what of @bad lies in the part of the memory from
 * @start_bytes on, which is @length_bytes of the device from @offset_bytes on. */
void media_errors_add(struct media_errors *e, const struct bad_ranges *bad, uint64_t start_bytes,
	uint64_t length_bytes, uint64_t offset_bytes);

/** media_errors_of_mapped() - add to @e what of the lists @bad of @n_bad devices lies below the mapped device
 * at @path, which is unknown if one of these lists is. Only the linear parts of the device can be mapped to
 * the devices below. A path at which there is no mapped device has none. Return: 0, or -1 with
 * ERR_INTERNAL. */
int media_errors_of_mapped(const char *path, const struct bad_ranges *bad, size_t n_bad,
	struct media_errors *e, struct error **err) MUST_CHECK;

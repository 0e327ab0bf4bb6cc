/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_parts.h - reads a mapped device by the devices below it, as has to be done while it is suspended.
 *
 * Threads: safe. Blocks on sysfs and on opening the devices.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/copy/data_copy.h"

struct dm_segment;

struct source_parts {
	struct data_copy_part *list;
	struct dm_segment *segments; /* of which each is a part */
	size_t n;
};

/**
 * source_parts_open() - find and open what a mapped device lies on.
 * @dev:        number of the device; it may be suspended
 * @size_bytes: of it
 * @ret:        source_parts_free(); NULL: it is no mapped device
 *
 * The live table counts; source_parts_confirm() says whether it has changed since. Return: 0, or -1 with
 * ERR_PRECONDITION (it is not linear from its beginning to its end, as LVM's plain volumes are),
 * ERR_NOT_FOUND, ERR_INTERNAL.
 */
int source_parts_open(
	dev_t dev, uint64_t size_bytes, struct source_parts **ret, struct error **err) MUST_CHECK;

/** source_parts_confirm() - the device @dev lies where it did. Once it is suspended, that stays so. Return:
 * 0, or -1 with ERR_ABORTED (its table has changed), ERR_INTERNAL. */
int source_parts_confirm(const struct source_parts *p, dev_t dev, struct error **err) MUST_CHECK;

/** source_parts_free() - close the devices. NULL is allowed. */
void source_parts_free(struct source_parts *p);
DEFINE_CLEANUP(struct source_parts *, source_parts_free);

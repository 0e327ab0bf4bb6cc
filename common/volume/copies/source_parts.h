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

struct source_parts {
	struct data_copy_part *list;
	size_t n;
};

/**
 * source_parts_open() - find and open what a mapped device lies on.
 * @dev:        number of the device; it may be suspended
 * @size_bytes: of it
 * @ret:        source_parts_free(); NULL: it is no mapped device
 *
 * The live table counts, so that nothing may change it meanwhile. Return: 0, or -1 with ERR_PRECONDITION (it
 * is not linear from its beginning to its end, as LVM's plain volumes are), ERR_NOT_FOUND, ERR_INTERNAL.
 */
int source_parts_open(
	dev_t dev, uint64_t size_bytes, struct source_parts **ret, struct error **err) MUST_CHECK;

/** source_parts_free() - close the devices. NULL is allowed. */
void source_parts_free(struct source_parts *p);
DEFINE_CLEANUP(struct source_parts *, source_parts_free);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dax.h - device-dax and system-ram use of persistent memory, through libdaxctl; read only.
 *
 * Threads: not safe (libdaxctl contexts); one caller at a time. Blocks on sysfs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dax_device {
	char *dev;    /* "dax0.0" */
	char *region; /* of its parent, "region0"; "" when unknown */
	uint64_t size_bytes;
	bool is_system_ram;
};

struct dax_list {
	struct dax_device *devices;
	size_t n;
};

/** dax_list_read() - all dax devices. Return: 0, or -1 with ERR_INTERNAL. @ret: dax_list_free(). */
int dax_list_read(struct dax_list **ret, struct error **err) MUST_CHECK;
void dax_list_free(struct dax_list *l);
DEFINE_CLEANUP(struct dax_list *, dax_list_free);

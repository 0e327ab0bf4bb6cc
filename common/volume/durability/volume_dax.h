/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_dax.h - whether DAX is in force for a volume that is in use, as far as its record says it: a volume
 * that needs DAX is not mounted without it. Pure. Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "pmem/durability.h"

enum volume_dax {
	VOLUME_DAX_UNKNOWN, /* not mounted, a block volume, a guest's, or mounted with flags of its own */
	VOLUME_DAX_NONE,
	VOLUME_DAX_UNTRIED,     /* in force; whether the kernel accepts MAP_SYNC is not known */
	VOLUME_DAX_SYNCHRONOUS, /* in force; the kernel accepts MAP_SYNC */
	VOLUME_DAX_FSYNC        /* in force; the kernel refuses MAP_SYNC */
};

struct volume_record;

/** volume_dax_of() - of @r, on a device of the mode @mode, in memory of @durability. */
enum volume_dax volume_dax_of(const struct volume_record *r, const char *mode, enum durability durability);

/** volume_dax_lacks_sync() - whether @r is to have MAP_SYNC by its parameters, and does not. A device that
 * stands in for persistent memory lacks nothing. */
bool volume_dax_lacks_sync(const struct volume_record *r, const char *mode, enum volume_dax dax);

/** volume_dax_name() - "no", "yes" (VOLUME_DAX_UNTRIED), "synchronous", "fsync"; NULL: not known. Return:
 * static string. */
const char *volume_dax_name(enum volume_dax dax);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durability.h - how a store through a DAX mapping of a region's memory becomes durable, and the parameter
 * "durability" of a StorageClass, which says what its volumes need.
 *
 * With MAP_SYNC, a store is durable as soon as the program has flushed it from the processor's caches. Where
 * the kernel refuses MAP_SYNC, only fsync(2) and msync(2) make it durable (mmap(2)). Decision:
 * docs/decisions/092. Threads: safe; nothing blocks.
 */
#pragma once

#include <stdbool.h>

enum durability {
	DURABILITY_UNKNOWN,     /* nothing on the region was mounted with DAX yet */
	DURABILITY_SYNCHRONOUS, /* the kernel accepts MAP_SYNC */
	DURABILITY_FSYNC        /* the kernel refuses MAP_SYNC */
};

/** durability_name() - "unknown", "synchronous" or "fsync". Return: static string. */
const char *durability_name(enum durability durability);

/** durability_parse() - parse a name; @text may be NULL. Return: DURABILITY_UNKNOWN for any other text. */
enum durability durability_parse(const char *text);

/** durability_needs_sync() - whether a volume whose class has these values of "usage" and "durability" needs
 * MAP_SYNC; NULL: not given. For callers that did not check the parameters: any other text counts as none. */
bool durability_needs_sync(const char *usage, const char *durability);

/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/durability.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "pmem/usage.h"

static const char *const names[] = {[DURABILITY_UNKNOWN] = "unknown",
	[DURABILITY_SYNCHRONOUS] = "synchronous",
	[DURABILITY_FSYNC] = "fsync"};

const char *durability_name(enum durability durability)
{
	return names[durability];
}

enum durability durability_parse(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_eq(text, names[i]))
			return (enum durability)i;
	}
	return DURABILITY_UNKNOWN;
}

bool durability_needs_sync(const char *usage, const char *durability)
{
	return !volume_usage_is_file_io(usage) && durability_parse(durability) != DURABILITY_FSYNC;
}

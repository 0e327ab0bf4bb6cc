/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/usage.h"

#include "base/cleanup.h"
#include "base/str.h"

static const char *const names[] = {[USAGE_APP_DIRECT] = "AppDirect", [USAGE_FILE_IO] = "FileIO"};

const char *volume_usage_name(enum volume_usage usage)
{
	return names[usage];
}

bool volume_usage_parse(const char *text, enum volume_usage *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_eq(text, names[i])) {
			*ret = (enum volume_usage)i;
			return true;
		}
	}
	return false;
}

bool volume_usage_is_file_io(const char *text)
{
	return str_eq(text, names[USAGE_FILE_IO]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Mount flags: first line the file system, second the options that a mount shows, then one flag per line. */
#include "volume/attachment/allowed_mount_flags.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz/fuzz.h"
#include "os/mount_table.h"
#include "volume/attachment/mount_flags.h"

static void check_flag(char *flag, const char *fs_type, const struct mount_entry *e)
{
	char *const flags[] = {flag, NULL};
	struct error *err = NULL;

	if (allowed_mount_flags_check(flags, fs_type, &err) < 0) {
		assert(!mount_flag_is_per_mount(flag));
		fuzz_error(err);
	} else {
		/* it goes into a comma-separated list, where it must stay one option */
		assert(*flag && !strpbrk(flag, ", \t\"\\"));
	}
	(void)mount_flag_in_force(e, flag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	CLEANUP(free_charp) char *fs_type = fuzz_line(&in);
	CLEANUP(free_charp) char *options = fuzz_line(&in);
	CLEANUP(strv_freep) char **flags = fuzz_lines(in);
	struct mount_entry e = {.options = options, .fs_options = options};

	CLEANUP(strv_freep) char **split = allowed_mount_flags_split(flags);

	for (size_t i = 0; flags && flags[i]; i++)
		check_flag(flags[i], fs_type, &e);
	for (size_t i = 0; split && split[i]; i++)
		assert(*split[i] && !strchr(split[i], ','));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's mount table: first line a path to look for, second an option, then the table. */
#include "os/blockdev_mounts.h"

#include <stdlib.h>

#include "base/str.h"
#include "fuzz/fuzz.h"

static void check_entry(const struct mount_table *t, const struct mount_entry *e, const char *option)
{
	assert(e->root && e->target && e->options);
	const struct mount_entry *top = mount_table_at(t, e->target);
	assert(top && str_eq(top->target, e->target) && top >= e);
	assert(blockdev_mount_kind(e, e->dev) == BLOCKDEV_MOUNT_FS);
	if (option)
		(void)mount_entry_has(e, option);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;
	CLEANUP(free_charp) char *path = fuzz_line(&in);
	CLEANUP(free_charp) char *option = fuzz_line(&in);
	CLEANUP(free_charp) char *text = fuzz_text(in);
	struct error *err = NULL;

	if (mount_table_parse(text, &t, &err) < 0) {
		fuzz_error(err);
		return 0;
	}
	for (size_t i = 0; i < t->n; i++)
		check_entry(t, &t->entries[i], option);
	if (path)
		(void)mount_table_at(t, path);
	(void)blockdev_mount_find(t, 1);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The mount table shows which file systems have failed. The count of ext4 is tested with a real one, by
 * unit/volume/health/volumes_health. */
#include <sys/sysmacros.h>

#include "unit/unit.h"
#include "volume/health/fs_errors.h"

static struct mount_table *table;

static const struct mount_entry *entry(const char *line)
{
	struct error *err = NULL;

	mount_table_free(table);
	table = NULL;
	ASSERT_OK(mount_table_parse(line, &table, &err));
	ck_assert_uint_eq(table->n, 1);
	return &table->entries[0];
}

START_TEST(only_a_file_system_that_was_mounted_for_writing_turns_readonly)
{
	ck_assert(fs_turned_readonly(entry("36 35 7:1 / /a rw,noatime - ext4 /dev/loop1 ro,dax=always\n")));
	ck_assert(fs_turned_readonly(entry("36 35 7:1 / /a rw - ext4 /dev/loop1 rw,emergency_ro\n")));
	ck_assert(!fs_turned_readonly(entry("36 35 7:1 / /a ro,noatime - ext4 /dev/loop1 ro\n")));
	ck_assert(!fs_turned_readonly(entry("36 35 7:1 / /a ro - ext4 /dev/loop1 rw\n")));
	ck_assert(!fs_turned_readonly(entry("36 35 7:1 / /a rw - ext4 /dev/loop1 rw,errors=remount-ro\n")));
	ck_assert(!fs_turned_readonly(entry("36 35 7:1 / /a rw - ext4 /dev/loop1 rw,root=ro\n")));
}
END_TEST

START_TEST(shut_down_file_systems_say_so)
{
	ck_assert(fs_is_shut_down(entry("36 35 7:1 / /a rw - ext4 /dev/loop1 rw,shutdown\n")));
	ck_assert(!fs_is_shut_down(entry("36 35 7:1 / /a rw - ext4 /dev/loop1 rw\n")));
}
END_TEST

START_TEST(other_file_systems_and_unmounted_ones_have_no_count)
{
	struct error *err = NULL;
	bool has = true;

	ASSERT_OK(fs_has_errors(entry("36 35 7:1 / /a rw - xfs /dev/loop1 rw\n"), &has, &err));
	ck_assert(!has);
	has = true;
	ASSERT_OK(fs_has_errors(entry("36 35 4095:1 / /a rw - ext4 /dev/loop1 rw\n"), &has, &err));
	ck_assert(!has);
}
END_TEST

UNIT_MAIN("volume/fs_errors", only_a_file_system_that_was_mounted_for_writing_turns_readonly,
	shut_down_file_systems_say_so, other_file_systems_and_unmounted_ones_have_no_count)

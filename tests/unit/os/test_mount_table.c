/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount_table.h"

#include <sys/sysmacros.h>

#include "unit/unit.h"

/* A table as the kernel writes it: with optional fields, without them, with escapes, a bind mount of a
 * folder, two mounts in one place. */
static const char table_text[] =
	"22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n"
	"30 22 259:0 / /var/lib/kubelet/staging\\040one rw,noatime shared:2 master:1 - xfs /dev/pmem0 "
	"rw,attr2,dax=always,sunit=4096\n"
	"31 22 259:0 /sub /target ro,nosuid,noatime - xfs /dev/pmem0 rw,attr2,dax=always\n"
	"32 22 0:5 /dm-3 /target rw,nosuid - devtmpfs udev rw,size=1k\n"
	"33 22 0:40 / /none rw - tmpfs none rw\n"
	"34 22 253:7 / /old rw - ext4 /dev/mapper/x rw,dax\n";

START_TEST(fields_are_taken_apart_and_unescaped)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;

	ASSERT_OK(mount_table_parse(table_text, &t, &err));
	ck_assert_uint_eq(t->n, 6);
	const struct mount_entry *e = &t->entries[1];
	ck_assert_uint_eq(major(e->dev), 259);
	ck_assert_uint_eq(minor(e->dev), 0);
	ck_assert_str_eq(e->root, "/");
	ck_assert_str_eq(e->target, "/var/lib/kubelet/staging one");
	ck_assert_str_eq(e->fstype, "xfs");
	ck_assert_str_eq(e->source, "/dev/pmem0");
	ck_assert_str_eq(e->options, "rw,noatime");
	ck_assert_str_eq(e->fs_options, "rw,attr2,dax=always,sunit=4096");
	ck_assert_str_eq(t->entries[2].root, "/sub");
}
END_TEST

START_TEST(the_last_mount_at_a_target_is_on_top)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;

	ASSERT_OK(mount_table_parse(table_text, &t, &err));
	ck_assert_ptr_eq(mount_table_at(t, "/target"), &t->entries[3]);
	ck_assert_ptr_eq(mount_table_at(t, "/"), &t->entries[0]);
	ck_assert_ptr_null(mount_table_at(t, "/targe"));
	ck_assert_ptr_null(mount_table_at(t, "/target/"));
}
END_TEST

START_TEST(options_are_compared_whole_and_dax_spellings_are_equal)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;

	ASSERT_OK(mount_table_parse(table_text, &t, &err));
	const struct mount_entry *xfs = &t->entries[1];
	const struct mount_entry *old = &t->entries[5];
	ck_assert(mount_entry_has(xfs, "noatime"));
	ck_assert(mount_entry_has(xfs, "attr2"));
	ck_assert(mount_entry_has(xfs, "sunit=4096"));
	ck_assert(mount_entry_has(xfs, "dax"));
	ck_assert(mount_entry_has(xfs, "dax=always"));
	ck_assert(mount_entry_has(old, "dax"));
	ck_assert(mount_entry_has(old, "dax=always"));
	ck_assert(!mount_entry_has(xfs, "ro"));
	ck_assert(!mount_entry_has(xfs, "atime"));
	ck_assert(!mount_entry_has(xfs, "sunit"));
	ck_assert(!mount_entry_has(xfs, "sunit=409"));
	ck_assert(!mount_entry_has(xfs, ""));
	ck_assert(!mount_entry_has(&t->entries[4], "dax"));
}
END_TEST

START_TEST(dax_never_is_not_dax)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;

	ASSERT_OK(mount_table_parse("30 22 259:0 / /a rw - xfs /dev/pmem0 rw,dax=never\n", &t, &err));
	ck_assert(!mount_entry_has(&t->entries[0], "dax"));
	ck_assert(mount_entry_has(&t->entries[0], "dax=never"));
}
END_TEST

START_TEST(mount_is_not_read_only_because_its_file_system_is)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;

	ASSERT_OK(mount_table_parse("30 22 259:0 / /a rw,noatime - ext4 /dev/pmem0 ro\n"
				    "31 22 259:0 / /b ro,noatime - ext4 /dev/pmem0 rw\n"
				    "32 22 259:0 / /c ro - ext4 /dev/pmem0 rw\n",
		&t, &err));
	ck_assert(!mount_entry_is_readonly(&t->entries[0]));
	ck_assert(mount_entry_is_readonly(&t->entries[1]));
	ck_assert(mount_entry_is_readonly(&t->entries[2]));
}
END_TEST

START_TEST(a_malformed_line_is_an_error_not_a_missing_mount)
{
	static const char *const texts[] = {
		"30 22 259:0 / /a rw - xfs /dev/pmem0 rw\nnonsense\n",
		"30 22 259:0 / /a rw\n",
		"/dev/sda1 /mnt ext4 rw 0 0\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(mount_table_freep) struct mount_table *t = NULL;
		ASSERT_FAILS(mount_table_parse(texts[i], &t, &err), ERR_INTERNAL, "mount");
		ck_assert_ptr_null(t);
	}
}
END_TEST

START_TEST(the_real_table_has_proc)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;

	ASSERT_OK(mount_table_read(&t, &err));
	const struct mount_entry *e = mount_table_at(t, "/proc");
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->fstype, "proc");
}
END_TEST

/* A host whose root is private, with a shared folder in it, and a private one below. */
static const char shared_text[] = "1 0 0:1 / / rw - ext4 /dev/a rw\n"
				  "2 1 0:1 /kubelet /kubelet rw shared:1 - ext4 /dev/a rw\n"
				  "3 2 0:2 / /kubelet/pods rw - ext4 /dev/b rw\n"
				  "4 1 0:3 / /twice rw - tmpfs none rw\n"
				  "5 4 0:4 / /twice rw shared:2 - tmpfs none rw\n";

static void assert_propagates(const char *path, bool expected, const char *expected_target)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *t = NULL;
	const char *target = NULL;

	ASSERT_OK(mount_table_parse(shared_text, &t, &err));
	ck_assert(mount_table_propagates(t, path, &target) == expected);
	ck_assert_str_eq(target, expected_target);
}

START_TEST(the_deepest_mount_decides)
{
	assert_propagates("/", false, "/");
	assert_propagates("/kubelet", true, "/kubelet");
	assert_propagates("/kubelet/plugins/x", true, "/kubelet");
	assert_propagates("/kubelet/pods/x", false, "/kubelet/pods");
}
END_TEST

START_TEST(a_folder_with_the_same_prefix_is_another_one)
{
	assert_propagates("/kubelet2", false, "/");
	assert_propagates("/kubelet/pods2", true, "/kubelet");
}
END_TEST

START_TEST(of_two_mounts_at_one_place_the_last_decides)
{
	assert_propagates("/twice/x", true, "/twice");
}
END_TEST

START_TEST(without_mounts_nothing_propagates)
{
	const struct mount_table none = {0};
	const char *target = NULL;

	ck_assert(!mount_table_propagates(&none, "/x", &target));
	ck_assert_str_eq(target, "/");
}
END_TEST

UNIT_MAIN("os/mount_table", fields_are_taken_apart_and_unescaped, the_last_mount_at_a_target_is_on_top,
	options_are_compared_whole_and_dax_spellings_are_equal, dax_never_is_not_dax,
	mount_is_not_read_only_because_its_file_system_is, a_malformed_line_is_an_error_not_a_missing_mount,
	the_real_table_has_proc, the_deepest_mount_decides, a_folder_with_the_same_prefix_is_another_one,
	of_two_mounts_at_one_place_the_last_decides, without_mounts_nothing_propagates)

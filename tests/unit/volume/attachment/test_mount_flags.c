/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/mount_flags.h"

#include "base/mem.h"
#include "os/mount_table.h"
#include "unit/unit.h"

static const char *difference(const char *wanted, const char *shown)
{
	char options[64];
	char flag[64];
	char *const flags[] = {flag, NULL};
	const struct mount_entry e = {.options = options, .fs_options = (char[]){"rw"}};
	const char *is;

	snprintf(flag, sizeof(flag), "%s", wanted);
	const struct mount_attributes w = mount_attributes_of_flags(flags);
	snprintf(options, sizeof(options), "%s", shown);
	const struct mount_attributes now = mount_attributes_in_force(&e);
	return mount_attributes_differ(&w, &now, &is);
}

START_TEST(attributes_are_compared_in_both_directions)
{
	static const char *const set[] = {"ro", "nosuid", "nodev", "noexec", "nodiratime"};
	static const char *const cleared[] = {"rw", "suid", "dev", "exec", "diratime"};

	for (size_t i = 0; i < ARRAY_SIZE(set); i++) {
		char shown[64];

		snprintf(shown, sizeof(shown), "%s%s,relatime", i == 0 ? "" : "rw,", set[i]);
		ck_assert_ptr_null(difference(set[i], shown));
		ck_assert_str_eq(difference(set[i], "rw,relatime"), set[i]);
		ck_assert_str_eq(difference("relatime", shown), cleared[i]);
		ck_assert_str_eq(difference(cleared[i], shown), cleared[i]);
	}
	ck_assert_str_eq(difference("relatime", "rw,noatime"), "relatime");
	ck_assert_str_eq(difference("atime", "rw,noatime"), "relatime");
	ck_assert_str_eq(difference("noatime", "rw,relatime"), "noatime");
	ck_assert_str_eq(difference("strictatime", "rw,relatime"), "strictatime");
	ck_assert_ptr_null(difference("strictatime", "rw"));
}
END_TEST

START_TEST(per_mount_flags_are_those_that_a_bind_mount_can_have)
{
	static const char *const yes[] = {"ro", "rw", "nosuid", "nodev", "noexec", "noatime", "relatime"};
	static const char *const no[] = {
		"dax", "sync", "lazytime", "discard", "errors=continue", "inode64", ""};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		ck_assert_msg(mount_flag_is_per_mount(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		ck_assert_msg(!mount_flag_is_per_mount(no[i]), "%s", no[i]);
}
END_TEST

START_TEST(defaults_are_in_force_when_their_opposite_is_not_shown)
{
	static const struct {
		const char *options;
		const char *fs_options;
		const char *flag;
		bool in_force;
	} cases[] = {
		{"rw,relatime", "rw", "rw", true},
		{"ro,relatime", "rw", "ro", true},
		{"rw,relatime", "rw", "ro", false},
		{"rw,nosuid,relatime", "rw", "nosuid", true},
		{"rw,relatime", "rw", "nosuid", false},
		{"rw,relatime", "rw", "suid", true},
		{"rw,nosuid,relatime", "rw", "suid", false},
		{"rw,relatime", "rw", "async", true},
		{"rw,relatime", "rw,sync", "async", false},
		{"rw,relatime", "rw,sync", "sync", true},
		{"rw,relatime", "rw", "sync", false},
		{"rw,relatime", "rw", "strictatime", false},
		{"rw", "rw", "strictatime", true},
		{"rw,noatime", "rw", "strictatime", false},
		{"rw,noatime", "rw", "atime", false},
		{"rw,relatime", "rw,dax=always", "dax", true},
		{"rw,relatime", "rw", "dax", false},
		{"rw,relatime", "rw,dax=always", "dax=inode", false},
		{"rw,relatime", "rw,dax=never", "dax=inode", false},
		{"rw,relatime", "rw", "dax=inode", true},
		{"rw,relatime", "rw", "discard", false},
		{"rw,relatime", "rw", "nodiscard", true},
		{"rw,relatime", "rw,errors=remount-ro", "errors=continue", false},
		{"rw,relatime", "rw", "errors=continue", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char options[64];
		char fs_options[64];
		const struct mount_entry e = {.options = options, .fs_options = fs_options};

		snprintf(options, sizeof(options), "%s", cases[i].options);
		snprintf(fs_options, sizeof(fs_options), "%s", cases[i].fs_options);
		ck_assert_msg(mount_flag_in_force(&e, cases[i].flag) == cases[i].in_force, "%s in %s / %s",
			cases[i].flag, options, fs_options);
	}
}
END_TEST

UNIT_MAIN("mount_flags", per_mount_flags_are_those_that_a_bind_mount_can_have,
	defaults_are_in_force_when_their_opposite_is_not_shown, attributes_are_compared_in_both_directions)

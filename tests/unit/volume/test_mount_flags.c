#include "volume/mount_flags.h"

#include "base/str.h"
#include "os/mount_table.h"
#include "unit/unit.h"

static char *flags_of[8];

static char *const *flags(const char *a, const char *b)
{
	static char texts[2][64];

	snprintf(texts[0], sizeof(texts[0]), "%s", a);
	snprintf(texts[1], sizeof(texts[1]), "%s", b ? b : "");
	flags_of[0] = texts[0];
	flags_of[1] = b ? texts[1] : NULL;
	flags_of[2] = NULL;
	return flags_of;
}

START_TEST(no_flags_are_fine)
{
	struct error *err = NULL;

	ASSERT_OK(mount_flags_check(NULL, "ext4", &err));
	ASSERT_OK(mount_flags_check(flags_of, "ext4", &err));
}
END_TEST

START_TEST(flags_are_allowed_for_their_file_system)
{
	struct error *err = NULL;

	ASSERT_OK(mount_flags_check(flags("noatime", "dax"), "ext4", &err));
	ASSERT_OK(mount_flags_check(flags("noatime", "dax=always"), "xfs", &err));
	ASSERT_OK(mount_flags_check(flags("errors=remount-ro", NULL), "ext4", &err));
	ASSERT_FAILS(mount_flags_check(flags("ro", "errors=remount-ro"), "xfs", &err), ERR_INVALID_ARGUMENT,
		"\"errors=...\" is not allowed for xfs");
	ASSERT_OK(mount_flags_check(flags("inode64", NULL), "xfs", &err));
	ASSERT_FAILS(
		mount_flags_check(flags("inode64", NULL), "ext4", &err), ERR_INVALID_ARGUMENT, "inode64");
}
END_TEST

START_TEST(value_of_a_refused_flag_is_kept_secret)
{
	struct error *err = NULL;

	ck_assert_int_eq(mount_flags_check(flags("ro", "password=hunter2"), "ext4", &err), -1);
	ck_assert_ptr_nonnull(strstr(err->msg, "password"));
	ck_assert_ptr_null(strstr(err->msg, "hunter2"));
	error_clear(&err);
}
END_TEST

/* What reaches outside of the volume, weakens it, or hides a second option in the first. */
START_TEST(anything_else_is_refused_by_name)
{
	static const char *const refused[] = {"", "bind", "rbind", "remount", "move", "shared", "loop",
		"nobarrier", "barrier=0", "data=writeback", "journal_dev=8", "journal_path=/dev/sda",
		"logdev=/dev/sda", "norecovery", "noload", "ro,bind", "noatime,", " ro", "RO", "errors=panic",
		"context=x", "X-mount.mkdir", "uid=0"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		char quoted[64];

		int n = (int)strcspn(refused[i], "=");
		snprintf(quoted, sizeof(quoted), "\"%.*s%s\"", n, refused[i], refused[i][n] ? "=..." : "");
		ASSERT_FAILS(mount_flags_check(flags("ro", refused[i]), "ext4", &err), ERR_INVALID_ARGUMENT,
			quoted);
		ASSERT_FAILS(mount_flags_check(flags(refused[i], NULL), "xfs", &err), ERR_INVALID_ARGUMENT,
			quoted);
	}
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

UNIT_MAIN("mount_flags", no_flags_are_fine, flags_are_allowed_for_their_file_system,
	anything_else_is_refused_by_name, value_of_a_refused_flag_is_kept_secret,
	per_mount_flags_are_those_that_a_bind_mount_can_have,
	defaults_are_in_force_when_their_opposite_is_not_shown)

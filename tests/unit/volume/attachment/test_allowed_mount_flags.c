/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/allowed_mount_flags.h"

#include "base/str.h"
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

	ASSERT_OK(allowed_mount_flags_check(NULL, "ext4", &err));
	ASSERT_OK(allowed_mount_flags_check(flags_of, "ext4", &err));
}
END_TEST

START_TEST(flags_are_allowed_for_their_file_system)
{
	struct error *err = NULL;

	ASSERT_OK(allowed_mount_flags_check(flags("noatime", "dax"), "ext4", &err));
	ASSERT_OK(allowed_mount_flags_check(flags("noatime", "dax=always"), "xfs", &err));
	ASSERT_OK(allowed_mount_flags_check(flags("errors=remount-ro", NULL), "ext4", &err));
	ASSERT_FAILS(allowed_mount_flags_check(flags("ro", "errors=remount-ro"), "xfs", &err),
		ERR_INVALID_ARGUMENT, "\"errors=...\" is not allowed for xfs");
	ASSERT_OK(allowed_mount_flags_check(flags("inode64", NULL), "xfs", &err));
	ASSERT_FAILS(allowed_mount_flags_check(flags("inode64", NULL), "ext4", &err), ERR_INVALID_ARGUMENT,
		"inode64");
}
END_TEST

START_TEST(options_of_a_file_system_are_allowed_with_a_number)
{
	struct error *err = NULL;

	ASSERT_OK(allowed_mount_flags_check(flags("nobarrier", "commit=60"), "ext4", &err));
	ASSERT_OK(allowed_mount_flags_check(flags("data=ordered", "noinit_itable"), "ext4", &err));
	ASSERT_OK(allowed_mount_flags_check(flags("logbufs=8", "logbsize=256k"), "xfs", &err));
	ASSERT_FAILS(allowed_mount_flags_check(flags("commit=60", NULL), "xfs", &err), ERR_INVALID_ARGUMENT,
		"commit");
	ASSERT_FAILS(allowed_mount_flags_check(flags("logbufs=8", NULL), "ext4", &err), ERR_INVALID_ARGUMENT,
		"logbufs");
}
END_TEST

static void assert_split(const char *given, const char *expected)
{
	CLEANUP(strv_freep) char **out = allowed_mount_flags_split(flags(given, "noatime"));

	ck_assert_uint_eq(strv_len(out), expected ? 2 : 1);
	if (expected)
		ck_assert_str_eq(out[0], expected);
	ck_assert_str_eq(out[strv_len(out) - 1], "noatime");
}

START_TEST(lists_are_taken_apart_and_words_for_the_mount_program_are_left_out)
{
	static const char *const left_out[] = {"", ",", "nofail", "_netdev", "x-systemd.automount", "user",
		"comment=mine", "nofail,_netdev"};

	assert_split("commit=60", "commit=60");
	assert_split("nofail,commit=60,", "commit=60");
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		assert_split(left_out[i], NULL);
	CLEANUP(strv_freep) char **out = allowed_mount_flags_split(flags("noatime,nodiratime", "commit=5"));
	ck_assert_uint_eq(strv_len(out), 3);
	ck_assert_str_eq(out[1], "nodiratime");
	ck_assert_ptr_null(allowed_mount_flags_split(NULL));
}
END_TEST

START_TEST(flags_that_the_go_driver_took_are_taken_over)
{
	static const char *const kept[] = {"nobarrier", "commit=60", "data=ordered", "noinit_itable",
		"nouuid", "context=system_u:object_r:x:s0", "delaylog", "whatever=1"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		ASSERT_OK(allowed_mount_flags_check_taken_over(flags(kept[i], "noatime"), &err));
}
END_TEST

START_TEST(dangerous_flags_are_not_taken_over)
{
	static const char *const refused[] = {"bind", "rbind", "remount", "move", "shared", "rslave", "loop",
		"loop=/dev/loop0", "offset=4096", "journal_dev=8", "journal_path=/dev/sda", "logdev=/dev/sda",
		"rtdev=/dev/sda", "errors=panic", "X-mount.mkdir"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		ASSERT_FAILS(allowed_mount_flags_check_taken_over(flags("ro", refused[i]), &err),
			ERR_INVALID_ARGUMENT, "not allowed");
}
END_TEST

START_TEST(value_of_a_refused_flag_is_kept_secret)
{
	struct error *err = NULL;

	ck_assert_int_eq(allowed_mount_flags_check(flags("ro", "password=hunter2"), "ext4", &err), -1);
	ck_assert_ptr_nonnull(strstr(err->msg, "password"));
	ck_assert_ptr_null(strstr(err->msg, "hunter2"));
	error_clear(&err);
}
END_TEST

/* Flags are refused if they affect more than the volume, or hide a second option in the first. */
START_TEST(anything_else_is_refused_by_name)
{
	static const char *const refused[] = {"", "bind", "rbind", "remount", "move", "shared", "loop",
		"journal_dev=8", "journal_path=/dev/sda", "logdev=/dev/sda", "norecovery", "noload", "nouuid",
		"data=", "commit=", "commit=x", "commit=1 ", "sunit=8kk", "stripe=1,bind",
		"errors=", "ro,bind", "noatime,", " ro", "RO", "errors=panic", "context=x", "X-mount.mkdir",
		"uid=0"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		char quoted[64];

		int n = (int)strcspn(refused[i], "=");
		snprintf(quoted, sizeof(quoted), "\"%.*s%s\"", n, refused[i], refused[i][n] ? "=..." : "");
		ASSERT_FAILS(allowed_mount_flags_check(flags("ro", refused[i]), "ext4", &err),
			ERR_INVALID_ARGUMENT, quoted);
		ASSERT_FAILS(allowed_mount_flags_check(flags(refused[i], NULL), "xfs", &err),
			ERR_INVALID_ARGUMENT, quoted);
	}
}
END_TEST

UNIT_MAIN("allowed_mount_flags", no_flags_are_fine, flags_are_allowed_for_their_file_system,
	anything_else_is_refused_by_name, value_of_a_refused_flag_is_kept_secret,
	options_of_a_file_system_are_allowed_with_a_number, flags_that_the_go_driver_took_are_taken_over,
	lists_are_taken_apart_and_words_for_the_mount_program_are_left_out,
	dangerous_flags_are_not_taken_over)

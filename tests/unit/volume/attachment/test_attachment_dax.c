/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/attachment_dax.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/mount_table.h"
#include "unit/unit.h"

static enum dax_wish choose(const char *mode, enum volume_usage usage, const char *flag)
{
	CLEANUP(strv_freep) char **flags = NULL;

	strv_add(&flags, "noatime");
	if (flag)
		strv_add(&flags, flag);
	return attachment_dax_choose(mode, usage, flags);
}

START_TEST(app_direct_requires_dax_on_persistent_memory_alone)
{
	ck_assert_int_eq(choose("lvm", USAGE_APP_DIRECT, NULL), DAX_REQUIRED);
	ck_assert_int_eq(choose("direct", USAGE_APP_DIRECT, NULL), DAX_REQUIRED);
	ck_assert_int_eq(choose("fake", USAGE_APP_DIRECT, NULL), DAX_IF_THERE);
	ck_assert_int_eq(choose("lvm", USAGE_FILE_IO, NULL), DAX_AS_IT_IS);
	ck_assert_int_eq(attachment_dax_choose("lvm", USAGE_APP_DIRECT, NULL), DAX_REQUIRED);
}
END_TEST

START_TEST(mount_flags_of_the_request_win)
{
	ck_assert_int_eq(choose("lvm", USAGE_APP_DIRECT, "dax"), DAX_REQUIRED);
	ck_assert_int_eq(choose("lvm", USAGE_APP_DIRECT, "dax=always"), DAX_REQUIRED);
	ck_assert_int_eq(choose("lvm", USAGE_APP_DIRECT, "dax=inode"), DAX_AS_IT_IS);
	ck_assert_int_eq(choose("lvm", USAGE_APP_DIRECT, "dax=never"), DAX_AS_IT_IS);
}
END_TEST

/* Return: whether a flag was added, and is the last. */
static bool adds(enum dax_wish wish, bool has_dax, const char *flag)
{
	CLEANUP(strv_freep) char **flags = NULL;
	const struct blockdev_info info = {.has_dax = has_dax};
	bool added;

	strv_add(&flags, flag);
	added = attachment_dax_add_flag(wish, &info, &flags);
	ck_assert_uint_eq(strv_len(flags), added ? 2 : 1);
	if (added)
		ck_assert_str_eq(flags[1], "dax");
	return added;
}

START_TEST(the_flag_is_added_where_it_has_an_effect_and_is_not_given)
{
	ck_assert(adds(DAX_REQUIRED, true, "noatime"));
	ck_assert(adds(DAX_IF_THERE, true, "daxter"));
	ck_assert(!adds(DAX_IF_THERE, false, "noatime"));
	ck_assert(!adds(DAX_AS_IT_IS, true, "noatime"));
	ck_assert(!adds(DAX_REQUIRED, true, "dax"));
	ck_assert(!adds(DAX_REQUIRED, true, "dax=always"));
}
END_TEST

START_TEST(a_mount_without_dax_is_an_error_if_dax_is_required)
{
	const struct mount_entry with = {.target = (char[]){"/staging"},
		.options = (char[]){"rw"},
		.fs_options = (char[]){"rw,dax=always"}};
	const struct mount_entry without = {.target = (char[]){"/staging"},
		.options = (char[]){"rw"},
		.fs_options = (char[]){"rw,dax=never"}};
	struct error *err = NULL;

	ASSERT_OK(attachment_dax_check_mount(DAX_REQUIRED, "v", &with, &err));
	ASSERT_OK(attachment_dax_check_mount(DAX_IF_THERE, "v", &without, &err));
	ASSERT_OK(attachment_dax_check_mount(DAX_AS_IT_IS, "v", &without, &err));
	ASSERT_FAILS(attachment_dax_check_mount(DAX_REQUIRED, "v", &without, &err), ERR_PRECONDITION,
		"volume v is mounted at /staging without DAX");
}
END_TEST

UNIT_MAIN("attachment_dax", app_direct_requires_dax_on_persistent_memory_alone,
	mount_flags_of_the_request_win, the_flag_is_added_where_it_has_an_effect_and_is_not_given,
	a_mount_without_dax_is_an_error_if_dax_is_required)

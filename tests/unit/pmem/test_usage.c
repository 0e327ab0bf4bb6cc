/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/usage.h"

#include "unit/unit.h"

START_TEST(what_is_named_is_parsed_to_the_same)
{
	static const enum volume_usage all[] = {USAGE_APP_DIRECT, USAGE_FILE_IO};

	ck_assert_str_eq(volume_usage_name(USAGE_APP_DIRECT), "AppDirect");
	ck_assert_str_eq(volume_usage_name(USAGE_FILE_IO), "FileIO");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		enum volume_usage usage = all[1 - i];

		ck_assert(volume_usage_parse(volume_usage_name(all[i]), &usage));
		ck_assert_int_eq(usage, all[i]);
	}
}
END_TEST

START_TEST(other_texts_name_no_usage)
{
	static const char *const others[] = {NULL, "", "fileio", "FileIO ", "FileI", "AppDirectX"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		enum volume_usage usage = USAGE_FILE_IO;

		ck_assert(!volume_usage_parse(others[i], &usage));
		ck_assert_int_eq(usage, USAGE_FILE_IO);
	}
}
END_TEST

START_TEST(only_its_name_is_file_io)
{
	ck_assert(volume_usage_is_file_io("FileIO"));
	ck_assert(!volume_usage_is_file_io("AppDirect"));
	ck_assert(!volume_usage_is_file_io("fileio"));
	ck_assert(!volume_usage_is_file_io(""));
	ck_assert(!volume_usage_is_file_io(NULL));
}
END_TEST

UNIT_MAIN("pmem/usage", what_is_named_is_parsed_to_the_same, other_texts_name_no_usage,
	only_its_name_is_file_io)

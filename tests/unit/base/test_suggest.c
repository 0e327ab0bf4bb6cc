/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <string.h>

#include "base/mem.h"
#include "unit/unit.h"

static const char *suggest(const char *typed)
{
	static const char *const names[] = {"eraseafter", "usage", "cacheSize", "maxPause", "o"};
	struct suggestion s = suggest_begin(typed, strlen(typed));

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		suggest_consider(&s, names[i]);
	return s.name ? s.name : "";
}

START_TEST(a_name_that_differs_in_case_or_few_letters_is_found)
{
	ck_assert_str_eq(suggest("eraseAfter"), "eraseafter");
	ck_assert_str_eq(suggest("erase-after"), "eraseafter");
	ck_assert_str_eq(suggest("cachesizes"), "cacheSize");
	ck_assert_str_eq(suggest("usag"), "usage");
	ck_assert_str_eq(suggest("maxPasue"), "maxPause");
}
END_TEST

START_TEST(a_name_that_is_not_near_suggests_nothing)
{
	char long_name[200];

	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	ck_assert_str_eq(suggest(long_name), "");
	ck_assert_str_eq(suggest("nonsense"), "");
	ck_assert_str_eq(suggest("u"), "");
	ck_assert_str_eq(suggest(""), "");
	/* a short name may differ in one letter only */
	ck_assert_str_eq(suggest("uage"), "usage");
	ck_assert_str_eq(suggest("sage"), "usage");
	ck_assert_str_eq(suggest("uge"), "");
}
END_TEST

START_TEST(the_nearest_name_counts_and_the_first_of_those)
{
	struct suggestion s = suggest_begin("levels", strlen("levels"));

	suggest_consider(&s, "lever");
	suggest_consider(&s, "level");
	suggest_consider(&s, "bevels");
	ck_assert_str_eq(s.name, "level");
}
END_TEST

UNIT_MAIN("suggest", a_name_that_differs_in_case_or_few_letters_is_found,
	a_name_that_is_not_near_suggests_nothing, the_nearest_name_counts_and_the_first_of_those)

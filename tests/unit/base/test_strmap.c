/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strmap.h"
#include "unit/unit.h"

START_TEST(entries_stay_sorted_bytewise)
{
	static const char *const keys[] = {"m", "b", "z", "", "Z", "ba", "\xc3\xbc"};
	static const char *const sorted[] = {"", "Z", "b", "ba", "m", "z", "\xc3\xbc"};
	CLEANUP(strmap_done) struct strmap m = {0};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		strmap_set(&m, keys[i], keys[i]);
	ck_assert_uint_eq(m.n, ARRAY_SIZE(sorted));
	for (size_t i = 0; i < m.n; i++) {
		ck_assert_str_eq(m.entries[i].key, sorted[i]);
		ck_assert_str_eq(strmap_get(&m, sorted[i]), sorted[i]);
	}
}
END_TEST

START_TEST(setting_again_replaces_even_from_the_map_itself)
{
	CLEANUP(strmap_done) struct strmap m = {0};

	strmap_set(&m, "a", "1");
	strmap_set(&m, "a", strmap_get(&m, "a"));
	ck_assert_str_eq(strmap_get(&m, "a"), "1");
	strmap_set(&m, "a", "2");
	ck_assert_uint_eq(m.n, 1);
	ck_assert_str_eq(strmap_get(&m, "a"), "2");
}
END_TEST

START_TEST(what_is_done_is_empty)
{
	CLEANUP(strmap_done) struct strmap m = {0};

	strmap_set(&m, "a", "1");
	strmap_done(&m);
	ck_assert_uint_eq(m.n, 0);
	ck_assert_ptr_null(strmap_get(&m, "a"));
	strmap_set(&m, "b", "2");
	ck_assert_str_eq(strmap_get(&m, "b"), "2");
}
END_TEST

START_TEST(copying_adds_and_overwrites)
{
	CLEANUP(strmap_done) struct strmap from = {0};
	CLEANUP(strmap_done) struct strmap to = {0};

	strmap_set(&from, "a", "new");
	strmap_set(&from, "b", "2");
	strmap_set(&to, "a", "old");
	strmap_set(&to, "c", "3");
	strmap_copy(&to, &from);
	ck_assert_uint_eq(to.n, 3);
	ck_assert_str_eq(strmap_get(&to, "a"), "new");
	ck_assert_str_eq(strmap_get(&to, "b"), "2");
	ck_assert_str_eq(strmap_get(&to, "c"), "3");
}
END_TEST

UNIT_MAIN("base/strmap", entries_stay_sorted_bytewise, setting_again_replaces_even_from_the_map_itself,
	what_is_done_is_empty, copying_adds_and_overwrites)

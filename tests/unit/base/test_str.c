/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "unit/unit.h"

START_TEST(null_equals_only_null)
{
	ck_assert(str_eq(NULL, NULL));
	ck_assert(!str_eq(NULL, ""));
	ck_assert(!str_eq("", NULL));
	ck_assert(str_eq("a", "a"));
	ck_assert(!str_eq("a", "ab"));
	ck_assert(str_empty(NULL) && str_empty("") && !str_empty(" "));
}
END_TEST

START_TEST(starts_and_ends_compare_whole_affixes)
{
	ck_assert(str_starts("abc", "ab") && str_starts("abc", "abc") && str_starts("abc", ""));
	ck_assert(!str_starts("ab", "abc") && !str_starts("abc", "b"));
	ck_assert(str_ends("abc", "bc") && str_ends("abc", "abc") && str_ends("abc", ""));
	ck_assert(!str_ends("bc", "abc") && !str_ends("abc", "b"));
}
END_TEST

static bool is_utf8(const char *s)
{
	return str_is_utf8(s, strlen(s));
}

START_TEST(first_and_last_of_each_length_are_utf8)
{
	static const char *const good[] = {"", "a\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
		"gr\xc3\xbc\xc3\x9f"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(is_utf8(good[i]), "entry %zu", i);
}
END_TEST

START_TEST(overlong_surrogate_truncated_and_stray_bytes_are_not_utf8)
{
	static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc3(", "\xe2(\xac", "\xe2\x82(",
		"\xf0\x9f\x98(", "ok\xc3"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!is_utf8(bad[i]), "entry %zu", i);
	ck_assert(!str_is_utf8("a\0b", 3));
	ck_assert(!str_is_utf8("\xc3\xbc", 1));
}
END_TEST

START_TEST(control_characters_are_c0_del_and_c1)
{
	static const char *const control[] = {"\x01", "\t", "\n", "\x1f", "\x7f", "\xc2\x80", "\xc2\x9f"};
	static const char *const text[] = {"", " ", "~", "\xc2\xa0", "\xc3\x80", "\xe2\x80\xa8"};

	for (size_t i = 0; i < ARRAY_SIZE(control); i++)
		ck_assert_msg(str_is_control(control[i]), "entry %zu", i);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		ck_assert_msg(!str_is_control(text[i]), "entry %zu", i);
}
END_TEST

START_TEST(format_characters_show_nothing_themselves)
{
	static const char *const format[] = {"\xc2\xad", "\xd8\x9c", "\xe2\x80\x8b", "\xe2\x80\x8f",
		"\xe2\x80\xa8", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9",
		"\xef\xbb\xbf", "\xf3\xa0\x80\x81", "\xf3\xa0\x81\xbf"};
	static const char *const text[] = {"", " ", "~", "\n", "\xc2\xac", "\xc2\xae", "\xe2\x80\x8a",
		"\xe2\x80\x90", "\xe2\x80\xa7", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xef\xbb\xbe",
		"\xf0\x9f\x98\x80", "\xff"};

	for (size_t i = 0; i < ARRAY_SIZE(format); i++)
		ck_assert_msg(str_is_format(format[i]), "entry %zu", i);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		ck_assert_msg(!str_is_format(text[i]), "entry %zu", i);
}
END_TEST

START_TEST(format_characters_alone_are_hidden)
{
	char text[] = "a\tb\n\xff\xe2\x80\xae"
		      "dehsinif\xe2\x80\xac \xc3\xbc\xef\xbb\xbf";

	str_hide_formats(text);
	ck_assert_str_eq(text, "a\tb\n\xff?dehsinif? \xc3\xbc?");
}
END_TEST

START_TEST(cleaned_text_is_one_line_of_utf8)
{
	static const struct {
		const char *from, *to;
	} pairs[] = {{"", ""}, {"plain", "plain"}, {"a\tb\r\nc", "a b  c"}, {"\x1b[2J\x7f", "?[2J?"},
		{"\xc2\x85 \xc2\xa0", "? \xc2\xa0"}, {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\xff\xfe", "??"}, {"cut \xe2\x82", "cut ??"}, {"\xe2\x80\xaegnp.exe", "?gnp.exe"},
		{"\xed\xa0\x80", "???"}};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		char text[32];

		snprintf(text, sizeof(text), "%s", pairs[i].from);
		str_clean(text);
		ck_assert_str_eq(text, pairs[i].to);
	}
}
END_TEST

START_TEST(an_array_of_strings_grows_from_null)
{
	CLEANUP(strv_freep) char **v = NULL;

	ck_assert_uint_eq(strv_len(v), 0);
	ck_assert(!strv_contains(v, "a"));
	strv_add(&v, "a");
	strv_add(&v, "b");
	strv_add(&v, "");
	ck_assert_uint_eq(strv_len(v), 3);
	ck_assert_str_eq(v[1], "b");
	ck_assert_ptr_null(v[3]);
	ck_assert(strv_contains(v, "b") && strv_contains(v, "") && !strv_contains(v, "c"));
}
END_TEST

UNIT_MAIN("base/str", null_equals_only_null, starts_and_ends_compare_whole_affixes,
	first_and_last_of_each_length_are_utf8, overlong_surrogate_truncated_and_stray_bytes_are_not_utf8,
	control_characters_are_c0_del_and_c1, cleaned_text_is_one_line_of_utf8,
	format_characters_show_nothing_themselves, format_characters_alone_are_hidden,
	an_array_of_strings_grows_from_null)

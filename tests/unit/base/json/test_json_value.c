/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "base/str.h"
#include "unit/unit.h"

static struct error *err;

START_TEST(a_string_replaces_what_was_there)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("\"new\""));
	CLEANUP(free_charp) char *value = strdup("old");

	ASSERT_OK(json_read_str(r, &value, &err));
	ck_assert_str_eq(value, "new");
}
END_TEST

START_TEST(other_types_leave_the_value_alone)
{
	CLEANUP(json_reader_freep) struct json_reader *number = json_reader_new(span_of("7"));
	CLEANUP(json_reader_freep) struct json_reader *text = json_reader_new(span_of("\"7\""));
	CLEANUP(free_charp) char *value = strdup("old");
	uint64_t n = 3;
	bool flag = true;

	ASSERT_FAILS(json_read_str(number, &value, &err), ERR_INVALID_ARGUMENT, "found");
	ck_assert_str_eq(value, "old");
	ASSERT_FAILS(json_read_u64(text, &n, &err), ERR_INVALID_ARGUMENT, "found");
	ck_assert_uint_eq(n, 3);
	CLEANUP(json_reader_freep) struct json_reader *null = json_reader_new(span_of("null"));
	ASSERT_FAILS(json_read_bool(null, &flag, &err), ERR_INVALID_ARGUMENT, "found");
	ck_assert(flag);
}
END_TEST

START_TEST(numbers_are_whole_and_fit)
{
	CLEANUP(json_reader_freep)
	struct json_reader *most = json_reader_new(span_of("18446744073709551615"));
	CLEANUP(json_reader_freep)
	struct json_reader *more = json_reader_new(span_of("18446744073709551616"));
	CLEANUP(json_reader_freep) struct json_reader *part = json_reader_new(span_of("1.5"));
	uint64_t n;

	ASSERT_OK(json_read_u64(most, &n, &err));
	ck_assert_uint_eq(n, UINT64_MAX);
	ASSERT_FAILS(json_read_u64(more, &n, &err), ERR_INVALID_ARGUMENT, "18446744073709551616");
	ASSERT_FAILS(json_read_u64(part, &n, &err), ERR_INVALID_ARGUMENT, "1.5");
}
END_TEST

START_TEST(an_array_holds_strings_only)
{
	CLEANUP(json_reader_freep) struct json_reader *good = json_reader_new(span_of("[\"a\",\"b\"]"));
	CLEANUP(json_reader_freep) struct json_reader *mixed = json_reader_new(span_of("[\"a\",1]"));
	CLEANUP(strv_freep) char **v = NULL;
	CLEANUP(strv_freep) char **other = NULL;

	ASSERT_OK(json_read_strv(good, &v, &err));
	ck_assert_uint_eq(strv_len(v), 2);
	ck_assert_str_eq(v[1], "b");
	ASSERT_FAILS(json_read_strv(mixed, &other, &err), ERR_INVALID_ARGUMENT, "array of strings");
}
END_TEST

UNIT_MAIN("base/json/json_value", a_string_replaces_what_was_there, other_types_leave_the_value_alone,
	numbers_are_whole_and_fit, an_array_holds_strings_only)

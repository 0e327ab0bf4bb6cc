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

struct pair {
	uint64_t a;
	uint64_t b;
};

static int read_pair(void *user, const char *key, struct json_reader *r, struct error **why)
{
	struct pair *p = user;

	if (str_eq(key, "inner"))
		return json_read_object(r, read_pair, p, why);
	if (str_eq(key, "a") || str_eq(key, "b"))
		return json_read_u64(r, *key == 'a' ? &p->a : &p->b, why);
	return json_skip_value(r, why);
}

START_TEST(members_of_a_document_are_read_by_key)
{
	static const char *const broken[] = {
		"", "[]", "{\"a\":1", "{\"a\":1}x", "{\"a\":1}{}", "{\"inner\":7}"};
	struct pair p = {0};

	ASSERT_OK(json_read_document(
		span_of("{\"other\":[{}],\"inner\":{\"b\":2},\"a\":1}\n"), read_pair, &p, &err));
	ck_assert_uint_eq(p.a, 1);
	ck_assert_uint_eq(p.b, 2);
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		CLEANUP(error_freep) struct error *why = NULL;
		ck_assert_msg(
			json_read_document(span_of(broken[i]), read_pair, &p, &why) < 0, "%s", broken[i]);
		ck_assert_int_eq(why->code, ERR_INVALID_ARGUMENT);
	}
	ASSERT_FAILS(json_read_document(span_of("{\"inner\":{\"a\":\"x\"}}"), read_pair, &p, &err),
		ERR_INVALID_ARGUMENT, "\"inner\": \"a\": ");
}
END_TEST

UNIT_MAIN("base/json/json_value", a_string_replaces_what_was_there, other_types_leave_the_value_alone,
	numbers_are_whole_and_fit, an_array_holds_strings_only, members_of_a_document_are_read_by_key)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "unit/unit.h"

START_TEST(commas_stand_between_values_only)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);

	json_object(&w);
	json_key(&w, "empty");
	json_object(&w);
	json_object_end(&w);
	json_key(&w, "list");
	json_array(&w);
	json_array(&w);
	json_array_end(&w);
	json_u64(&w, UINT64_MAX);
	json_bool(&w, true);
	json_str(&w, NULL);
	json_raw(&w, "-1.5e3");
	json_array_end(&w);
	json_key_str(&w, "s", "v");
	json_key_u64(&w, "n", 0);
	json_key_bool(&w, "b", false);
	json_object_end(&w);
	ck_assert_str_eq(buf_str(&b), "{\"empty\":{},\"list\":[[],18446744073709551615,true,null,-1.5e3],"
				      "\"s\":\"v\",\"n\":0,\"b\":false}");
}
END_TEST

static void check_string(const char *value, const char *written)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);

	json_str(&w, value);
	ck_assert_str_eq(buf_str(&b), written);
}

START_TEST(strings_are_escaped_where_json_demands_it)
{
	check_string("", "\"\"");
	check_string("a\"b\\c/", "\"a\\\"b\\\\c/\"");
	check_string("\n\r\t", "\"\\n\\r\\t\"");
	check_string("\x01 \x1f\x7f", "\"\\u0001 \\u001f\x7f\"");
	check_string("\xdf\xbf\xe0\xa0\x80", "\"\xdf\xbf\xe0\xa0\x80\"");
	check_string("\xef\xbf\xbf\xf0\x90\x80\x80", "\"\xef\xbf\xbf\xf0\x90\x80\x80\"");
	check_string("\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"");
}
END_TEST

START_TEST(bytes_that_are_not_utf8_are_replaced)
{
	check_string("a\xff"
		     "b\x80",
		"\"a\\ufffdb\\ufffd\"");
	check_string("\xc3", "\"\\ufffd\"");
	check_string("\xc3\"", "\"\\ufffd\\\"\"");
	check_string("\xe2\x82", "\"\\ufffd\\ufffd\"");
	check_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	check_string("\xf0\x9f\x98", "\"\\ufffd\\ufffd\\ufffd\"");
}
END_TEST

START_TEST(keys_are_escaped_too)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);

	json_object(&w);
	json_key_bool(&w, "a\"\n", true);
	json_object_end(&w);
	ck_assert_str_eq(buf_str(&b), "{\"a\\\"\\n\":true}");
}
END_TEST

START_TEST(the_limit_of_the_buffer_is_kept)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(8);
	struct json_writer w = JSON_WRITER(&b);

	json_array(&w);
	json_str(&w, "abcdefgh");
	json_array_end(&w);
	ASSERT_FAILS(buf_check(&b, "list", &err), ERR_EXHAUSTED, "list: more than 8 bytes");
}
END_TEST

UNIT_MAIN("base/json/json_write", commas_stand_between_values_only, strings_are_escaped_where_json_demands_it,
	bytes_that_are_not_utf8_are_replaced, keys_are_escaped_too, the_limit_of_the_buffer_is_kept)

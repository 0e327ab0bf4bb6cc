/* SPDX-License-Identifier: Apache-2.0 */
#include "os/yaml.h"

#include "base/mem.h"
#include "unit/unit.h"

static struct buf out;

static void becomes(const char *yaml, const char *json)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(4096);
	ASSERT_OK(yaml_to_json(span_of(yaml), &out, &err));
	ck_assert_str_eq(buf_str(&out), json);
	buf_done(&out);
}

static void is_refused(const char *yaml, const char *why)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(4096);
	ASSERT_FAILS(yaml_to_json(span_of(yaml), &out, &err), ERR_INVALID_ARGUMENT, why);
	buf_done(&out);
}

START_TEST(maps_lists_and_scalars_become_json)
{
	becomes("a: 1\nb:\n- x\n- y: true\n  z: {}\n",
		"{\"a\":\"1\",\"b\":[\"x\",{\"y\":\"true\",\"z\":{}}]}");
	becomes("{\"a\": [1, \"two\"]}", "{\"a\":[\"1\",\"two\"]}");
	becomes("- |\n  two\n  lines\n", "[\"two\\nlines\\n\"]");
}
END_TEST

START_TEST(plain_nothing_is_null_and_quoted_nothing_is_not)
{
	becomes("a:\nb: ~\nc: null\nd: \"\"\ne: 'null'\n",
		"{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\",\"e\":\"null\"}");
	becomes("", "null");
	becomes("# only words\n", "null");
}
END_TEST

START_TEST(what_makes_a_small_text_a_large_one_is_refused)
{
	is_refused("a: &x 1\nb: *x\n", "line 1: an anchor");
	is_refused("a: 1\nb: *x\n", "line 2: an alias");
	is_refused("a: 1\n---\nb: 2\n", "a second document");
}
END_TEST

START_TEST(keys_that_are_no_scalars_are_refused)
{
	is_refused("? [a]\n: b\n", "a key that is not a scalar");
}
END_TEST

START_TEST(malformed_text_is_refused_with_its_line)
{
	is_refused("a: 1\nb: [\n", "line 3");
	is_refused("a: \"\\x\"\n", "line 1");
	is_refused("\x80", "YAML line");
}
END_TEST

START_TEST(depth_is_bounded)
{
	CLEANUP(free_charp) char *deep = x_malloc(201);

	memset(deep, '[', 200);
	deep[200] = '\0';
	is_refused(deep, "more than 64 levels");
}
END_TEST

START_TEST(the_limit_of_the_buffer_holds)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(8);
	ASSERT_FAILS(yaml_to_json(span_of("a: 123456789"), &out, &err), ERR_EXHAUSTED, "YAML");
	buf_done(&out);
}
END_TEST

UNIT_MAIN("os/yaml", maps_lists_and_scalars_become_json, plain_nothing_is_null_and_quoted_nothing_is_not,
	what_makes_a_small_text_a_large_one_is_refused, keys_that_are_no_scalars_are_refused,
	malformed_text_is_refused_with_its_line, depth_is_bounded, the_limit_of_the_buffer_holds)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_scan.h"
#include "base/mem.h"
#include "unit/unit.h"

/* Scans a copy of @text on the heap, without a NUL behind it, so that the address sanitizer reports reads
 * beyond its end. */
static int scan_whole(const char *text, size_t n, struct error **err)
{
	CLEANUP(free_charp) char *copy = x_malloc(n);
	struct json_scan s = JSON_SCAN(((struct span){(uint8_t *)copy, n}));
	struct span value;

	memcpy(copy, text, n);
	if (json_scan_value(&s, &value, err) < 0)
		return -1;
	return json_scan_end(&s, err);
}

static bool reader_takes(const char *text, size_t n)
{
	CLEANUP(json_reader_freep)
	struct json_reader *r = json_reader_new((struct span){(const uint8_t *)text, n});
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event = {.type = JSON_NULL};

	while (event.type != JSON_END) {
		if (json_next(r, &event, &err) < 0)
			return false;
	}
	return true;
}

static bool scan_takes(const char *text, size_t n)
{
	CLEANUP(error_freep) struct error *err = NULL;

	return scan_whole(text, n, &err) == 0;
}

static const char *const good[] = {"null", " true ", "false", "0", "-0", "12", "-1.50e+10", "1E5", "0.1e-1",
	"\"\"", "\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\\u12aF\"", "\"12345678\"", "\"1234567\\n12345678\"", "[]",
	"[ ]", "{}", "{ }", "[1]", "[1,2 , 3]", "[[],{},[{}]]", "{\"a\":1}",
	" { \"a\" : [ 1 , { \"b\" : null } ] , \"\" : \"x\" } \r\n\t", "[{\"a\":[]},{\"b\":{}}]", "\"\x7f\""};

static const char *const bad[] = {"", " ", "nul", "nulll", "tru", "True", "+1", "01", "-", "1.", ".5", "1e",
	"1e+", "0x1", "1 2", "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"a\nb\"",
	"\"12345678\x1f\"", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "{\"a\"",
	"{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{1:2}", "{\"a\" 1}", "{\"a\":1]",
	"{\"a\":1 \"b\":2}", "{a:1}", "]", "}", ",", ":", "'a'", "[1]]", "{}{}", "\\", "[nul]", "NaN",
	"[\"a\":1]", "// x\n1"};

START_TEST(json_is_taken)
{
	CLEANUP(error_freep) struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ASSERT_OK(scan_whole(good[i], strlen(good[i]), &err));
}
END_TEST

START_TEST(anything_else_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!scan_takes(bad[i], strlen(bad[i])), "<%s> is taken", bad[i]);
	ck_assert(!scan_takes("\"a\0b\"", 5));
	ck_assert(!scan_takes("\"\\\0\"", 4));
	ck_assert(!scan_takes("1\0", 2));
}
END_TEST

/* Each text with each byte cut off, or replaced. */
START_TEST(the_reader_agrees_about_mutants)
{
	static const char bytes[] = "\"\\{}[]:,0.-e tn\x01/u";

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CLEANUP(free_charp) char *text = x_strdup(good[i]);
		size_t n = strlen(text);

		for (size_t at = 0; at < n; at++) {
			char was = text[at];

			ck_assert_msg(
				scan_takes(text, at) == reader_takes(text, at), "<%.*s>", (int)at, text);
			for (size_t b = 0; b < sizeof(bytes) - 1; b++) {
				text[at] = bytes[b];
				ck_assert_msg(scan_takes(text, n) == reader_takes(text, n), "<%s>", text);
			}
			text[at] = was;
		}
	}
}
END_TEST

START_TEST(the_byte_that_is_wrong_is_named)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_FAILS(scan_whole("{\"a\" 1}", 7, &err), ERR_INVALID_ARGUMENT, "byte 5: expected a colon");
	ASSERT_FAILS(scan_whole("[1, 2", 5, &err), ERR_INVALID_ARGUMENT, "byte 5: expected a comma or ]");
	ASSERT_FAILS(scan_whole("{} x", 4, &err), ERR_INVALID_ARGUMENT, "byte 3: expected the end");
}
END_TEST

static void nest(struct buf *b, unsigned levels)
{
	for (unsigned i = 0; i < levels; i++)
		buf_adds(b, i % 2 ? "{\"a\":" : "[");
	buf_adds(b, "1");
	for (unsigned i = levels; i > 0; i--)
		buf_adds(b, i % 2 ? "]" : "}");
}

START_TEST(nesting_ends_at_64_levels)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);

	nest(&b, 64);
	ASSERT_OK(scan_whole(buf_str(&b), b.len, &err));
	buf_reset(&b);
	nest(&b, 65);
	ASSERT_FAILS(scan_whole(buf_str(&b), b.len, &err), ERR_INVALID_ARGUMENT, "levels");
}
END_TEST

START_TEST(levels_that_were_entered_count)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct span key, value;
	bool more;

	nest(&b, 65);
	struct json_scan s = JSON_SCAN(buf_span(&b));
	ASSERT_OK(json_scan_enter(&s, JSON_ARRAY, &err));
	ASSERT_OK(json_scan_element(&s, &more, &err));
	ASSERT_OK(json_scan_enter(&s, JSON_OBJECT, &err));
	ASSERT_OK(json_scan_member(&s, &key, &more, &err));
	ASSERT_FAILS(json_scan_value(&s, &value, &err), ERR_INVALID_ARGUMENT, "levels");
}
END_TEST

static void add_span(struct buf *out, struct span s)
{
	buf_add(out, s.p, s.n);
	buf_addc(out, ' ');
}

static int list_elements(struct json_scan *s, struct buf *out, struct error **err)
{
	struct span value;
	bool more;

	if (json_scan_enter(s, JSON_ARRAY, err) < 0 || json_scan_element(s, &more, err) < 0)
		return -1;
	while (more) {
		if (json_scan_value(s, &value, err) < 0)
			return -1;
		add_span(out, value);
		if (json_scan_element(s, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int list_value(struct json_scan *s, struct buf *out, struct error **err)
{
	struct span value;

	if (json_scan_peek(s) == JSON_ARRAY)
		return list_elements(s, out, err);
	if (json_scan_value(s, &value, err) < 0)
		return -1;
	add_span(out, value);
	return 0;
}

/* Members, and the elements of arrays in them. */
static int list(const char *text, struct buf *out, struct error **err)
{
	struct json_scan s = JSON_SCAN(span_of(text));
	struct span key;
	bool more;

	if (json_scan_enter(&s, JSON_OBJECT, err) < 0 || json_scan_member(&s, &key, &more, err) < 0)
		return -1;
	while (more) {
		add_span(out, key);
		if (list_value(&s, out, err) < 0 || json_scan_member(&s, &key, &more, err) < 0)
			return -1;
	}
	return json_scan_end(&s, err);
}

START_TEST(members_and_elements_are_handed_out_as_they_are_written)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);

	ASSERT_OK(list(" { \"a\" : {\"x\":[ 1]} , \"b\\n\":[ 1.50 , \"s\\\"\" ,{} ],\"c\":[],\"d\" : null} ",
		&out, &err));
	ck_assert_str_eq(buf_str(&out), "\"a\" {\"x\":[ 1]} \"b\\n\" 1.50 \"s\\\"\" {} \"c\" \"d\" null ");
	buf_reset(&out);
	ASSERT_OK(list("{}", &out, &err));
	ck_assert_str_eq(buf_str(&out), "");
}
END_TEST

START_TEST(what_is_wrong_between_members_is_found)
{
	static const char *const texts[] = {"[]", "{", "{,}", "{\"a\":1", "{\"a\":1,}", "{\"a\":1 \"b\":2}",
		"{\"a\":1]", "{\"a\":[1}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1 2]}", "{\"a\":1}}",
		"1"};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		ASSERT_FAILS(list(texts[i], &out, &err), ERR_INVALID_ARGUMENT, "JSON: byte");
}
END_TEST

START_TEST(the_first_byte_tells_the_type)
{
	static const struct {
		const char *text;
		enum json_type type;
	} cases[] = {{" {}", JSON_OBJECT}, {"[", JSON_ARRAY}, {"\"\"", JSON_STRING}, {"true", JSON_BOOL},
		{"false", JSON_BOOL}, {"null", JSON_NULL}, {"-1", JSON_NUMBER}, {"7", JSON_NUMBER},
		{"", JSON_END}, {"]", JSON_END}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_scan s = JSON_SCAN(span_of(cases[i].text));

		ck_assert_int_eq(json_scan_peek(&s), cases[i].type);
	}
}
END_TEST

START_TEST(keys_are_compared_as_go_does)
{
	static const char *const same[] = {"\"NodeNames\"", "\"nodenames\"", "\"NODENAMES\"",
		"\"Node\\u004eames\"", "\"\\u006eodeNames\""};
	static const char *const other[] = {"\"\"", "\"NodeName\"", "\"NodeNamess\"", "\"Node\\names\"",
		"\"Node\\u014eames\"", "\"NodeName\\u0000\""};

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		ck_assert(json_scan_key_is(span_of(same[i]), "NodeNames"));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		ck_assert(!json_scan_key_is(span_of(other[i]), "NodeNames"));
}
END_TEST

UNIT_MAIN("base/json/json_scan", json_is_taken, anything_else_is_refused, the_reader_agrees_about_mutants,
	the_byte_that_is_wrong_is_named, nesting_ends_at_64_levels, levels_that_were_entered_count,
	members_and_elements_are_handed_out_as_they_are_written, what_is_wrong_between_members_is_found,
	the_first_byte_tells_the_type, keys_are_compared_as_go_does)

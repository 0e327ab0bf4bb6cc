/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "unit/unit.h"

/* Events as one short text each, with a blank between them; an error ends the list as "!". */
static void transcribe(struct span input, struct buf *out)
{
	static const char *const names[] = {[JSON_END] = ".",
		[JSON_NULL] = "null",
		[JSON_OBJECT] = "{",
		[JSON_OBJECT_END] = "}",
		[JSON_ARRAY] = "[",
		[JSON_ARRAY_END] = "]",
		[JSON_NUMBER] = "#",
		[JSON_STRING] = "'",
		[JSON_KEY] = ":",
		[JSON_BOOL] = "?"};
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(input);
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event = {.type = JSON_NULL};

	while (event.type != JSON_END) {
		if (json_next(r, &event, &err) < 0) {
			ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
			buf_addc(out, '!');
			return;
		}
		buf_adds(out, names[event.type]);
		if (event.type == JSON_BOOL)
			buf_addc(out, event.boolean ? '1' : '0');
		if (event.text) {
			ck_assert_uint_eq(strlen(event.text), event.len);
			buf_adds(out, event.text);
		}
		if (event.type != JSON_END)
			buf_addc(out, ' ');
	}
}

static void check_events(const char *input, const char *events)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);

	transcribe(span_of(input), &b);
	ck_assert_msg(strcmp(buf_str(&b), events) == 0, "<%s> gives <%s>", input, buf_str(&b));
}

START_TEST(every_kind_of_value_becomes_its_event)
{
	check_events(" {\"a\" : [null,true,false], \"b\":{},\n\"\":\"x\\ty\"}\r\n\t",
		"{ :a [ null ?1 ?0 ] :b { } : 'x\ty } .");
	check_events("[]", "[ ] .");
}
END_TEST

START_TEST(the_document_may_be_a_bare_value)
{
	check_events("5", "#5 .");
	check_events(" 5 ", "#5 .");
	check_events("\"x\"", "'x .");
	check_events("\"\"", "' .");
	check_events("null", "null .");
	check_events("true ", "?1 .");
}
END_TEST

START_TEST(numbers_are_handed_out_as_written)
{
	check_events("[0,-0,12345678901234567890123,1.50,1e400,-2E+1,3e-5]",
		"[ #0 #-0 #12345678901234567890123 #1.50 #1e400 #-2E+1 #3e-5 ] .");
}
END_TEST

START_TEST(escapes_are_decoded)
{
	check_events("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00fc\\ud83d\\ude00\"",
		"'\"\\/\b\f\n\r\t\xc3\xbc\xf0\x9f\x98\x80 .");
	check_events("{\"\\u0061\":1}", "{ :a #1 } .");
}
END_TEST

START_TEST(what_is_not_json_is_refused)
{
	static const char *const bad[] = {"", " ", "{", "[", "[1", "[1,", "[1,]", "[,1]", "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{,}", "{1:2}", "{\"a\" 1}", "[1 2]", "]", "}", "[}", "{]", "01",
		"+1", ".5", "1.", "1e", "-", "0x1", "NaN", "nul", "nulll", "True", "'a'", "\"a", "\"\\x\"",
		"\"\\u12g4\"", "\"\t\"", "\"\n\"", "// c\n1", "/* c */1", "\xef\xbb\xbf{}", "a", "[1;2]"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(10000);

		transcribe(span_of(bad[i]), &b);
		ck_assert_msg(strchr(buf_str(&b), '!'), "<%s> gives <%s>", bad[i], buf_str(&b));
	}
}
END_TEST

START_TEST(bytes_behind_the_document_are_refused)
{
	check_events("{} {}", "{ } !");
	check_events("[] 1", "[ ] !");
	check_events("{}}", "{ } !");
	check_events("1 2", "#1 !");
	check_events("1,", "#1 !");
	check_events("{} \"abc", "{ } !");
	check_events("true\"", "?1 !");
	check_events("{}\x0b", "{ } !");
}
END_TEST

START_TEST(bytes_behind_the_document_are_found_in_later_pieces)
{
	CLEANUP(buf_done) struct buf input = BUF_INIT(100000);
	CLEANUP(buf_done) struct buf events = BUF_INIT(100);

	buf_addf(&input, "{}%50000s", "");
	transcribe(buf_span(&input), &events);
	ck_assert_str_eq(buf_str(&events), "{ } .");
	buf_addc(&input, 'x');
	buf_reset(&events);
	transcribe(buf_span(&input), &events);
	ck_assert_str_eq(buf_str(&events), "{ } !");
}
END_TEST

START_TEST(a_nul_is_refused_wherever_it_stands)
{
	static const struct {
		const char *text;
		size_t n;
	} inputs[] = {{"\"\\u0000\"", 8}, {"\"a\\u0000b\"", 10}, {"{\"a\\u0000\":1}", 13}, {"\"a\0b\"", 5},
		{"[\0]", 3}, {"[]\0", 3}, {"\0", 1}};

	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(100);

		transcribe((struct span){(const uint8_t *)inputs[i].text, inputs[i].n}, &b);
		ck_assert_msg(strchr(buf_str(&b), '!'), "entry %zu gives <%s>", i, buf_str(&b));
	}
}
END_TEST

START_TEST(strings_that_are_not_utf8_are_refused)
{
	check_events("\"\xff\"", "!");
	check_events("\"\xc3\"", "!");
	check_events("\"\xc0\xaf\"", "!");
	check_events("\"\xed\xa0\x80\"", "!");
	check_events("\"\xf5\x80\x80\x80\"", "!");
	check_events("\"\\udc00\"", "!");
	check_events("{\"\xc0\xaf\":1}", "{ !");
}
END_TEST

static void nest(struct buf *b, unsigned levels)
{
	for (unsigned i = 0; i < levels; i++)
		buf_adds(b, i % 2 ? "{\"a\":" : "[");
	if (levels % 2 == 0)
		buf_adds(b, "1");
	for (unsigned i = levels; i-- > 0;)
		buf_addc(b, i % 2 ? '}' : ']');
}

START_TEST(nesting_ends_at_64_levels)
{
	CLEANUP(error_freep) struct error *err = NULL;

	for (unsigned levels = 63; levels <= 66; levels++) {
		CLEANUP(buf_done) struct buf input = BUF_INIT(10000);
		CLEANUP(buf_done) struct buf events = BUF_INIT(10000);

		nest(&input, levels);
		transcribe(buf_span(&input), &events);
		ck_assert_msg(
			!strchr(buf_str(&events), '!') == (levels <= 64), "%u: %s", levels, buf_str(&events));
	}
	CLEANUP(json_reader_freep)
	struct json_reader *r = json_reader_new(
		span_of("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["));
	struct json_event event;
	for (unsigned i = 0; i < 64; i++)
		ASSERT_OK(json_next(r, &event, &err));
	ASSERT_FAILS(json_next(r, &event, &err), ERR_INVALID_ARGUMENT, "more than 64 levels");
}
END_TEST

START_TEST(closed_levels_do_not_count)
{
	CLEANUP(json_reader_freep) struct json_reader *r = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf input = BUF_INIT(100000);
	struct json_event event;

	buf_addc(&input, '[');
	for (unsigned i = 0; i < 10000; i++)
		buf_adds(&input, i ? ",[{}]" : "[{}]");
	buf_addc(&input, ']');
	r = json_reader_new(buf_span(&input));
	for (unsigned i = 0; i < 40002; i++) {
		ASSERT_OK(json_next(r, &event, &err));
		ck_assert_int_ne(event.type, JSON_END);
	}
	ASSERT_OK(json_next(r, &event, &err));
	ck_assert_int_eq(event.type, JSON_END);
}
END_TEST

/* Every place of the text comes to lie on a border between pieces (4 KiB) once. */
START_TEST(texts_may_span_pieces_at_any_byte)
{
	static const char text[] = "{\"k\\u00e4y\":[\"\\ud83d\\ude00\xe2\x82\xac\\n\",-12.5e3,false,null]}";

	for (size_t pad = 4096 - sizeof(text); pad <= 4097; pad++) {
		CLEANUP(buf_done) struct buf input = BUF_INIT(10000);
		CLEANUP(buf_done) struct buf events = BUF_INIT(1000);

		buf_addf(&input, "%*s%s", (int)pad, "", text);
		transcribe(buf_span(&input), &events);
		ck_assert_str_eq(buf_str(&events),
			"{ :k\xc3\xa4y [ '\xf0\x9f\x98\x80\xe2\x82\xac\n #-12.5e3 ?0 null ] } .");
	}
}
END_TEST

START_TEST(a_string_may_be_longer_than_many_pieces)
{
	enum { LEN = 3000001 };
	CLEANUP(json_reader_freep) struct json_reader *r = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf input = BUF_INIT(LEN + 100);
	struct json_event event;

	buf_addc(&input, '"');
	memset(buf_reserve(&input, LEN), 'x', LEN);
	buf_commit(&input, LEN);
	buf_addc(&input, '"');
	r = json_reader_new(buf_span(&input));
	ASSERT_OK(json_expect(r, JSON_STRING, &event, &err));
	ck_assert_uint_eq(event.len, LEN);
	ck_assert_uint_eq(strspn(event.text, "x"), LEN);
	ASSERT_OK(json_expect(r, JSON_END, &event, &err));
}
END_TEST

START_TEST(events_before_the_fault_are_handed_out_and_the_fault_stays)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("[1,2,x]"));
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event;

	ASSERT_OK(json_expect(r, JSON_ARRAY, &event, &err));
	ASSERT_OK(json_expect(r, JSON_NUMBER, &event, &err));
	ASSERT_OK(json_expect(r, JSON_NUMBER, &event, &err));
	ASSERT_FAILS(json_next(r, &event, &err), ERR_INVALID_ARGUMENT, "malformed JSON near byte");
	ASSERT_FAILS(json_next(r, &event, &err), ERR_INVALID_ARGUMENT, "malformed JSON near byte");
}
END_TEST

START_TEST(the_end_may_be_asked_for_again)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("[]"));
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event;

	ASSERT_OK(json_expect(r, JSON_ARRAY, &event, &err));
	ASSERT_OK(json_expect(r, JSON_ARRAY_END, &event, &err));
	ASSERT_OK(json_expect(r, JSON_END, &event, &err));
	ASSERT_OK(json_expect(r, JSON_END, &event, &err));
}
END_TEST

START_TEST(expecting_another_type_names_both_and_leaves_the_output)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("[1]"));
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event = {.type = JSON_END};

	ASSERT_FAILS(json_expect(r, JSON_OBJECT, &event, &err), ERR_INVALID_ARGUMENT,
		"expected an object, found an array");
	ck_assert_int_eq(event.type, JSON_END);
}
END_TEST

START_TEST(skip_ends_behind_the_value)
{
	CLEANUP(json_reader_freep)
	struct json_reader *r = json_reader_new(span_of("{\"a\":{\"b\":[1,{}],\"c\":[]},\"d\":7,\"e\":[]}"));
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event;

	ASSERT_OK(json_expect(r, JSON_OBJECT, &event, &err));
	for (const char *key = "ade"; *key; key++) {
		ASSERT_OK(json_expect(r, JSON_KEY, &event, &err));
		ck_assert_int_eq(event.text[0], *key);
		ASSERT_OK(json_next(r, &event, &err));
		ASSERT_OK(json_skip(r, &event, &err));
	}
	ASSERT_OK(json_expect(r, JSON_OBJECT_END, &event, &err));
	ASSERT_OK(json_expect(r, JSON_END, &event, &err));
	ASSERT_FAILS(json_skip(r, &event, &err), ERR_INVALID_ARGUMENT, "expected a value, found the end");
}
END_TEST

START_TEST(strings_that_are_no_text_are_skipped_and_not_copied)
{
	static const char text[] = "[{\"a\\u0000\":[\"\\u0000\",\"\\udc00\"]},\"\\u0000\",1]";
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of(text));
	CLEANUP(json_reader_freep) struct json_reader *again = json_reader_new(span_of(text));
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);
	struct json_event event;

	ASSERT_OK(json_expect(r, JSON_ARRAY, &event, &err));
	ASSERT_OK(json_skip_value(r, &err));
	ASSERT_OK(json_skip_value(r, &err));
	ASSERT_OK(json_expect(r, JSON_NUMBER, &event, &err));
	ASSERT_OK(json_expect(r, JSON_ARRAY_END, &event, &err));
	ASSERT_OK(json_next(again, &event, &err));
	ASSERT_FAILS(json_copy(again, &event, &w, &err), ERR_INVALID_ARGUMENT, "NUL or invalid UTF-8");
	ASSERT_FAILS(json_next(again, &event, &err), ERR_INVALID_ARGUMENT, "NUL or invalid UTF-8");
}
END_TEST

START_TEST(a_strict_reader_refuses_odd_types_but_null)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("[5,null,5]"));
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event;

	ASSERT_OK(json_expect(r, JSON_ARRAY, &event, &err));
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(json_next(r, &event, &err));
		ASSERT_OK(json_skip_odd(r, &event, &err));
		json_reader_be_strict(r);
	}
	ASSERT_OK(json_next(r, &event, &err));
	ASSERT_FAILS(json_skip_odd(r, &event, &err), ERR_INVALID_ARGUMENT, "a number has the wrong type");
}
END_TEST

START_TEST(skip_refuses_what_begins_no_value)
{
	static const enum json_type types[] = {JSON_END, JSON_KEY, JSON_OBJECT_END, JSON_ARRAY_END};
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("[]"));
	CLEANUP(error_freep) struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct json_event event = {.type = types[i]};

		ASSERT_FAILS(json_skip(r, &event, &err), ERR_INVALID_ARGUMENT, "expected a value");
	}
}
END_TEST

START_TEST(copy_keeps_order_numbers_and_text)
{
	static const char text[] = "{\"z\":[1.50,-0,1e400,true,false,null,[],{}],\"a\":\"\\\"\\n\xc3\xbc\","
				   "\"a\":{\"n\":{}}}";
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of(text));
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);
	struct json_event event;

	ASSERT_OK(json_next(r, &event, &err));
	ASSERT_OK(json_copy(r, &event, &w, &err));
	ck_assert_str_eq(buf_str(&b), text);
	ASSERT_OK(json_expect(r, JSON_END, &event, &err));
}
END_TEST

START_TEST(copy_and_skip_report_a_document_that_breaks_off)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);
	struct json_event event;

	for (unsigned copy = 0; copy < 2; copy++) {
		CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of("[[1,2"));

		ASSERT_OK(json_next(r, &event, &err));
		ASSERT_FAILS(copy ? json_copy(r, &event, &w, &err) : json_skip(r, &event, &err),
			ERR_INVALID_ARGUMENT, "premature EOF");
	}
}
END_TEST

UNIT_MAIN("base/json/json", every_kind_of_value_becomes_its_event, the_document_may_be_a_bare_value,
	numbers_are_handed_out_as_written, escapes_are_decoded, what_is_not_json_is_refused,
	bytes_behind_the_document_are_refused, bytes_behind_the_document_are_found_in_later_pieces,
	a_nul_is_refused_wherever_it_stands, strings_that_are_not_utf8_are_refused, nesting_ends_at_64_levels,
	closed_levels_do_not_count, texts_may_span_pieces_at_any_byte,
	a_string_may_be_longer_than_many_pieces, events_before_the_fault_are_handed_out_and_the_fault_stays,
	the_end_may_be_asked_for_again, expecting_another_type_names_both_and_leaves_the_output,
	skip_ends_behind_the_value, strings_that_are_no_text_are_skipped_and_not_copied,
	a_strict_reader_refuses_odd_types_but_null, skip_refuses_what_begins_no_value,
	copy_keeps_order_numbers_and_text, copy_and_skip_report_a_document_that_breaks_off)

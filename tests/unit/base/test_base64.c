/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "unit/unit.h"

static struct buf out;

static void decodes(const char *text, const char *content)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(64);
	ASSERT_OK(base64_decode(text, &out, &err));
	ck_assert_str_eq(buf_str(&out), content);
	buf_done(&out);
}

static void encodes(const char *content, const char *text)
{
	out = BUF_INIT(64);
	base64_encode(span_of(content), &out);
	ck_assert_str_eq(buf_str(&out), text);
	buf_done(&out);
}

static void is_refused(const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(64);
	ASSERT_FAILS(base64_decode(text, &out, &err), ERR_INVALID_ARGUMENT, "base64");
	buf_done(&out);
}

/* RFC 4648 section 10 */
START_TEST(examples_of_the_standard_are_decoded)
{
	decodes("", "");
	decodes("Zg==", "f");
	decodes("Zm8=", "fo");
	decodes("Zm9v", "foo");
	decodes("Zm9vYg==", "foob");
	decodes("Zm9vYmE=", "fooba");
	decodes("Zm9vYmFy", "foobar");
}
END_TEST

START_TEST(examples_of_the_standard_are_encoded)
{
	encodes("", "");
	encodes("f", "Zg==");
	encodes("fo", "Zm8=");
	encodes("foo", "Zm9v");
	encodes("foob", "Zm9vYg==");
	encodes("fooba", "Zm9vYmE=");
	encodes("foobar", "Zm9vYmFy");
}
END_TEST

START_TEST(names_have_the_alphabet_for_names_and_padding)
{
	out = BUF_INIT(16);
	base64_encode_name((struct span){(const uint8_t *)"\xfb\xff\xfe\x80", 4}, &out);
	ck_assert_str_eq(buf_str(&out), "-__-gA==");
	buf_done(&out);
}
END_TEST

START_TEST(bytes_of_any_value_are_encoded)
{
	out = BUF_INIT(64);
	base64_encode((struct span){(const uint8_t *)"\x00\xff\xfe\x80", 4}, &out);
	ck_assert_str_eq(buf_str(&out), "AP/+gA==");
	buf_done(&out);
}
END_TEST

START_TEST(line_ends_are_skipped)
{
	decodes("Zm9v\r\nYmFy\n", "foobar");
}
END_TEST

START_TEST(bytes_of_any_value_are_decoded)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(64);
	ASSERT_OK(base64_decode("AP/+gA==", &out, &err));
	ck_assert_uint_eq(out.len, 4);
	ck_assert_mem_eq(out.data, "\x00\xff\xfe\x80", 4);
	buf_done(&out);
}
END_TEST

START_TEST(what_is_cut_off_or_padded_wrongly_is_refused)
{
	static const char *const texts[] = {
		"Z", "Zg", "Zg=", "Zm8", "Zg===", "====", "Z===", "=", "Zg==Zg==", "Zm9v="};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		is_refused(texts[i]);
}
END_TEST

START_TEST(other_characters_are_refused)
{
	is_refused("Zm9_");
	is_refused("Zm 9");
	is_refused("Zm9\x80");
}
END_TEST

START_TEST(bits_that_belong_to_no_byte_are_refused)
{
	is_refused("Zh==");
	is_refused("Zm9=");
}
END_TEST

START_TEST(the_limit_of_the_buffer_holds)
{
	CLEANUP(error_freep) struct error *err = NULL;

	out = BUF_INIT(2);
	ASSERT_FAILS(base64_decode("Zm9v", &out, &err), ERR_EXHAUSTED, "base64");
	buf_done(&out);
}
END_TEST

UNIT_MAIN("base/base64", examples_of_the_standard_are_decoded, examples_of_the_standard_are_encoded,
	names_have_the_alphabet_for_names_and_padding, bytes_of_any_value_are_encoded, line_ends_are_skipped,
	bytes_of_any_value_are_decoded, what_is_cut_off_or_padded_wrongly_is_refused,
	other_characters_are_refused, bits_that_belong_to_no_byte_are_refused, the_limit_of_the_buffer_holds)

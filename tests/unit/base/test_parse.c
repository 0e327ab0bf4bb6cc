/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "unit/unit.h"

#define UNTOUCHED 4711

struct good {
	const char *text;
	uint64_t value;
};

static void check_good(
	int (*parse)(const char *, uint64_t *, struct error **), const struct good *good, size_t n)
{
	CLEANUP(error_freep) struct error *err = NULL;

	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;
		int rc = parse(good[i].text, &v, &err);

		ck_assert_msg(
			rc == 0 && v == good[i].value, "\"%s\" gives %d, %" PRIu64, good[i].text, rc, v);
	}
}

/* Each text is refused, quoted in the message as far as it is text, and leaves the output alone. */
static void check_bad(
	int (*parse)(const char *, uint64_t *, struct error **), const char *const *bad, size_t n)
{
	CLEANUP(error_freep) struct error *err = NULL;

	for (size_t i = 0; i < n; i++) {
		CLEANUP(free_charp) char *quoted = x_strdup(bad[i]);
		uint64_t v = UNTOUCHED;

		str_clean(quoted);
		ck_assert_msg(parse(bad[i], &v, &err) == -1, "\"%s\" gives %" PRIu64, bad[i], v);
		ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
		ck_assert_msg(strstr(err->msg, quoted), "%s", err->msg);
		ck_assert_uint_eq(v, UNTOUCHED);
		error_clear(&err);
	}
}

START_TEST(u64_takes_digits_up_to_the_maximum)
{
	static const struct good good[] = {{"0", 0}, {"007", 7}, {"18446744073709551615", UINT64_MAX},
		{"00000000000000000000000000000001", 1}};

	check_good(parse_u64, good, ARRAY_SIZE(good));
}
END_TEST

START_TEST(u64_refuses_all_else)
{
	static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "1.0", "0x10", "1e3", "a", "1\n",
		"18446744073709551616", "18446744073709551620", "99999999999999999999",
		"184467440737095516150", "/", ":"};

	check_bad(parse_u64, bad, ARRAY_SIZE(bad));
}
END_TEST

START_TEST(number_is_decimal_or_hexadecimal)
{
	static const struct good good[] = {{"0", 0}, {"16777216", 16777216}, {"0x1000000", 0x1000000},
		{"0x0", 0}, {"0xffffffffffffffff", UINT64_MAX}, {"0x9af", 0x9af}};
	static const char *const bad[] = {"", "0x", "0X10", "0xA", "0xg", "x10", "1f", "-0x1", "0x 1",
		"0x10000000000000000", "18446744073709551616"};

	check_good(parse_number, good, ARRAY_SIZE(good));
	check_bad(parse_number, bad, ARRAY_SIZE(bad));
}
END_TEST

START_TEST(u32_ends_at_its_own_maximum)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint32_t v = UNTOUCHED;

	ASSERT_FAILS(parse_u32("4294967296", &v, &err), ERR_INVALID_ARGUMENT, "\"4294967296\"");
	ASSERT_FAILS(parse_u32("x", &v, &err), ERR_INVALID_ARGUMENT, "\"x\"");
	ck_assert_uint_eq(v, UNTOUCHED);
	ASSERT_OK(parse_u32("4294967295", &v, &err));
	ck_assert_uint_eq(v, UINT32_MAX);
}
END_TEST

START_TEST(u32_of_a_peer_may_be_anything)
{
	static const char *const bad[] = {"", " 1", "1 ", "-1", "0x1", "4294967296", "99999999999999999999"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_uint_eq(parse_u32_or(span_of(bad[i]), 7), 7);
	ck_assert_uint_eq(parse_u32_or((struct span){(const uint8_t *)"1\0", 2}, 7), 7);
	ck_assert_uint_eq(parse_u32_or((struct span){(const uint8_t *)"123", 2}, 7), 12);
	ck_assert_uint_eq(parse_u32_or(span_of("0"), 7), 0);
	ck_assert_uint_eq(parse_u32_or(span_of("4294967295"), 7), UINT32_MAX);
}
END_TEST

START_TEST(percent_is_a_whole_number_up_to_100)
{
	CLEANUP(error_freep) struct error *err = NULL;
	unsigned v = UNTOUCHED;

	ASSERT_FAILS(parse_percent("101", &v, &err), ERR_INVALID_ARGUMENT, "\"101\" is more than 100");
	ASSERT_FAILS(parse_percent("50%", &v, &err), ERR_INVALID_ARGUMENT, "\"50%\"");
	ck_assert_uint_eq(v, UNTOUCHED);
	ASSERT_OK(parse_percent("100", &v, &err));
	ck_assert_uint_eq(v, 100);
	ASSERT_OK(parse_percent("0", &v, &err));
	ck_assert_uint_eq(v, 0);
}
END_TEST

START_TEST(bool_takes_the_spellings_of_go)
{
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
	static const char *const bad[] = {"", "yes", "tRUE", "01", "true ", "fals"};
	CLEANUP(error_freep) struct error *err = NULL;
	bool v;

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		v = false;
		ASSERT_OK(parse_bool(yes[i], &v, &err));
		ck_assert(v);
		ASSERT_OK(parse_bool(no[i], &v, &err));
		ck_assert(!v);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(parse_bool(bad[i], &v, &err), ERR_INVALID_ARGUMENT, bad[i]);
}
END_TEST

START_TEST(quantity_knows_every_suffix)
{
	static const struct good good[] = {{"0", 0}, {"1", 1}, {"1n", 1}, {"1u", 1}, {"1m", 1}, {"1k", 1000},
		{"1M", 1000000}, {"1G", 1000000000}, {"1T", 1000000000000}, {"1P", 1000000000000000},
		{"9E", 9000000000000000000}, {"1Ki", 1ULL << 10}, {"1Mi", 1ULL << 20}, {"1Gi", 1ULL << 30},
		{"1Ti", 1ULL << 40}, {"1Pi", 1ULL << 50}, {"7Ei", 7ULL << 60}};

	check_good(parse_quantity, good, ARRAY_SIZE(good));
}
END_TEST

START_TEST(quantity_computes_fractions_exactly_and_rounds_up)
{
	static const struct good good[] = {{"0.5", 1}, {"1.5Gi", 1610612736}, {"1.5k", 1500}, {"100m", 1},
		{"1000m", 1}, {"1001m", 2}, {"2000000000n", 2}, {"2000000001n", 3}, {"0.0001k", 1},
		{".5Ki", 512}, {"5.Ki", 5120}, {"0.1Ki", 103}, {"1.0000000000000000000000000000001", 2},
		{"0.00000000000000000000000000000000000000001Ei", 1}, {"1.000000000000000000000000000000", 1},
		{"0.99999999999999999999999999Ki", 1024}, {"0.9990234375Ki", 1023}, {"0.0m", 0},
		{"9223372036854775807000m", INT64_MAX}, {"9223372036854775806000001u", INT64_MAX},
		{"9223372036854775806001n", 9223372036855}, {"7.999999999999999999Ei", INT64_MAX}};

	check_good(parse_quantity, good, ARRAY_SIZE(good));
}
END_TEST

START_TEST(quantity_tells_exa_from_an_exponent)
{
	static const struct good good[] = {{"8E", 8000000000000000000}, {"12E3", 12000}, {"12e3", 12000},
		{"1e+3", 1000}, {"1e-3", 1}, {"1500E-3", 2}, {"0e999999999", 0}, {"0.00e999999999", 0},
		{"1e-999999999", 1}, {"0.000000000000000000001e21", 1}, {"1.5e1", 15},
		{"1e18", 1000000000000000000}, {"123456789012345678901234567890e-27", 124}};

	check_good(parse_quantity, good, ARRAY_SIZE(good));
}
END_TEST

START_TEST(quantity_ends_at_the_largest_signed_number)
{
	static const struct good good[] = {{"9223372036854775807", INT64_MAX},
		{"9223372036854775806.5", INT64_MAX}, {"9.223372036854775807E", INT64_MAX},
		{"8388607Ti", 8388607ULL << 40}};
	static const char *const bad[] = {"9223372036854775808", "9223372036854775807.1",
		"18446744073709551616", "18446744073709551617", "18446744073709551615.5",
		"9.223372036854775808E", "10E", "8Ei", "16Ei", "17179869184Gi", "1e19", "1e20", "1e999999999",
		"12E18", "9223372036854775807001m", "340282366920938463463374607431768211457"};

	check_good(parse_quantity, good, ARRAY_SIZE(good));
	check_bad(parse_quantity, bad, ARRAY_SIZE(bad));
}
END_TEST

START_TEST(quantity_refuses_what_is_malformed)
{
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1 Ki", ".", ".Ki", "Ki", "E", "e3",
		"1.2.3", "1ki", "1K", "1KiB", "1KI", "1i", "1mi", "1g", "1e", "1Ee", "1e+", "1e3Ki", "1e3.5",
		"1e--3", "1Ei3", "1e0000000003", "0x10", "1,5", "nan", "inf"};

	check_bad(parse_quantity, bad, ARRAY_SIZE(bad));
}
END_TEST

START_TEST(duration_adds_its_parts_and_rounds_up)
{
	static const struct good good[] = {{"0", 0}, {"0s", 0}, {"300ms", 300}, {"1.5s", 1500},
		{"2m", 120000}, {"1h30m", 5400000}, {"1h1m1s1ms", 3661001}, {".5s", 500}, {"1.s", 1000},
		{"1ns", 1}, {"1us", 1}, {"1000001ns", 2}, {"999999ns1ns", 1}, {"1500\xc2\xb5s", 2},
		{"0.25h", 900000}, {"1m1m", 120000}, {"9223372036854775807ns", 9223372036855},
		{"2562047h", 9223369200000}};

	check_good(parse_duration_ms, good, ARRAY_SIZE(good));
}
END_TEST

START_TEST(duration_refuses_what_go_refuses_and_what_is_negative)
{
	static const char *const bad[] = {"", "1", "1.5", "s", ".s", "-1s", "+1s", "1 s", " 1s", "1s ", "1d",
		"1S", "1h30", "1hm", "1mss", "1e3s", "9223372036854775808ns", "2562048h", "9223372036s1s",
		"99999999999999999999999h", "1\xc2s"};

	check_bad(parse_duration_ms, bad, ARRAY_SIZE(bad));
}
END_TEST

START_TEST(long_texts_are_quoted_in_part)
{
	CLEANUP(error_freep) struct error *err = NULL;
	char text[1001];
	uint64_t v;

	memset(text, 'x', 1000);
	text[1000] = 0;
	ck_assert_int_eq(parse_quantity(text, &v, &err), -1);
	ck_assert_uint_lt(strlen(err->msg), 200);
}
END_TEST

START_TEST(sizes_are_shown_exactly)
{
	static const struct good shown[] = {{"0", 0}, {"1", 1}, {"1023", 1023}, {"1Ki", 1024}, {"1025", 1025},
		{"1536Mi", 1536ULL << 20}, {"3Gi", 3ULL << 30}, {"1Ti", 1ULL << 40}, {"1Pi", 1ULL << 50},
		{"15Ei", 15ULL << 60}, {"18446744073709551615", UINT64_MAX}, {"1234567", 1234567}};

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		char out[24];

		ck_assert_str_eq(format_bytes(shown[i].value, out), shown[i].text);
	}
}
END_TEST

START_TEST(rounded_sizes_are_never_more_than_there_is)
{
	static const struct good shown[] = {{"0", 0}, {"1", 1}, {"1023", 1023}, {"1Ki", 1024}, {"1Ki", 1126},
		{"1.1Ki", 1127}, {"1.5Ki", 1536}, {"1023.9Ki", (1ULL << 20) - 1}, {"1Mi", 1ULL << 20},
		{"63.9Gi", (64ULL << 30) - 1}, {"64Gi", 64ULL << 30}, {"2.5Ti", 5ULL << 39},
		{"1023.9Pi", (1ULL << 60) - 1}, {"15.9Ei", UINT64_MAX}};

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		char out[24];

		ck_assert_str_eq(format_bytes_rounded(shown[i].value, out), shown[i].text);
	}
}
END_TEST

UNIT_MAIN("base/parse", u64_takes_digits_up_to_the_maximum, u64_refuses_all_else,
	number_is_decimal_or_hexadecimal, u32_ends_at_its_own_maximum, u32_of_a_peer_may_be_anything,
	percent_is_a_whole_number_up_to_100, bool_takes_the_spellings_of_go, quantity_knows_every_suffix,
	quantity_computes_fractions_exactly_and_rounds_up, quantity_tells_exa_from_an_exponent,
	quantity_ends_at_the_largest_signed_number, quantity_refuses_what_is_malformed,
	duration_adds_its_parts_and_rounds_up, duration_refuses_what_go_refuses_and_what_is_negative,
	long_texts_are_quoted_in_part, sizes_are_shown_exactly, rounded_sizes_are_never_more_than_there_is)

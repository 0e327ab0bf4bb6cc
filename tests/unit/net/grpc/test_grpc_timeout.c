/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_timeout.h"

#include "unit/unit.h"

START_TEST(timeouts_of_every_unit_become_nanoseconds)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"7n", 7},
		{"2999660u", 2999660000},
		{"100m", 100000000},
		{"1S", 1000000000},
		{"2M", 120000000000},
		{"3H", 10800000000000},
		{"0S", 0},
		{"00000001S", 1000000000},
		{"99999999S", 99999999000000000},
		{"2562047H", 9223369200000000000u},
		{"2562048H", UINT64_MAX / 2},
		{"99999999H", UINT64_MAX / 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		uint64_t ns;

		ASSERT_OK(grpc_timeout_parse(span_of(cases[i].text), &ns, &err));
		ck_assert_uint_eq(ns, cases[i].ns);
	}
}
END_TEST

START_TEST(malformed_timeouts_are_refused)
{
	static const char *const cases[] = {"", "S", "5", "5s", "5h", "5 S", " 5S", "-5S", "+5S", "5SS",
		"1.5S", "123456789S", "5\xc2\xb5"};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		uint64_t ns = 4711;

		ASSERT_FAILS(grpc_timeout_parse(span_of(cases[i]), &ns, &err), ERR_INVALID_ARGUMENT,
			"grpc-timeout");
		ck_assert_uint_eq(ns, 4711);
	}
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t ns;

	ASSERT_FAILS(grpc_timeout_parse(((struct span){(const uint8_t *)"1\0S", 3}), &ns, &err),
		ERR_INVALID_ARGUMENT, "NUL");
}
END_TEST

START_TEST(timeouts_are_written_with_8_digits_at_most_and_rounded_up)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0n"},
		{1, "1n"},
		{99999999, "99999999n"},
		{100000000, "100000u"},
		{100000001, "100001u"},
		{99999999000, "99999999u"},
		{99999999001, "100000m"},
		{10000000000000000, "10000000S"},
		{UINT64_MAX, "5124096H"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[12];

		grpc_timeout_format(cases[i].ns, text);
		ck_assert_str_eq(text, cases[i].text);
	}
}
END_TEST

UNIT_MAIN("grpc_timeout", timeouts_of_every_unit_become_nanoseconds, malformed_timeouts_are_refused,
	timeouts_are_written_with_8_digits_at_most_and_rounded_up)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "net/grpc/grpc_status.h"
#include "net/limits.h"
#include "unit/unit.h"

START_TEST(messages_are_percent_encoded_and_come_back)
{
	static const struct {
		const char *plain;
		const char *encoded;
	} cases[] = {
		{"", ""},
		{"plain ~text!", "plain ~text!"},
		{"100%", "100%25"},
		{"no\nsuch \xe2\x82\xac", "no%0Asuch %E2%82%AC"},
		{"\x1f\x7f\x80\xff", "%1F%7F%80%FF"},
		{"ended with status 1: ", "ended with status 1:%20"},
		{"  two  ", "%20 two %20"},
		{" ", "%20"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buf_done) struct buf encoded = BUF_INIT(100);
		CLEANUP(buf_done) struct buf decoded = BUF_INIT(100);

		grpc_percent_encode(cases[i].plain, &encoded);
		ck_assert_str_eq(buf_str(&encoded), cases[i].encoded);
		grpc_percent_decode(buf_span(&encoded), &decoded);
		ck_assert_str_eq(buf_str(&decoded), cases[i].plain);
	}
}
END_TEST

START_TEST(broken_escapes_stay_as_they_are)
{
	static const struct {
		const char *encoded;
		const char *plain;
	} cases[] = {
		{"%", "%"},
		{"%4", "%4"},
		{"%41", "A"},
		{"%e2%82%ac", "\xe2\x82\xac"},
		{"%zz%4g%g4", "%zz%4g%g4"},
		{"%%41", "%A"},
		{"a%", "a%"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(100);

		grpc_percent_decode(span_of(cases[i].encoded), &out);
		ck_assert_str_eq(buf_str(&out), cases[i].plain);
	}
}
END_TEST

START_TEST(http_statuses_map_as_the_specification_says)
{
	ck_assert_int_eq(grpc_code_of_http(400), ERR_INTERNAL);
	ck_assert_int_eq(grpc_code_of_http(401), ERR_UNAUTHENTICATED);
	ck_assert_int_eq(grpc_code_of_http(403), ERR_PERMISSION);
	ck_assert_int_eq(grpc_code_of_http(404), ERR_UNIMPLEMENTED);
	ck_assert_int_eq(grpc_code_of_http(429), ERR_UNAVAILABLE);
	ck_assert_int_eq(grpc_code_of_http(502), ERR_UNAVAILABLE);
	ck_assert_int_eq(grpc_code_of_http(503), ERR_UNAVAILABLE);
	ck_assert_int_eq(grpc_code_of_http(504), ERR_UNAVAILABLE);
	ck_assert_int_eq(grpc_code_of_http(200), ERR_UNKNOWN);
	ck_assert_int_eq(grpc_code_of_http(500), ERR_UNKNOWN);
}
END_TEST

UNIT_MAIN("grpc_status", messages_are_percent_encoded_and_come_back, broken_escapes_stay_as_they_are,
	http_statuses_map_as_the_specification_says)

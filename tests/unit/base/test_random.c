/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "base/random.h"
#include "unit/unit.h"

START_TEST(identities_have_the_form_of_version_4)
{
	for (unsigned i = 0; i < 100; i++) {
		char id[UUID_TEXT_LEN + 1];

		uuid_generate_text(id);
		ck_assert_uint_eq(strlen(id), UUID_TEXT_LEN);
		for (size_t at = 0; at < UUID_TEXT_LEN; at++) {
			bool dash = at == 8 || at == 13 || at == 18 || at == 23;

			ck_assert_ptr_nonnull(strchr(dash ? "-" : "0123456789abcdef", id[at]));
		}
		ck_assert_int_eq(id[14], '4');
		ck_assert_ptr_nonnull(strchr("89ab", id[19]));
	}
}
END_TEST

START_TEST(every_other_digit_varies)
{
	char first[UUID_TEXT_LEN + 1];
	bool varied[UUID_TEXT_LEN] = {false};

	uuid_generate_text(first);
	for (unsigned i = 0; i < 100; i++) {
		char id[UUID_TEXT_LEN + 1];

		uuid_generate_text(id);
		for (size_t at = 0; at < UUID_TEXT_LEN; at++)
			varied[at] = varied[at] || id[at] != first[at];
	}
	for (size_t at = 0; at < UUID_TEXT_LEN; at++)
		ck_assert_int_eq(varied[at], first[at] != '-' && at != 14);
}
END_TEST

START_TEST(every_bit_of_a_number_varies)
{
	uint64_t zeros = 0;
	uint64_t ones = 0;

	for (unsigned i = 0; i < 200; i++) {
		uint64_t n = random_u64();

		ones |= n;
		zeros |= ~n;
	}
	ck_assert_uint_eq(ones & zeros, UINT64_MAX);
}
END_TEST

UNIT_MAIN("base/random", identities_have_the_form_of_version_4, every_other_digit_varies,
	every_bit_of_a_number_varies)

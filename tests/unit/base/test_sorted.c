/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sorted.h"

#include <stdint.h>

#include "unit/unit.h"

#define N_MAX 33

static int order_number(const void *element, const void *key)
{
	uint32_t number = *(const uint32_t *)element;
	uint32_t wanted = *(const uint32_t *)key;

	return number < wanted ? -1 : number > wanted;
}

/* Elements are the odd numbers, so that there is room for another one before and after each. */
START_TEST(each_element_is_found_and_each_gap_is_named)
{
	uint32_t numbers[N_MAX];

	for (uint32_t i = 0; i < N_MAX; i++)
		numbers[i] = 2 * i + 1;
	for (size_t n = 0; n <= N_MAX; n++) {
		for (uint32_t key = 0; key <= 2 * n; key++) {
			bool found = key % 2 == 0;

			ck_assert_uint_eq(
				sorted_find(numbers, n, sizeof(*numbers), &key, order_number, &found),
				key / 2);
			ck_assert(found == (key % 2 == 1));
		}
	}
}
END_TEST

START_TEST(nothing_is_found_in_nothing)
{
	uint32_t key = 1;
	bool found = true;

	ck_assert_uint_eq(sorted_find(NULL, 0, sizeof(key), &key, order_number, &found), 0);
	ck_assert(!found);
}
END_TEST

UNIT_MAIN("base/sorted", each_element_is_found_and_each_gap_is_named, nothing_is_found_in_nothing)

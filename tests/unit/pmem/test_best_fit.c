/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/best_fit.h"
#include "unit/unit.h"

/* Pool 0 has the largest extent, pool 1 the second largest. */
static const struct best_fit_extent extents[] = {{8, 0}, {2, 0}, {3, 1}, {6, 1}, {4, 1}, {1, 2}};

#define N_EXTENTS ARRAY_SIZE(extents)

static size_t find(uint64_t in_0, uint64_t in_1, uint64_t in_2)
{
	return best_fit_find(extents, N_EXTENTS, (uint64_t[]){in_0, in_1, in_2});
}

START_TEST(pool_whose_largest_extent_is_smallest_comes_first)
{
	ck_assert_uint_eq(find(1, 1, 1), 5);
	/* pool 0 has a smaller extent that would do */
	ck_assert_uint_eq(find(2, 2, 2), 2);
	ck_assert_uint_eq(find(7, 7, 7), 0);
}
END_TEST

START_TEST(smallest_extent_of_the_pool_is_taken)
{
	ck_assert_uint_eq(find(3, 3, 3), 2);
	ck_assert_uint_eq(find(4, 4, 4), 4);
	ck_assert_uint_eq(find(5, 5, 5), 3);
}
END_TEST

START_TEST(pool_that_cannot_hold_the_device_is_passed_over)
{
	ck_assert_uint_eq(find(2, UINT64_MAX, 2), 1);
	ck_assert_uint_eq(find(9, 7, 2), N_EXTENTS);
	ck_assert_uint_eq(find(UINT64_MAX, UINT64_MAX, UINT64_MAX), N_EXTENTS);
	ck_assert_uint_eq(best_fit_find(NULL, 0, NULL), 0);
}
END_TEST

START_TEST(first_of_equals_is_taken)
{
	static const struct best_fit_extent equal[] = {{5, 0}, {5, 0}, {5, 1}};

	ck_assert_uint_eq(best_fit_find(equal, 3, (uint64_t[]){5, 5}), 0);
}
END_TEST

UNIT_MAIN("pmem/best_fit", pool_whose_largest_extent_is_smallest_comes_first,
	smallest_extent_of_the_pool_is_taken, pool_that_cannot_hold_the_device_is_passed_over,
	first_of_equals_is_taken)

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "pacing/erase_limit.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)

START_TEST(pieces_come_no_faster_than_the_limit_allows)
{
	struct erase_limit l = {.bytes_per_s = MIB(16)};

	ck_assert_uint_eq(erase_limit_reserve(&l, 100, MIB(2)), 100);
	ck_assert_uint_eq(erase_limit_reserve(&l, 100, MIB(2)), 100 + NS_PER_S / 8);
	ck_assert_uint_eq(erase_limit_reserve(&l, 200, MIB(16)), 100 + 2 * (NS_PER_S / 8));
	/* what was not used is not saved up */
	ck_assert_uint_eq(erase_limit_reserve(&l, 10 * NS_PER_S, MIB(2)), 10 * NS_PER_S);
	ck_assert_uint_eq(erase_limit_reserve(&l, 10 * NS_PER_S, MIB(2)), 10 * NS_PER_S + NS_PER_S / 8);
}
END_TEST

START_TEST(without_a_limit_nothing_waits)
{
	struct erase_limit l = {0};

	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(erase_limit_reserve(&l, 100, MIB(64)), 100);
}
END_TEST

START_TEST(pieces_are_short_but_not_tiny)
{
	const struct erase_limit none = {0};
	const struct erase_limit slow = {.bytes_per_s = 1};
	const struct erase_limit usual = {.bytes_per_s = MIB(80) + 12345};
	const struct erase_limit fast = {.bytes_per_s = MIB(1 << 20)};

	ck_assert_uint_eq(erase_limit_piece(&none, UINT64_MAX), MIB(64));
	ck_assert_uint_eq(erase_limit_piece(&none, 4096), 4096);
	ck_assert_uint_eq(erase_limit_piece(&slow, MIB(1)), 64 << 10);
	ck_assert_uint_eq(erase_limit_piece(&usual, MIB(80)), MIB(10));
	ck_assert_uint_eq(erase_limit_piece(&fast, MIB(80)), MIB(64));
}
END_TEST

UNIT_MAIN("erase_limit", pieces_come_no_faster_than_the_limit_allows, without_a_limit_nothing_waits,
	pieces_are_short_but_not_tiny)

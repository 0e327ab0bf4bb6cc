/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/bucket.h"

#include "base/clock.h"
#include "unit/unit.h"

#define START_NS (1000 * NS_PER_S)

START_TEST(a_burst_goes_at_once_and_then_one_per_interval)
{
	struct bucket b;

	bucket_init(&b, 50, 100);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 20 * NS_PER_MS);
	ck_assert_uint_eq(bucket_take(&b, START_NS + 5 * NS_PER_MS), 15 * NS_PER_MS);
	ck_assert_uint_eq(bucket_take(&b, START_NS + 20 * NS_PER_MS), 0);
	ck_assert_uint_eq(bucket_take(&b, START_NS + 20 * NS_PER_MS), 20 * NS_PER_MS);
}
END_TEST

START_TEST(a_pause_gives_a_burst_and_no_more)
{
	struct bucket b;
	unsigned taken = 0;

	bucket_init(&b, 10, 5);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
	while (bucket_take(&b, START_NS + 3600 * NS_PER_S) == 0)
		taken++;
	ck_assert_uint_eq(taken, 5);
}
END_TEST

START_TEST(without_a_rate_nothing_waits)
{
	struct bucket b;

	bucket_init(&b, 0, 0);
	for (unsigned i = 0; i < 10000; i++)
		ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
}
END_TEST

START_TEST(without_a_burst_one_goes)
{
	struct bucket b;

	bucket_init(&b, 1, 0);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
	ck_assert_uint_eq(bucket_take(&b, START_NS), NS_PER_S);
}
END_TEST

START_TEST(what_is_given_back_can_be_taken_again)
{
	struct bucket b;

	bucket_init(&b, 10, 2);
	bucket_give_back(&b);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 100 * NS_PER_MS);
	bucket_give_back(&b);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 100 * NS_PER_MS);
	bucket_init(&b, 0, 0);
	bucket_give_back(&b);
	ck_assert_uint_eq(bucket_take(&b, START_NS), 0);
}
END_TEST

UNIT_MAIN("pacing/bucket", a_burst_goes_at_once_and_then_one_per_interval, a_pause_gives_a_burst_and_no_more,
	without_a_rate_nothing_waits, without_a_burst_one_goes, what_is_given_back_can_be_taken_again)

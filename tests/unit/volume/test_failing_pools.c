/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/failing_pools.h"

#include "base/clock.h"
#include "unit/unit.h"

#define S(n) ((n) * NS_PER_S)

static struct failing_pools *failing;

static void assert_avoided_for(uint64_t now_ns, unsigned seconds)
{
	ck_assert_uint_eq(failing_pools_note(failing, "a", now_ns), seconds);
	ck_assert(failing_pools_avoids(failing, "a", now_ns + S(seconds) - 1));
	ck_assert(!failing_pools_avoids(failing, "a", now_ns + S(seconds)));
}

START_TEST(a_pool_is_avoided_for_longer_each_time_it_fails)
{
	failing = failing_pools_new();
	ck_assert(!failing_pools_avoids(failing, "a", 0));
	assert_avoided_for(S(5), 10);
	assert_avoided_for(S(100), 20);
	for (unsigned i = 0; i < 70; i++)
		(void)failing_pools_note(failing, "a", 0);
	assert_avoided_for(S(1000), FAILING_MAX_S);
	failing_pools_free(failing);
}
END_TEST

START_TEST(pools_are_apart_and_begin_anew_once_they_work)
{
	failing = failing_pools_new();
	assert_avoided_for(0, 10);
	ck_assert(!failing_pools_avoids(failing, "b", 1));
	ck_assert_uint_eq(failing_pools_note(failing, "b", 0), 10);
	ck_assert(failing_pools_clear(failing, "a"));
	ck_assert(!failing_pools_clear(failing, "a"));
	ck_assert(!failing_pools_avoids(failing, "a", 1));
	ck_assert(failing_pools_avoids(failing, "b", 1));
	assert_avoided_for(0, 10);
	failing_pools_free(failing);
	failing_pools_free(NULL);
}
END_TEST

UNIT_MAIN("volume/failing_pools", a_pool_is_avoided_for_longer_each_time_it_fails,
	pools_are_apart_and_begin_anew_once_they_work)

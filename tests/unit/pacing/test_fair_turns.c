/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/fair_turns.h"

#include <stdio.h>

#include "base/clock.h"
#include "unit/unit.h"

#define START_NS (1000 * NS_PER_S)

static struct fair_turns *t;
static struct bucket common;
static uint64_t now;
static char due[256]; /* first letters of the keys that had their turn */

static void note_due(void *user, const char *key)
{
	size_t n = strlen(due);

	ck_assert_ptr_eq(user, due);
	ck_assert_uint_lt(n + 1, sizeof(due));
	due[n] = key[0];
	due[n + 1] = '\0';
}

static void begin(unsigned per_second, unsigned burst, unsigned share_per_second, unsigned share_burst)
{
	const struct fair_turns_config config = {.common = &common,
		.share_per_second = share_per_second,
		.share_burst = share_burst,
		.due = note_due,
		.user = due};

	now = START_NS;
	bucket_init(&common, per_second, burst);
	t = fair_turns_new(&config);
}

static void end(void)
{
	fair_turns_free(t);
}

static bool take(const char *party, const char *key)
{
	return fair_turns_take(t, party, key, now);
}

/* @n keys that begin with the letter @letter, of the party of that name. Return: how many get a token. */
static unsigned take_many(char letter, unsigned n)
{
	char party[2] = {letter, '\0'};
	unsigned taken = 0;

	for (unsigned i = 0; i < n; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%c%u", letter, i);
		taken += take(party, key);
	}
	return taken;
}

static void run_after_ms(uint64_t ms, const char *expected)
{
	now += ms * NS_PER_MS;
	due[0] = '\0';
	fair_turns_run(t, now);
	ck_assert_str_eq(due, expected);
}

START_TEST(a_party_gets_its_share_and_leaves_the_rest)
{
	begin(100, 100, 10, 10);
	ck_assert_uint_eq(take_many('e', 1000), 10);
	ck_assert_uint_eq(fair_turns_waiting(t), 990);
	ck_assert_uint_eq(take_many('h', 5), 5);
	run_after_ms(1000, "eeeeeeeeee");
	ck_assert(take("h", "h6"));
}
END_TEST

START_TEST(parties_that_wait_for_the_common_bucket_take_turns)
{
	begin(4, 4, 100, 100);
	ck_assert_uint_eq(take_many('e', 50), 4);
	ck_assert_uint_eq(take_many('g', 2), 0);
	ck_assert_uint_eq(take_many('h', 1), 0);
	run_after_ms(1000, "eghe");
	run_after_ms(1000, "geee");
}
END_TEST

/* A token that came in between is not that of a key that has just come. */
START_TEST(keys_that_wait_are_not_overtaken)
{
	begin(4, 4, 100, 100);
	ck_assert_uint_eq(take_many('e', 50), 4);
	run_after_ms(100, "");
	now += 500 * NS_PER_MS;
	ck_assert(!take("h", "h"));
	run_after_ms(400, "ehee");
}
END_TEST

START_TEST(a_key_waits_once_and_its_turn_is_one_token)
{
	begin(1, 1, 100, 100);
	ck_assert(take("n", "a"));
	for (int i = 0; i < 5; i++)
		ck_assert(!take("n", "b"));
	ck_assert_uint_eq(fair_turns_waiting(t), 1);
	run_after_ms(1000, "b");
	ck_assert(take("n", "b"));
	ck_assert(!take("n", "b"));
}
END_TEST

START_TEST(a_turn_that_is_not_used_is_over)
{
	begin(1, 1, 100, 100);
	ck_assert(take("n", "a"));
	ck_assert(!take("n", "b"));
	run_after_ms(1000, "b");
	run_after_ms(FAIR_TURNS_UNUSED_NS / NS_PER_MS, "");
	ck_assert(take("n", "b"));
	ck_assert(!take("n", "b"));
}
END_TEST

START_TEST(a_key_that_is_forgotten_has_no_turn)
{
	begin(100, 100, 1, 1);
	ck_assert(take("a", "a1"));
	ck_assert(!take("a", "b1"));
	ck_assert(!take("a", "c1"));
	fair_turns_forget(t, "b1");
	fair_turns_forget(t, "b1");
	ck_assert_uint_eq(fair_turns_waiting(t), 1);
	now += NS_PER_S;
	fair_turns_run(t, now);
	ck_assert_str_eq(due, "c");
	/* its turn was given and not used yet */
	fair_turns_forget(t, "c1");
	ck_assert(!take("a", "c1"));
}
END_TEST

START_TEST(what_others_charge_makes_all_wait)
{
	begin(1, 1, 100, 100);
	bucket_charge(&common, now);
	bucket_charge(&common, now);
	ck_assert(!take("n", "a"));
	run_after_ms(1000, "");
	run_after_ms(1000, "a");
}
END_TEST

START_TEST(the_busier_of_two_is_known)
{
	begin(100, 100, 10, 10);
	ck_assert(!fair_turns_busier(t, "e", "h", now));
	take_many('h', 1);
	take_many('e', 3);
	ck_assert(fair_turns_busier(t, "e", "h", now));
	ck_assert(!fair_turns_busier(t, "h", "e", now));
	now += 10 * NS_PER_S;
	ck_assert(!fair_turns_busier(t, "e", "h", now));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_party_gets_its_share_and_leaves_the_rest,
		parties_that_wait_for_the_common_bucket_take_turns, keys_that_wait_are_not_overtaken,
		a_key_waits_once_and_its_turn_is_one_token, a_turn_that_is_not_used_is_over,
		a_key_that_is_forgotten_has_no_turn, what_others_charge_makes_all_wait,
		the_busier_of_two_is_known};
	Suite *suite = suite_create("pacing/fair_turns");
	TCase *tcase = tcase_create("all");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, NULL, end);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/work_queue.h"

#include <stdio.h>

#include "base/clock.h"
#include "unit/unit.h"

/* Keys of these tests are single letters. */
#define MAX_BEGUN 64

static struct work_queue *q;
static uint64_t now;
static char begun[MAX_BEGUN + 1];     /* the keys that work was called for */
static void (*in_work)(const char *); /* NULL: work ends later */

static uint64_t get_now(void *user)
{
	ck_assert_ptr_eq(user, begun);
	return now;
}

static void work(void *user, const char *key)
{
	size_t n = strlen(begun);

	ck_assert_ptr_eq(user, begun);
	ck_assert_uint_lt(n, MAX_BEGUN);
	begun[n] = key[0];
	begun[n + 1] = '\0';
	if (in_work)
		in_work(key);
}

static void begin(unsigned max_running, uint64_t interval_ns)
{
	const struct work_queue_config config = {.work = work,
		.user = begun,
		.max_running = max_running,
		.interval_ns = interval_ns,
		.now_ns = get_now};

	now = 1000 * NS_PER_S;
	q = work_queue_new(&config);
}

static void end(void)
{
	work_queue_free(q);
}

static void add(const char *keys)
{
	for (const char *k = keys; *k; k++)
		work_queue_add(q, (char[]){*k, '\0'});
}

/* Work begins for @keys, in this order, and for no others. */
static void begins(const char *keys)
{
	begun[0] = '\0';
	work_queue_run(q);
	ck_assert_str_eq(begun, keys);
}

static void begins_after(uint64_t ms, const char *keys)
{
	now += ms * NS_PER_MS;
	begins(keys);
}

START_TEST(keys_have_their_turn_in_the_order_in_which_they_were_added)
{
	begin(10, 0);
	begins("");
	add("cabcac");
	ck_assert_uint_eq(work_queue_pending(q), 3);
	begins("cab");
	begins("");
	ck_assert_uint_eq(work_queue_pending(q), 3);
	work_queue_end(q, "a", WORK_DONE);
	ck_assert_uint_eq(work_queue_pending(q), 2);
}
END_TEST

START_TEST(no_more_run_at_once_than_may)
{
	begin(2, 0);
	add("abcd");
	begins("ab");
	work_queue_end(q, "a", WORK_DONE);
	begins("c");
	work_queue_end(q, "b", WORK_FAILED);
	begins("d");
	ck_assert_uint_eq(work_queue_pending(q), 3);
}
END_TEST

static void add_again(const char *key)
{
	if (key[0] == 'a')
		work_queue_add(q, key);
}

START_TEST(a_key_that_is_always_added_again_lets_others_pass)
{
	begin(1, 0);
	in_work = add_again;
	add("ab");
	for (int i = 0; i < 3; i++) {
		begins("a");
		add("a");
		work_queue_end(q, "a", WORK_DONE);
		add("a");
		begins("b");
		work_queue_end(q, "b", WORK_DONE);
		add("b");
	}
}
END_TEST

START_TEST(a_key_that_is_added_while_it_is_worked_on_has_one_more_turn)
{
	begin(10, 0);
	add("a");
	begins("a");
	add("aaa");
	begins("");
	work_queue_end(q, "a", WORK_DONE);
	begins("a");
	work_queue_end(q, "a", WORK_DONE);
	begins("");
	ck_assert_uint_eq(work_queue_pending(q), 0);
}
END_TEST

/* The limits are those of backoff.h, with its jitter. */
START_TEST(a_failure_is_repeated_after_a_back_off_that_grows)
{
	begin(10, 0);
	add("ab");
	begins("ab");
	work_queue_end(q, "a", WORK_FAILED);
	ck_assert_uint_eq(work_queue_pending(q), 2);
	add("ac");
	begins_after(799, "c");
	begins_after(402, "a");
	work_queue_end(q, "a", WORK_FAILED);
	begins_after(1279, "");
	begins_after(642, "a");
	work_queue_end(q, "a", WORK_DONE);
	add("a");
	begins("a");
	work_queue_end(q, "a", WORK_FAILED);
	begins_after(1201, "a");
}
END_TEST

START_TEST(keys_count_as_failing_until_their_work_is_done_or_they_are_dropped)
{
	begin(10, 0);
	add("abc");
	begins("abc");
	work_queue_end(q, "a", WORK_FAILED);
	work_queue_end(q, "b", WORK_FAILED);
	work_queue_end(q, "c", WORK_DONE);
	ck_assert_uint_eq(work_queue_failing(q), 2);
	begins_after(1201, "ab");
	ck_assert_uint_eq(work_queue_failing(q), 2);
	work_queue_end(q, "a", WORK_FAILED);
	work_queue_end(q, "b", WORK_DONE);
	ck_assert_uint_eq(work_queue_failing(q), 1);
	work_queue_clear(q);
	ck_assert_uint_eq(work_queue_failing(q), 0);
}
END_TEST

START_TEST(work_on_one_key_begins_once_in_each_interval)
{
	begin(10, 5 * NS_PER_S);
	add("a");
	begins("a");
	now += NS_PER_S;
	work_queue_end(q, "a", WORK_DONE);
	ck_assert_uint_eq(work_queue_pending(q), 0);
	add("ab");
	begins("b");
	begins_after(3999, "");
	begins_after(1, "a");
	work_queue_end(q, "a", WORK_DONE);
	begins_after(5000, "");
	add("a");
	begins("a");
}
END_TEST

START_TEST(a_failure_does_not_shorten_the_interval)
{
	begin(10, 5 * NS_PER_S);
	add("a");
	begins("a");
	work_queue_end(q, "a", WORK_FAILED);
	begins_after(4999, "");
	begins_after(1, "a");
}
END_TEST

START_TEST(after_clear_nothing_runs_and_late_ends_are_ignored)
{
	begin(1, 0);
	add("ab");
	begins("a");
	work_queue_clear(q);
	ck_assert_uint_eq(work_queue_pending(q), 0);
	begins("");
	work_queue_end(q, "a", WORK_FAILED);
	ck_assert_uint_eq(work_queue_pending(q), 0);
	add("ba");
	begins("b");
	work_queue_end(q, "a", WORK_DONE);
	begins("");
	work_queue_end(q, "b", WORK_DONE);
	begins("a");
}
END_TEST

START_TEST(only_what_runs_can_end)
{
	begin(1, 0);
	work_queue_end(q, "a", WORK_DONE);
	add("ab");
	work_queue_end(q, "a", WORK_DONE);
	begins("a");
	work_queue_end(q, "a", WORK_DONE);
	work_queue_end(q, "a", WORK_FAILED);
	begins("b");
	begins_after(60000, "");
}
END_TEST

static void end_at_once(const char *key)
{
	work_queue_end(q, key, WORK_DONE);
}

static void fail_at_once(const char *key)
{
	work_queue_end(q, key, WORK_FAILED);
}

START_TEST(work_may_end_inside)
{
	begin(1, 0);
	in_work = end_at_once;
	add("abc");
	begins("abc");
	ck_assert_uint_eq(work_queue_pending(q), 0);
	in_work = fail_at_once;
	add("ab");
	begins("ab");
	ck_assert_uint_eq(work_queue_pending(q), 2);
	begins("");
	begins_after(1201, "ab");
}
END_TEST

static void add_both_and_end(const char *key)
{
	add("ab");
	work_queue_end(q, key, WORK_DONE);
}

/* Otherwise a run would never end. */
START_TEST(what_is_added_inside_has_its_turn_in_the_next_run)
{
	begin(1, 0);
	in_work = add_both_and_end;
	add("a");
	begins("a");
	begins("ab");
	begins("ab");
}
END_TEST

static void end_b(const char *key)
{
	if (key[0] == 'a')
		work_queue_end(q, "b", WORK_DONE);
}

START_TEST(work_may_end_that_of_the_key_that_comes_next)
{
	begin(2, 0);
	add("a");
	begins("a");
	add("b");
	begins("b");
	add("a");
	work_queue_end(q, "a", WORK_DONE);
	in_work = end_b;
	begins("a");
	ck_assert_uint_eq(work_queue_pending(q), 1);
	add("b");
	begins("b");
}
END_TEST

static void run_inside(const char *key)
{
	static bool inside;

	ck_assert_msg(!inside, "work on %s began inside of other work", key);
	inside = true;
	work_queue_run(q);
	inside = false;
}

START_TEST(runs_do_not_nest)
{
	begin(10, 0);
	in_work = run_inside;
	add("abc");
	begins("abc");
	work_queue_end(q, "a", WORK_DONE);
	add("a");
	begins("a");
}
END_TEST

START_TEST(without_a_clock_of_its_own_it_takes_the_common_one)
{
	const struct work_queue_config config = {
		.work = work, .user = begun, .max_running = 1, .interval_ns = 3600 * NS_PER_S};

	q = work_queue_new(&config);
	add("a");
	begins("a");
	work_queue_end(q, "a", WORK_DONE);
	add("a");
	begins("");
}
END_TEST

#define LONG 60000

static char running[LONG][8];
static size_t n_begun;

static void note_begun(void *user, const char *key)
{
	(void)user;
	snprintf(running[n_begun++], sizeof(running[0]), "%s", key);
}

/* Walking the whole queue for each key takes longer than a test may. */
START_TEST(a_long_queue_is_not_walked_for_each_key)
{
	const struct work_queue_config config = {
		.work = note_begun, .max_running = 4, .interval_ns = NS_PER_S, .now_ns = NULL};

	q = work_queue_new(&config);
	for (unsigned i = 0; i < LONG; i++) {
		char key[8];

		snprintf(key, sizeof(key), "%u", i);
		work_queue_add(q, key);
	}
	work_queue_run(q);
	for (size_t i = 0; i < n_begun; i++) {
		work_queue_end(q, running[i], WORK_DONE);
		work_queue_run(q);
	}
	ck_assert_uint_eq(n_begun, LONG);
	ck_assert_str_eq(running[LONG - 1], "59999");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {keys_have_their_turn_in_the_order_in_which_they_were_added,
		no_more_run_at_once_than_may, a_key_that_is_always_added_again_lets_others_pass,
		a_key_that_is_added_while_it_is_worked_on_has_one_more_turn,
		a_failure_is_repeated_after_a_back_off_that_grows,
		keys_count_as_failing_until_their_work_is_done_or_they_are_dropped,
		work_on_one_key_begins_once_in_each_interval, a_failure_does_not_shorten_the_interval,
		after_clear_nothing_runs_and_late_ends_are_ignored, only_what_runs_can_end,
		work_may_end_inside, what_is_added_inside_has_its_turn_in_the_next_run,
		work_may_end_that_of_the_key_that_comes_next, runs_do_not_nest,
		without_a_clock_of_its_own_it_takes_the_common_one, a_long_queue_is_not_walked_for_each_key};
	Suite *suite = suite_create("kube/work_queue");
	TCase *tcase = tcase_create("work_queue");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, NULL, end);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

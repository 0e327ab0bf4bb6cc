/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include "net/core/shutdown.h"
#include "unit/unit.h"

#define LONG_MS 60000

struct server {
	struct loop *loop;
	struct shutdown *shutdown;
	unsigned n_parts;
	unsigned n_begun;
	struct loop_timer *late; /* ends the parts one by one */
	unsigned n_late;
	bool ends_at_once;
};

static void end_late_part(void *user)
{
	struct server *s = user;

	s->n_late++;
	shutdown_part_ended(s->shutdown);
}

static void begin(void *user)
{
	struct server *s = user;

	s->n_begun++;
	ck_assert(shutdown_has_begun(s->shutdown));
	shutdown_expect(s->shutdown, s->n_parts);
	if (s->ends_at_once)
		shutdown_part_ended(s->shutdown);
	else
		loop_timer_set(s->late, /* delay_ms= */ 1, /* repeat_ms= */ 1);
}

static void overdue(void *user)
{
	(void)user;
	if (write(STDERR_FILENO, "overdue\n", 8) < 0)
		abort();
}

static void open_server(struct server *s, uint64_t grace_ms)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(loop_new(&s->loop, &err));
	const struct shutdown_config config = {
		.loop = s->loop, .grace_ms = grace_ms, .begin = begin, .overdue = overdue, .user = s};
	ASSERT_OK(shutdown_new(&config, &s->shutdown, &err));
	s->late = loop_timer_new(s->loop, end_late_part, s);
	ck_assert(!shutdown_has_begun(s->shutdown));
}

static void close_server(struct server *s)
{
	loop_timer_close(s->late);
	shutdown_free(s->shutdown);
	loop_free(s->loop);
}

START_TEST(a_signal_begins_it_and_the_last_part_ends_it)
{
	struct server s = {.n_parts = 3};

	open_server(&s, LONG_MS);
	ck_assert_int_eq(raise(SIGTERM), 0);
	loop_run(s.loop);
	ck_assert_uint_eq(s.n_begun, 1);
	ck_assert_uint_eq(s.n_late, 3);
	close_server(&s);
}
END_TEST

START_TEST(it_begins_once)
{
	struct server s = {.n_parts = 2};

	open_server(&s, LONG_MS);
	shutdown_begin(s.shutdown);
	shutdown_begin(s.shutdown);
	ck_assert_int_eq(raise(SIGINT), 0);
	loop_run(s.loop);
	ck_assert_uint_eq(s.n_begun, 1);
	ck_assert_uint_eq(s.n_late, 2);
	close_server(&s);
}
END_TEST

START_TEST(parts_may_end_at_once)
{
	struct server s = {.n_parts = 1, .ends_at_once = true};

	open_server(&s, LONG_MS);
	ck_assert_int_eq(raise(SIGTERM), 0);
	loop_run(s.loop);
	ck_assert_uint_eq(s.n_begun, 1);
	close_server(&s);
}
END_TEST

/* The exit status is EXIT_FAILURE; were it forgotten, the test would run into check's timeout. */
START_TEST(what_does_not_end_in_time_is_left_behind)
{
	struct server s = {.n_parts = 1000000};

	open_server(&s, /* grace_ms= */ 20);
	shutdown_begin(s.shutdown);
	loop_run(s.loop);
}
END_TEST

START_TEST(nothing_is_freed_twice)
{
	struct server s = {0};

	open_server(&s, LONG_MS);
	close_server(&s);
	shutdown_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/core/shutdown");
	TCase *tcase = tcase_create("shutdown");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, a_signal_begins_it_and_the_last_part_ends_it);
	tcase_add_test(tcase, it_begins_once);
	tcase_add_test(tcase, parts_may_end_at_once);
	tcase_add_exit_test(tcase, what_does_not_end_in_time_is_left_behind, EXIT_FAILURE);
	tcase_add_test(tcase, nothing_is_freed_twice);
	return unit_runner_finish(srunner_create(suite));
}

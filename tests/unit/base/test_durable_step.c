/* SPDX-License-Identifier: Apache-2.0 */
/* Processes trace points, stop or kill themselves at one, as their environment says; needs PMEM_STEPS. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

static char trace[] = "/tmp/test_durable_step.XXXXXX";

/* Two durable actions, the first one twice. */
static void act(void)
{
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(STEP("first", 3 + i), 3 + i);
	errno = EXDEV;
	ck_assert_int_eq(STEP("second", -1), -1);
	ck_assert_int_eq(errno, EXDEV);
}

#ifdef PMEM_STEPS

static char *read_trace(void)
{
	char text[256] = "";
	int fd = open(trace, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	unlink(trace);
	return x_strdup(text);
}

START_TEST(each_point_is_traced_with_its_number_and_hit)
{
	int fd = mkstemp(trace);

	ck_assert_int_ge(fd, 0);
	close(fd);
	setenv("PMEM_STEP_TRACE", trace, 1);
	act();
	CLEANUP(free_charp) char *text = read_trace();
	ck_assert_str_eq(text, "1 first.before 1\n2 first.after 1\n3 first.before 2\n4 first.after 2\n"
			       "5 second.before 1\n6 second.after 1\n");
}
END_TEST

START_TEST(kills_itself_at_a_point)
{
	setenv("PMEM_KILL_AT", "second.after", 1);
	act();
}
END_TEST

START_TEST(kills_itself_at_the_second_hit_of_a_point)
{
	setenv("PMEM_KILL_AT", "first.before:2", 1);
	act();
}
END_TEST

START_TEST(kills_itself_at_the_point_of_a_number)
{
	setenv("PMEM_KILL_AT", "6", 1);
	act();
}
END_TEST

START_TEST(goes_on_where_no_point_is_meant)
{
	setenv("PMEM_KILL_AT", "first.before:3", 1);
	setenv("PMEM_STOP_AT", "third.before", 1);
	act();
}
END_TEST

START_TEST(a_place_that_is_not_understood_ends_the_process)
{
	setenv("PMEM_KILL_AT", "first.before:x", 1);
	act();
}
END_TEST

static void add_deaths(TCase *tcase)
{
	tcase_add_test_raise_signal(tcase, kills_itself_at_a_point, SIGKILL);
	tcase_add_test_raise_signal(tcase, kills_itself_at_the_second_hit_of_a_point, SIGKILL);
	tcase_add_test_raise_signal(tcase, kills_itself_at_the_point_of_a_number, SIGKILL);
	tcase_add_test_raise_signal(tcase, a_place_that_is_not_understood_ends_the_process, SIGABRT);
	tcase_add_test(tcase, each_point_is_traced_with_its_number_and_hit);
	tcase_add_test(tcase, goes_on_where_no_point_is_meant);
}
#else

START_TEST(without_points_only_the_actions_are_left)
{
	setenv("PMEM_KILL_AT", "1", 1);
	act();
	ck_assert_int_eq(access(trace, F_OK), -1);
}
END_TEST

static void add_deaths(TCase *tcase)
{
	tcase_add_test(tcase, without_points_only_the_actions_are_left);
}
#endif

int main(void)
{
	Suite *suite = suite_create("step");
	TCase *tcase = tcase_create("step");

	suite_add_tcase(suite, tcase);
	add_deaths(tcase);
	return unit_runner_finish(srunner_create(suite));
}

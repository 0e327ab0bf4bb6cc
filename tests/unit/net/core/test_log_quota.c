/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/core/log_quota.h"
#include "unit/unit.h"

#define NOW_NS (1000 * NS_PER_S)
#define MAX    3

static struct loop *loop;
static struct log_quota *q;
static FILE *log_file;
static int old_stderr;

static void set_up(void)
{
	struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	q = log_quota_new(&(struct log_quota_config){
		.loop = loop, .max = MAX, .missed_msg = "further ones", .server = "s"});
	log_file = tmpfile();
	old_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fileno(log_file), STDERR_FILENO), 0);
}

/* Return: the line that was logged, or "". */
static const char *logged(void)
{
	static char text[1024];
	size_t n;

	rewind(log_file);
	n = fread(text, 1, sizeof(text) - 1, log_file);
	text[n] = 0;
	ck_assert_int_eq(ftruncate(fileno(log_file), 0), 0);
	rewind(log_file);
	return text;
}

static void assert_logged(unsigned n)
{
	char wanted[64];
	const char *text = logged();

	snprintf(wanted, sizeof(wanted), "further ones server=s n=%u\n", n);
	ck_assert_msg(strstr(text, wanted), "\"%s\" lacks %s", text, wanted);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

static void tear_down(void)
{
	log_quota_free(q);
	loop_free(loop);
	dup2(old_stderr, STDERR_FILENO);
	close(old_stderr);
	fclose(log_file);
}

static unsigned take(unsigned n, uint64_t now_ns)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < n; i++)
		shown += log_quota_take(q, now_ns);
	return shown;
}

START_TEST(only_so_many_lines_are_shown_in_a_second)
{
	ck_assert_uint_eq(take(2, NOW_NS), 2);
	ck_assert_uint_eq(take(5, NOW_NS + NS_PER_S - 1), 1);
	ck_assert_str_eq(logged(), "");
}
END_TEST

START_TEST(the_next_second_tells_how_many_were_missed)
{
	take(MAX + 7, NOW_NS);
	ck_assert_uint_eq(take(1, NOW_NS + NS_PER_S), 1);
	assert_logged(7);
	ck_assert_uint_eq(take(MAX, NOW_NS + NS_PER_S), MAX - 1);
}
END_TEST

static void end_when_logged(void *user)
{
	(void)user;
	if (lseek(fileno(log_file), 0, SEEK_END) > 0)
		loop_stop(loop);
}

START_TEST(the_end_of_the_second_tells_without_another_line)
{
	struct loop_timer *tick = loop_timer_new(loop, end_when_logged, NULL);

	take(MAX + 2, NOW_NS);
	loop_timer_set(tick, 1, 1);
	loop_run(loop);
	loop_timer_close(tick);
	assert_logged(2);
	log_quota_free(TAKE_PTR(q));
	ck_assert_str_eq(logged(), "");
}
END_TEST

START_TEST(the_end_of_all_tells)
{
	take(MAX + 4, NOW_NS);
	/* does not wait for the second to end */
	loop_run(loop);
	log_quota_free(TAKE_PTR(q));
	assert_logged(4);
}
END_TEST

START_TEST(nothing_was_missed_when_all_was_shown)
{
	ck_assert_uint_eq(take(MAX, NOW_NS), MAX);
	ck_assert_uint_eq(take(MAX, NOW_NS + NS_PER_S), MAX);
	log_quota_free(TAKE_PTR(q));
	ck_assert_str_eq(logged(), "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/core/log_quota");
	TCase *tcase = tcase_create("log_quota");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, only_so_many_lines_are_shown_in_a_second);
	tcase_add_test(tcase, the_next_second_tells_how_many_were_missed);
	tcase_add_test(tcase, the_end_of_the_second_tells_without_another_line);
	tcase_add_test(tcase, the_end_of_all_tells);
	tcase_add_test(tcase, nothing_was_missed_when_all_was_shown);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

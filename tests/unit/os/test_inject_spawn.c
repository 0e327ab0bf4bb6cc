/* SPDX-License-Identifier: Apache-2.0 */
/* Running programs, with the n-th system call below it failing. */
#include <unistd.h>

#include "base/str.h"
#include "os/spawn.h"
#include "unit/inject/sweep.h"

#define MAX_BYTES  (64U << 10)
#define TIMEOUT_MS 20000
#define LINE       "0123456789abcdef\n"
#define SCRIPT     "for i in 1 2 3 4 5 6 7 8; do echo 0123456789abcdef; done; echo diag >&2; exit 3"

static struct buf out = BUF_INIT(MAX_BYTES);
static struct buf diag = BUF_INIT(MAX_BYTES);
static int status;
static struct child child = CHILD_INIT;

static int run(struct error **err)
{
	static const char *const argv[] = {"sh", "-c", SCRIPT, NULL};

	buf_reset(&out);
	buf_reset(&diag);
	return spawn_run(argv, NULL, &out, &diag, TIMEOUT_MS, &status, err);
}

/* A buffer that became full reports it, and callers rely on that. */
static const char *wrong_output(void)
{
	RIGHT_IF(status == 3);
	RIGHT_IF(out.overflowed || out.len == 8 * strlen(LINE));
	RIGHT_IF(diag.overflowed || str_eq(buf_str(&diag), "diag\n"));
	return NULL;
}

static void forget_output(void)
{
	buf_done(&out);
	buf_done(&diag);
	status = -1;
}

START_TEST(a_program_runs_to_its_end_and_is_heard)
{
	const struct sweep s = {.name = "spawn_run",
		.min_points = 15,
		.call = run,
		.wrong_at_end = wrong_output,
		.undo = forget_output};

	sweep_run(&s);
}
END_TEST

static int check(struct error **err)
{
	static const char *const argv[] = {"sh", "-c", "exit 0", NULL};

	return spawn_check(argv, NULL, TIMEOUT_MS, err);
}

/* Its end is all that is known of it: that must not be made up. */
static int check_failing(struct error **err)
{
	static const char *const argv[] = {"sh", "-c", "exit 3", NULL};
	struct error *why = NULL;

	if (spawn_check(argv, NULL, TIMEOUT_MS, &why) == 0)
		return 0;
	if (strstr(why->msg, "ended with status 3")) {
		error_free(why);
		status = 3;
		return 0;
	}
	*err = why;
	return -1;
}

static const char *failure_not_seen(void)
{
	RIGHT_IF(status == 3);
	return NULL;
}

START_TEST(success_and_failure_are_distinguished)
{
	const struct sweep good = {.name = "spawn_check", .min_points = 10, .call = check};
	const struct sweep bad = {.name = "spawn_check, status 3",
		.min_points = 10,
		.call = check_failing,
		.wrong_at_end = failure_not_seen,
		.undo = forget_output};

	status = -1;
	sweep_run(&good);
	sweep_run(&bad);
}
END_TEST

static int start_and_stop(struct error **err)
{
	static const char *const argv[] = {"cat", NULL};

	if (child_start(argv, NULL, &child, err) < 0)
		return -1;
	child_stop(&child, TIMEOUT_MS);
	return 0;
}

START_TEST(a_child_is_started_and_reaped_or_not_started)
{
	const struct sweep s = {
		.name = "child_start and child_stop", .min_points = 15, .call = start_and_stop};

	sweep_run(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inject_spawn");
	TCase *tcase = tcase_create("inject_spawn");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, a_program_runs_to_its_end_and_is_heard);
	tcase_add_test(tcase, success_and_failure_are_distinguished);
	tcase_add_test(tcase, a_child_is_started_and_reaped_or_not_started);
	return unit_runner_finish(srunner_create(suite));
}

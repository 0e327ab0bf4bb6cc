/* SPDX-License-Identifier: Apache-2.0 */
/* Running LVM, by itself and as a shell, with the n-th call below it failing. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/spawn.h"
#include "pmem/lvm/lvm_runners.h"
#include "unit/inject/sweep.h"

#define REPORT_MAX (64U << 10)
#define TIMEOUT_MS 20000

static char folder[] = "/tmp/pmem-inject-lvm-XXXXXX";
static const struct lvm_program program = {.path = TEST_DATA "/lvm/fake-lvm", .run_dir = folder};

static struct lvm *lvm;
static struct buf report = BUF_INIT(REPORT_MAX);

static void make_folder(void)
{
	signal(SIGPIPE, SIG_IGN);
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	const char *const argv[] = {"rm", "-r", folder, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(argv, NULL, TIMEOUT_MS, &err));
}

static int run(struct error **err)
{
	static const char *const argv[] = {"pvs", "-a", NULL};

	buf_reset(&report);
	return lvm_run(lvm, argv, &report, err);
}

/* A process that was left to end by itself is waited for by the next command's caller. */
static int run_when_possible(struct error **err)
{
	siginfo_t info;

	while (run(err) < 0) {
		if (!strstr((*err)->msg, "is still running a command"))
			return -1;
		error_clear(err);
		waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
	}
	return 0;
}

static const char *wrong_report(void)
{
	RIGHT_IF(str_starts(buf_str(&report), "{\"report\":["));
	RIGHT_IF(str_ends(buf_str(&report), "]}"));
	return NULL;
}

static void open_exec(void)
{
	lvm = lvm_open_exec_program(&program);
	lvm_set_timeout(lvm, TIMEOUT_MS);
}

static void open_shell(void)
{
	struct error *err = NULL;

	lvm = lvm_open_shell_program(&program, /* idle_ms= */ 0);
	lvm_set_timeout(lvm, TIMEOUT_MS);
	ASSERT_OK(run(&err));
}

static void close_lvm(void)
{
	lvm_close(TAKE_PTR(lvm));
	buf_done(&report);
	/* what was left to itself, which only an end of the program does */
	while (waitpid(-1, NULL, 0) > 0)
		;
}

START_TEST(a_command_by_itself_is_answered_whole_or_fails)
{
	const struct sweep s = {.name = "lvm_run, exec",
		.folder = folder,
		.min_points = 20,
		.brief = true,
		.keeps = true,
		.prepare = open_exec,
		.call = run_when_possible,
		.wrong_at_end = wrong_report,
		.undo = close_lvm};

	sweep_run(&s);
}
END_TEST

START_TEST(a_shell_answers_whole_or_is_replaced)
{
	const struct sweep s = {.name = "lvm_run, shell",
		.folder = folder,
		.min_points = 10,
		.brief = true,
		.keeps = true,
		.prepare = open_shell,
		.call = run_when_possible,
		.wrong_at_end = wrong_report,
		.undo = close_lvm};

	sweep_run(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inject_lvm_run");
	TCase *tcase = tcase_create("inject_lvm_run");

	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_set_timeout(tcase, 200);
	tcase_add_test(tcase, a_command_by_itself_is_answered_whole_or_fails);
	tcase_add_test(tcase, a_shell_answers_whole_or_is_replaced);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}

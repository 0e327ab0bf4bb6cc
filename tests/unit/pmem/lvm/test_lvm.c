/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include "os/spawn.h"
#include "pmem/device/device.h"
#include "pmem/lvm/lvm_runners.h"
#include "unit/unit.h"

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define LONG_MS   60000
#define SHORT_MS  1500
#define LOG_MAX   (64U << 10)

static char folder[] = "/tmp/pmem-test-lvm-XXXXXX";
static const struct lvm_program fake_program = {
	.path = TEST_DATA "/lvm/fake-lvm", .run_dir = folder, .retry_ms = LONG_MS};
/* asks for the shell again at once */
static const struct lvm_program hopeful_program = {.path = TEST_DATA "/lvm/fake-lvm", .run_dir = folder};

static void make_folder(void)
{
	signal(SIGPIPE, SIG_IGN);
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	struct error *err = NULL;

	ASSERT_OK(spawn_check(ARGV("rm", "-r", folder), NULL, LONG_MS, &err));
}

static void touch(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);
	CLEANUP(fd_closep) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
}

static void remove_file(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);

	ck_assert_int_eq(unlink(path), 0);
}

static char *read_log(void)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/log", folder);
	CLEANUP(buf_done) struct buf b = BUF_INIT(LOG_MAX);
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (file_read(AT_FDCWD, path, &b, &ignored) < 0)
		return x_strdup("");
	return x_strdup(buf_str(&b));
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 5 * (long)NS_PER_MS}, NULL);
}

static void assert_log(const char *expected)
{
	CLEANUP(free_charp) char *log = read_log();

	ck_assert_str_eq(log, expected);
}

/* Waits until another process has written @expected into the log. */
static void await_log(const char *expected)
{
	uint64_t deadline_ns = clock_ns() + LONG_MS * NS_PER_MS;

	for (;;) {
		CLEANUP(free_charp) char *log = read_log();
		if (str_eq(log, expected))
			return;
		ck_assert_msg(clock_ns() < deadline_ns, "log: %s", log);
		nap();
	}
}

static int run(struct lvm *l, const char *word, struct error **err)
{
	return lvm_run(l, ARGV(word, "x"), NULL, err);
}

static void assert_run(struct lvm *l, const char *word)
{
	struct error *err = NULL;

	ASSERT_OK(run(l, word, &err));
}

static struct lvm *open_shell(void)
{
	return lvm_open_shell_program(&fake_program, /* idle_ms= */ 1);
}

START_TEST(first_command_runs_by_itself_and_the_shell_takes_the_next)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();
	CLEANUP(buf_done) struct buf report = BUF_INIT(LOG_MAX);
	struct error *err = NULL;

	ASSERT_OK(lvm_run(l, ARGV("one", "-a"), &report, &err));
	ck_assert_str_eq(buf_str(&report), "{\"report\":[]}");
	buf_reset(&report);
	ASSERT_OK(lvm_run(l, ARGV("two", "-b", "c"), &report, &err));
	ck_assert(str_starts(buf_str(&report), "{\"report\":[{\"pv\":[{\"pv_name\":\"/dev/}\\\"}\""));
	assert_run(l, "three");
	assert_log("exec one --nohints -a\nshell\nasked version\nasked two --nohints -b c\nasked three "
		   "--nohints x\n");
}
END_TEST

START_TEST(refusal_has_lvms_words_and_the_shell_goes_on)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();
	struct error *err = NULL;

	ASSERT_FAILS(run(l, "refuse", &err), ERR_INTERNAL, "lvm refuse (status 5):   no;  space");
	ASSERT_FAILS(run(l, "refuse", &err), ERR_INTERNAL, "lvm refuse: no space");
	assert_run(l, "next");
	assert_log("exec refuse --nohints x\nshell\nasked version\nasked refuse --nohints x\nasked next "
		   "--nohints x\n");
}
END_TEST

static void assert_restarts(struct lvm *l, uint64_t n)
{
	struct lvm_activity a;

	lvm_activity(l, &a);
	ck_assert_uint_eq(a.restarts, n);
	ck_assert_str_eq(a.command, "");
}

static void run_when_the_old_one_has_ended(struct lvm *l)
{
	uint64_t deadline_ns = clock_ns() + LONG_MS * NS_PER_MS;
	struct error *err = NULL;

	while (run(l, "three", &err) < 0) {
		ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
		ck_assert(clock_ns() < deadline_ns);
		error_clear(&err);
		nap();
	}
}

START_TEST(shell_that_dies_or_babbles_is_replaced)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();
	struct error *err = NULL;

	assert_run(l, "one");
	assert_restarts(l, 0);
	ASSERT_FAILS(run(l, "die", &err), ERR_UNAVAILABLE, "the shell exited");
	assert_restarts(l, 1);
	assert_run(l, "two");
	ASSERT_FAILS(run(l, "garbage", &err), ERR_UNAVAILABLE, "not a report");
	assert_restarts(l, 2);

	run_when_the_old_one_has_ended(l);
	ASSERT_FAILS(run(l, "close", &err), ERR_UNAVAILABLE, "does not answer");
	assert_restarts(l, 3);
	run_when_the_old_one_has_ended(l);
	assert_run(l, "four");
}
END_TEST

START_TEST(death_of_an_idle_shell_is_no_failure)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	assert_run(l, "one");
	assert_run(l, "last");
	for (int i = 0; i < 3; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		/* It may be seen only while it ends. */
		if (run(l, "two", &err) < 0)
			ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
	}
	assert_run(l, "three");
}
END_TEST

START_TEST(output_beside_the_answer_is_drained)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	assert_run(l, "one");
	assert_run(l, "noisy");
	assert_run(l, "noisy");
}
END_TEST

START_TEST(lvm_without_a_shell_gets_processes)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	touch("no-shell");
	assert_run(l, "one");
	assert_run(l, "two");
	assert_run(l, "three");
	assert_log("exec one --nohints x\nshell\nexec two --nohints x\nexec three --nohints x\n");
}
END_TEST

/* When the second shell looks is its own affair. */
START_TEST(shell_that_failed_once_is_tried_again)
{
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_shell_program(&hopeful_program, /* idle_ms= */ 1);
	bool asked = false;

	touch("no-shell");
	assert_run(l, "one");
	assert_run(l, "two");
	remove_file("no-shell");
	while (!asked) {
		assert_run(l, "next");
		CLEANUP(free_charp) char *log = read_log();
		asked = strstr(log, "asked next");
	}
}
END_TEST

static bool has_child(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void await_no_child(struct lvm *l)
{
	uint64_t deadline_ns = clock_ns() + LONG_MS * NS_PER_MS;

	for (lvm_idle(l); has_child(); lvm_idle(l)) {
		ck_assert_msg(clock_ns() < deadline_ns, "a child stays");
		nap();
	}
}

static void kill_children(void)
{
	CLEANUP(free_charp) char *path = x_asprintf("/proc/self/task/%d/children", getpid());
	CLEANUP(buf_done) struct buf b = BUF_INIT(LOG_MAX);
	CLEANUP(error_freep) struct error *err = NULL;
	uint32_t pid = 0;

	ASSERT_OK(file_read(AT_FDCWD, path, &b, &err));
	CLEANUP(free_charp) char *text = x_strndup(buf_str(&b), strcspn(buf_str(&b), " "));
	ASSERT_OK(parse_u32(text, &pid, &err));
	ck_assert_int_eq(kill((pid_t)pid, SIGKILL), 0);
}

START_TEST(idle_shell_ends)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	lvm_idle(l);
	assert_run(l, "one");
	assert_run(l, "two");
	nap();
	lvm_idle(l);
	await_log("exec one --nohints x\nshell\nasked version\nasked two --nohints x\nend\n");
	await_no_child(l);
	assert_run(l, "three");
	assert_restarts(l, 0);
}
END_TEST

/* It keeps what LVM reserves for suspending devices; another growth at once goes to the same process. */
START_TEST(shell_that_has_let_a_volume_grow_ends_soon)
{
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_shell_program(&fake_program, /* idle_ms= */ 0);

	assert_run(l, "one");
	assert_run(l, "lvextend");
	lvm_idle(l);
	assert_run(l, "lvextend");
	usleep(2100 * 1000);
	lvm_idle(l);
	await_log("exec one --nohints x\nshell\nasked version\nasked lvextend --nohints x\n"
		  "asked lvextend --nohints x\nend\n");
	await_no_child(l);
	/* the next one has reserved nothing */
	assert_run(l, "two");
	assert_run(l, "three");
	usleep(2100 * 1000);
	lvm_idle(l);
	ck_assert(has_child());
	assert_restarts(l, 0);
}
END_TEST

/* A process that was killed must not stay as a zombie until the next command. */
START_TEST(killed_shell_is_reaped_without_a_command)
{
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_shell_program(&fake_program, /* idle_ms= */ LONG_MS);

	assert_run(l, "one");
	assert_run(l, "two");
	kill_children();
	await_no_child(l);
	assert_restarts(l, 1);
	assert_run(l, "three");
}
END_TEST

START_TEST(command_after_the_idle_time_does_not_wait_for_the_end)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	for (int i = 0; i < 20; i++) {
		assert_run(l, "one");
		lvm_idle(l);
	}
	assert_restarts(l, 0);
}
END_TEST

START_TEST(a_look_neither_keeps_a_shell_nor_starts_one)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	assert_run(l, "pvs");
	assert_run(l, "two");
	nap();
	assert_run(l, "pvs");
	lvm_idle(l);
	assert_run(l, "pvs");
	assert_run(l, "pvs");
	assert_run(l, "three");
	assert_run(l, "four");
	assert_log("exec pvs --nohints x\nshell\nasked version\nasked two --nohints x\nasked pvs --nohints "
		   "x\nend\n"
		   "exec pvs --nohints x\nexec pvs --nohints x\nexec three --nohints x\nshell\nasked "
		   "version\nasked four "
		   "--nohints x\n");
}
END_TEST

START_TEST(other_devices_need_another_shell)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	assert_run(l, "one");
	assert_run(l, "two");
	lvm_set_devices(l, ARGV("/dev/pmem0"), 1);
	assert_run(l, "three");
	lvm_set_devices(l, ARGV("/dev/pmem0"), 1);
	assert_run(l, "four");
	assert_log("exec one --nohints x\nshell\nasked version\nasked two --nohints x\nend\n"
		   "exec three --nohints x\nshell\nasked version\nasked four --nohints x\n");
}
END_TEST

START_TEST(configuration_that_vanished_is_written_again)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();
	CLEANUP(free_charp) char *pattern = x_asprintf("rm %s/lvm-*/lvm.conf", folder);
	struct error *err = NULL;

	assert_run(l, "one");
	assert_run(l, "two");
	ASSERT_OK(spawn_check(ARGV("sh", "-c", pattern), NULL, LONG_MS, &err));
	assert_run(l, "three");
	assert_run(l, "four");
	assert_log("exec one --nohints x\nshell\nasked version\nasked two --nohints x\nend\n"
		   "exec three --nohints x\nshell\nasked version\nasked four --nohints x\n");
}
END_TEST

/* @l runs one command that does not end; then others have to wait, and no process is killed. */
static void check_slow(struct lvm *l, const char *log_when_done)
{
	struct error *err = NULL;

	lvm_set_timeout(l, SHORT_MS);
	ASSERT_FAILS(run(l, "slow", &err), ERR_DEADLINE, "lvm slow");
	lvm_set_timeout(l, LONG_MS);
	ASSERT_FAILS(run(l, "next", &err), ERR_UNAVAILABLE, "too slow");
	touch("go-on");
	await_log(log_when_done);

	uint64_t deadline_ns = clock_ns() + LONG_MS * NS_PER_MS;
	while (run(l, "next", &err) < 0) {
		ck_assert(clock_ns() < deadline_ns);
		error_clear(&err);
		nap();
	}
}

START_TEST(slow_process_is_left_to_end)
{
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_exec_program(&fake_program);

	check_slow(l, "exec slow --nohints x\nwaiting\ndone\n");
}
END_TEST

START_TEST(slow_shell_is_left_to_end)
{
	CLEANUP(lvm_closep) struct lvm *l = open_shell();

	assert_run(l, "one");
	assert_run(l, "two");
	check_slow(l, "exec one --nohints x\nshell\nasked version\nasked two --nohints x\nasked slow "
		      "--nohints x\nwaiting\ndone\nend\n");
}
END_TEST

START_TEST(process_that_is_killed_may_have_done_something)
{
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_exec_program(&fake_program);
	struct error *err = NULL;

	ASSERT_FAILS(run(l, "killed", &err), ERR_UNAVAILABLE, "signal 9");
	assert_run(l, "next");
}
END_TEST

START_TEST(missing_program_is_reported)
{
	static const struct lvm_program missing = {.path = "/nonexistent/lvm", .run_dir = folder};
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_shell_program(&missing, 0);
	struct error *err = NULL;

	ASSERT_FAILS(run(l, "one", &err), ERR_PRECONDITION, "/nonexistent/lvm");
	ASSERT_FAILS(run(l, "one", &err), ERR_PRECONDITION, "/nonexistent/lvm");
}
END_TEST

START_TEST(configuration_is_for_root_only)
{
	CLEANUP(free_charp)
	char *command = x_asprintf("stat -c %%a %s/lvm-* %s/lvm-*/lvm.conf | tr '\\n' ' '", folder, folder);
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_exec_program(&fake_program);
	CLEANUP(buf_done) struct buf out = BUF_INIT(LOG_MAX);
	struct error *err = NULL;

	assert_run(l, "one");
	ASSERT_OK(spawn_check(ARGV("sh", "-c", command), &out, LONG_MS, &err));
	ck_assert_str_eq(buf_str(&out), "700 600 ");
}
END_TEST

int main(void)
{
	static const TTest *const *const with_program[] = {
		&first_command_runs_by_itself_and_the_shell_takes_the_next,
		&refusal_has_lvms_words_and_the_shell_goes_on, &shell_that_dies_or_babbles_is_replaced,
		&death_of_an_idle_shell_is_no_failure, &output_beside_the_answer_is_drained,
		&lvm_without_a_shell_gets_processes, &shell_that_failed_once_is_tried_again, &idle_shell_ends,
		&shell_that_has_let_a_volume_grow_ends_soon, &killed_shell_is_reaped_without_a_command,
		&command_after_the_idle_time_does_not_wait_for_the_end,
		&a_look_neither_keeps_a_shell_nor_starts_one, &other_devices_need_another_shell,
		&configuration_that_vanished_is_written_again, &slow_process_is_left_to_end,
		&slow_shell_is_left_to_end, &process_that_is_killed_may_have_done_something,
		&missing_program_is_reported, &configuration_is_for_root_only};
	Suite *suite = suite_create("lvm");
	TCase *programs = tcase_create("lvm_program");

	for (size_t i = 0; i < ARRAY_SIZE(with_program); i++)
		tcase_add_test(programs, *with_program[i]);
	tcase_add_checked_fixture(programs, make_folder, remove_folder);
	tcase_set_timeout(programs, LONG_MS / 1000 * 2);
	suite_add_tcase(suite, programs);
	return unit_runner_finish(srunner_create(suite));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "unit/unit.h"

#define LONG_MS   60000
#define MAX_BYTES (1U << 20)

#define ARGV(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) ARGV("sh", "-c", script)

START_TEST(status_and_both_outputs_come_back_from_more_than_a_pipe_holds)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	CLEANUP(buf_done) struct buf diag = BUF_INIT(MAX_BYTES);
	int status = -1;

	ASSERT_OK(spawn_run(SHELL("head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 7"), NULL,
		&out, &diag, LONG_MS, &status, &err));
	ck_assert_int_eq(status, 7);
	ck_assert_uint_eq(out.len, 300000);
	ck_assert_uint_eq(diag.len, 200000);
}
END_TEST

START_TEST(output_over_the_limit_keeps_its_start_and_marks_the_buffer)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(10);
	int status = -1;

	ASSERT_OK(spawn_run(ARGV("echo", "0123456789abc"), NULL, &out, NULL, LONG_MS, &status, &err));
	ck_assert_str_eq(buf_str(&out), "0123456789");
	ck_assert(out.overflowed);
}
END_TEST

START_TEST(the_environment_is_minimal)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	int status = -1;

	setenv("SECRET", "x", 1);
	ASSERT_OK(spawn_run(ARGV("env"), ARGV("LVM_REPORT_FD=3"), &out, NULL, LONG_MS, &status, &err));
	ck_assert_str_eq(buf_str(&out), "PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C\nLVM_REPORT_FD=3\n");
}
END_TEST

START_TEST(blocked_signals_and_an_ignored_sigpipe_are_not_inherited)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	sigset_t all;
	int status = -1;

	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	ASSERT_OK(spawn_run(ARGV("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"), NULL, &out, NULL,
		LONG_MS, &status, &err));
	const char *text = buf_str(&out);
	ck_assert(str_starts(text, "SigBlk:\t0000000000000000\nSigIgn:\t"));
	/* SIGPIPE is bit 12: the fourth hex digit from the end. Others may have been ignored before us. */
	ck_assert_int_eq(text[strlen(text) - strlen("0000\n")], '0');
}
END_TEST

START_TEST(descriptors_above_stderr_are_closed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	int status = -1;

	ck_assert_int_eq(dup2(STDERR_FILENO, 57), 57);
	ASSERT_OK(spawn_run(ARGV("ls", "/proc/self/fd"), NULL, &out, NULL, LONG_MS, &status, &err));
	ck_assert_str_eq(buf_str(&out), "0\n1\n2\n3\n"); /* 3 is ls reading the directory */
}
END_TEST

START_TEST(a_parent_without_stdio_can_run_programs)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	CLEANUP(buf_done) struct buf diag = BUF_INIT(MAX_BYTES);
	int status = -1;

	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	ASSERT_OK(
		spawn_run(SHELL("cat; echo out; echo diag >&2"), NULL, &out, &diag, LONG_MS, &status, &err));
	ck_assert_str_eq(buf_str(&out), "out\n");
	ck_assert_str_eq(buf_str(&diag), "diag\n");

	/* The only pipe gets numbers 0 and 1, the latter of which the child's stdout takes first. */
	buf_reset(&diag);
	ASSERT_OK(spawn_run(SHELL("echo diag >&2"), NULL, NULL, &diag, LONG_MS, &status, &err));
	ck_assert_str_eq(buf_str(&diag), "diag\n");
}
END_TEST

START_TEST(a_daemon_left_behind_does_not_hold_up_the_end)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	int status = -1;
	uint32_t daemon = 0;

	ASSERT_OK(spawn_run(SHELL("sleep 1000 & printf %s $!"), NULL, &out, NULL, LONG_MS, &status, &err));
	ASSERT_OK(parse_u32(buf_str(&out), &daemon, &err));
	ck_assert_int_eq(kill((pid_t)daemon, SIGKILL), 0);
}
END_TEST

START_TEST(a_time_out_asks_before_it_kills)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	int status = -1;

	ASSERT_FAILS(
		spawn_run(SHELL("trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.02; done"),
			NULL, &out, NULL, 500, &status, &err),
		ERR_DEADLINE, "sh did not end within 500 ms");
	ck_assert_str_eq(buf_str(&out), "ready\ntidy\n");
	ck_assert_int_eq(status, -1);
}
END_TEST

START_TEST(a_program_that_ignores_sigterm_is_killed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int status = -1;

	ASSERT_FAILS(
		spawn_run(SHELL("trap '' TERM; while :; do :; done"), NULL, NULL, NULL, 300, &status, &err),
		ERR_DEADLINE, "300 ms");
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(failures_to_start_and_death_by_signal_are_distinguished)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int status = -1;

	ASSERT_FAILS(spawn_run(ARGV("no-such-program"), NULL, NULL, NULL, LONG_MS, &status, &err),
		ERR_PRECONDITION, "no-such-program");
	ASSERT_FAILS(spawn_run(ARGV("/nowhere/program"), NULL, NULL, NULL, LONG_MS, &status, &err),
		ERR_PRECONDITION, "/nowhere/program");
	ASSERT_FAILS(spawn_run(ARGV("/etc/passwd"), NULL, NULL, NULL, LONG_MS, &status, &err), ERR_INTERNAL,
		"/etc/passwd");
	ASSERT_FAILS(spawn_run(SHELL("kill -9 $$"), NULL, NULL, NULL, LONG_MS, &status, &err), ERR_INTERNAL,
		"signal 9");
}
END_TEST

START_TEST(check_reports_status_and_what_stderr_says)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);

	ASSERT_OK(spawn_check(ARGV("echo", "fine"), &out, LONG_MS, &err));
	ck_assert_str_eq(buf_str(&out), "fine\n");
	ASSERT_FAILS(spawn_check(SHELL("printf 'warning\\nno space\\n\\n' >&2; exit 3"), NULL, LONG_MS, &err),
		ERR_INTERNAL, "sh ended with status 3: warning; no space");
	ASSERT_FAILS(spawn_check(ARGV("false"), NULL, LONG_MS, &err), ERR_INTERNAL, "status 1");
}
END_TEST

/* As mkfs.xfs 6.1, mke2fs 1.47 and e2fsck 1.47 print it. */
START_TEST(what_a_program_says_is_one_line_with_the_reason)
{
	static const struct {
		const char *output, *said;
	} cases[] = {
		{"size 1024 of data subvolume is too small, minimum 4096 blocks\nUsage: mkfs.xfs\n"
		 "/* blocksize */\t\t[-b size=num]\n<devicename> is required unless -d name=xxx is given.\n",
			"size 1024 of data subvolume is too small, minimum 4096 blocks"},
		{"mkfs.ext4: Device size reported to be zero.  Invalid partition specified, or\n"
		 "\tpartition table wasn't reread after running fdisk, due to\n"
		 "\ta modified partition being busy and in use.\n",
			"mkfs.ext4: Device size reported to be zero. Invalid partition specified, or "
			"partition table wasn't reread after running fdisk, due to "
			"a modified partition being busy and in use."},
		{"/dev/loop0: Block bitmap differences: -1\n\n/dev/loop0: UNEXPECTED INCONSISTENCY; RUN fsck "
		 "MANUALLY.\n\t(i.e., without -a or -p options)\n",
			"/dev/loop0: Block bitmap differences: -1; /dev/loop0: UNEXPECTED INCONSISTENCY; RUN "
			"fsck MANUALLY. (i.e., without -a or -p options)"},
		{"Usage: program\n", "Usage: program"},
		{"\n \n", ""},
		{"", ""},
		{"a\x1b[1m\xff", "a?[1m?"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *said = spawn_said(cases[i].output);

		ck_assert_str_eq(said, cases[i].said);
	}
}
END_TEST

START_TEST(of_much_that_a_program_says_the_beginning_and_the_end_are_kept)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MAX_BYTES);

	buf_adds(&text, "the reason\n");
	for (int i = 0; i < 300; i++)
		buf_adds(&text, "and so on\n");
	buf_adds(&text, "the end\n");
	CLEANUP(free_charp) char *said = spawn_said(buf_str(&text));
	ck_assert_uint_le(strlen(said), 600);
	ck_assert_ptr_eq(strstr(said, "the reason; and so on"), said);
	ck_assert_ptr_nonnull(strstr(said, " ... "));
	ck_assert_str_eq(said + strlen(said) - strlen("; the end"), "; the end");
}
END_TEST

static void read_line(int fd, const char *expected)
{
	char got[32] = "";
	size_t n = 0;

	while (n == 0 || got[n - 1] != '\n') {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ck_assert_int_eq(poll(&p, 1, LONG_MS), 1);
		ssize_t rc = read(fd, got + n, sizeof(got) - 1 - n);
		ck_assert_int_gt(rc, 0);
		n += (size_t)rc;
	}
	ck_assert_str_eq(got, expected);
}

START_TEST(a_child_talks_on_all_four_descriptors)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct child c = CHILD_INIT;
	pid_t pid;

	ASSERT_OK(child_start(
		SHELL("ls /proc/self/fd | wc -l; echo diag >&2; echo extra >&3; cat"), NULL, &c, &err));
	pid = c.pid;
	read_line(c.stdout_fd, "5\n"); /* 0-3 and ls reading the directory */
	read_line(c.stderr_fd, "diag\n");
	read_line(c.extra_fd, "extra\n");
	ck_assert_int_eq(write(c.stdin_fd, "echoed\n", 7), 7);
	read_line(c.stdout_fd, "echoed\n");
	child_stop(&c, LONG_MS);
	ck_assert_int_eq(c.pid, -1);
	ck_assert_int_eq(c.stdin_fd, -1);
	child_stop(&c, LONG_MS);
	ck_assert_int_eq(kill(pid, 0), -1);
}
END_TEST

START_TEST(stopping_a_child_that_does_not_end_by_itself_signals_and_reaps_it)
{
	static const char *const scripts[] = {
		"echo ready; exec sleep 1000",
		"trap '' TERM; echo ready; while :; do :; done",
	};

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		struct child c = CHILD_INIT;
		ASSERT_OK(child_start(SHELL(scripts[i]), NULL, &c, &err));
		read_line(c.stdout_fd, "ready\n");
		child_stop(&c, 100);
		ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
		ck_assert_int_eq(errno, ECHILD);
	}
}
END_TEST

START_TEST(stopping_a_child_asks_before_it_kills)
{
	CLEANUP(error_freep) struct error *err = NULL;
	char file[] = "/tmp/spawn.XXXXXX";
	struct child c = CHILD_INIT;

	close(mkstemp(file));
	CLEANUP(free_charp)
	char *script = x_asprintf("trap 'rm %s; exit' TERM; echo ready; while :; do sleep 0.02; done", file);
	ASSERT_OK(child_start(SHELL(script), NULL, &c, &err));
	read_line(c.stdout_fd, "ready\n");
	child_stop(&c, 1000);
	ck_assert_int_lt(access(file, F_OK), 0);
}
END_TEST

START_TEST(a_child_that_cannot_start_leaves_nothing)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct child c = CHILD_INIT;

	ASSERT_FAILS(
		child_start(ARGV("no-such-program"), NULL, &c, &err), ERR_PRECONDITION, "no-such-program");
	ck_assert_int_eq(c.pid, -1);
	ck_assert_int_eq(c.stdin_fd, -1);
	child_stop(&c, 0);
}
END_TEST

/* Waits until the limits are set, which is when it has been started. */
#define SHOW_RIGHTS                                                                                          \
	"until grep -q 'Max core file size *0 *0' /proc/self/limits; do sleep 0.01; done; "                  \
	"cat /proc/self/limits /proc/self/status"

START_TEST(a_confined_program_has_no_rights_to_gain_and_little_to_use)
{
	static const char *const wanted[] = {"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
		"CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n",
		"Max address space         123456789            123456789            bytes",
		"Max cpu time              61                   61                   seconds",
		"Max file size             0                    0                    bytes"};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	CLEANUP(buf_done) struct buf usual = BUF_INIT(MAX_BYTES);
	int status = -1;

	if (geteuid() != 0) {
		fprintf(stderr, "SKIP: only root has rights to lose\n");
		return;
	}
	ASSERT_OK(spawn_confined(SHELL(SHOW_RIGHTS), NULL, 123456789, &out, LONG_MS, &status, &err));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ck_assert_msg(strstr(buf_str(&out), wanted[i]), "%s: %s", wanted[i], buf_str(&out));
	/* The caller keeps its own. */
	ASSERT_OK(spawn_run(SHELL("cat /proc/self/status"), NULL, &usual, NULL, LONG_MS, &status, &err));
	ck_assert_ptr_null(strstr(buf_str(&usual), wanted[0]));
	ck_assert_ptr_nonnull(strstr(buf_str(&usual), "NoNewPrivs:\t0\n"));
}
END_TEST

START_TEST(a_confined_program_cannot_write_a_file)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	char path[] = "/tmp/pmem-confined-XXXXXX";
	CLEANUP(fd_closep) int fd = mkstemp(path);
	CLEANUP(free_charp) char *script = x_asprintf("sleep 0.5; echo x >%s", path);
	struct stat st;
	int status = -1;

	ck_assert_int_ge(fd, 0);
	(void)!spawn_confined(SHELL(script), NULL, 1ULL << 30, &out, LONG_MS, &status, &err);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(st.st_size, 0);
}
END_TEST

/* The signal 0 only asks whether one could be sent. */
START_TEST(a_confined_program_cannot_act_on_other_processes)
{
	static const char script[] =
		"grep Seccomp: /proc/self/status; kill -0 $PPID; unshare --user true; prlimit --pid $PPID --nofile=64;"
		"perl -e 'fcntl(STDIN, 8, getppid()) or print \"no owner\\n\"; socket(S, 2, 1, 0) or print \"no socket\\n\";"
		"syscall(425, 1, 0) < 0 and print \"no io_uring $!\\n\"'; (true) && echo forks";
	static const char *const wanted[] = {"Seccomp:\t2\n", "kill: ", "unshare failed", "prlimit: failed",
		"no owner", "no socket", "no io_uring Operation not permitted", "forks\n"};
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	int status = -1;

	ASSERT_OK(spawn_run(SHELL("kill -0 $PPID"), NULL, NULL, NULL, LONG_MS, &status, &err));
	ck_assert_int_eq(status, 0);
	ASSERT_OK(spawn_confined(SHELL(script), NULL, 1ULL << 30, &out, LONG_MS, &status, &err));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ck_assert_msg(strstr(buf_str(&out), wanted[i]), "%s: %s", wanted[i], buf_str(&out));
}
END_TEST

START_TEST(a_confined_program_that_does_not_exist_is_named)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX_BYTES);
	int status = -1;

	ASSERT_FAILS(spawn_confined(ARGV("/no/such/program"), NULL, 1, &out, LONG_MS, &status, &err),
		ERR_PRECONDITION, "/no/such/program");
}
END_TEST

UNIT_MAIN("os/spawn", a_confined_program_has_no_rights_to_gain_and_little_to_use,
	a_confined_program_cannot_write_a_file, a_confined_program_cannot_act_on_other_processes,
	a_confined_program_that_does_not_exist_is_named,
	status_and_both_outputs_come_back_from_more_than_a_pipe_holds,
	output_over_the_limit_keeps_its_start_and_marks_the_buffer, the_environment_is_minimal,
	blocked_signals_and_an_ignored_sigpipe_are_not_inherited, descriptors_above_stderr_are_closed,
	a_parent_without_stdio_can_run_programs, a_daemon_left_behind_does_not_hold_up_the_end,
	a_time_out_asks_before_it_kills, a_program_that_ignores_sigterm_is_killed,
	failures_to_start_and_death_by_signal_are_distinguished, check_reports_status_and_what_stderr_says,
	what_a_program_says_is_one_line_with_the_reason,
	of_much_that_a_program_says_the_beginning_and_the_end_are_kept, a_child_talks_on_all_four_descriptors,
	stopping_a_child_that_does_not_end_by_itself_signals_and_reaps_it,
	stopping_a_child_asks_before_it_kills, a_child_that_cannot_start_leaves_nothing)

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "os/file.h"

/* Opened the other way round, so that what is read or written there fails. */
static void open_standard(int fd)
{
	if (fcntl(fd, F_GETFD) >= 0)
		return;
	if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
		abort();
}

/* Settings that are inherited from the parent: with SIGCHLD ignored, the exit status of a child cannot be
 * read, and a blocked signal cannot end a server. A write beyond RLIMIT_FSIZE must fail and not end the
 * process. */
static void begin_signals(void)
{
	sigset_t none;

	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
}

void process_begin(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		open_standard(fd);
	begin_signals();
}

int process_print(const char *text, struct error **err)
{
	if (fputs(text, stdout) != EOF && fflush(stdout) != EOF)
		return 0;
	if (errno == EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return err_set_errno(err, ERR_INTERNAL, errno, "write to stdout");
}

int process_print_or_fail(const char *program, const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (process_print(text, &err) == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: %s\n", program, err->msg);
	return EXIT_FAILURE;
}

void process_note_not_root(struct error **err)
{
	int cause = (*err)->os_errno;

	if ((cause == EACCES || cause == EPERM || cause == EROFS) && geteuid() != 0)
		(void)!err_wrap(err, "not root (uid %u), run as root", (unsigned)geteuid());
}

static const struct {
	int number;
	const char *name;
} stop_signals[] = {{SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}};

bool process_heeds_sighup(void)
{
	struct sigaction now;

	return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

void process_defer_stop(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++)
		if (stop_signals[i].number != SIGHUP || process_heeds_sighup())
			sigaddset(&set, stop_signals[i].number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

const char *process_stop_signal(void)
{
	sigset_t set;

	if (sigpending(&set) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++)
		if (sigismember(&set, stop_signals[i].number))
			return stop_signals[i].name;
	return NULL;
}

static void closing_is_stuck(int signum)
{
	static const char line[] = ": ending although not all could be closed\n";
	const char *name = program_invocation_short_name;

	(void)signum;
	if (write(STDERR_FILENO, name, strlen(name)) >= 0 &&
		write(STDERR_FILENO, line, sizeof(line) - 1) >= 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

const char *process_host_root(void)
{
	static const char of_host[] = "pid:[4026531836]";
	char text[sizeof(of_host) + 1];
	ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text));

	if (n != (ssize_t)sizeof(of_host) - 1 || memcmp(text, of_host, (size_t)n) != 0)
		return NULL;
	return access("/proc/1/root/etc", R_OK) == 0 ? "/proc/1/root" : NULL;
}

void process_limit_closing(unsigned seconds)
{
	signal(SIGALRM, closing_is_stuck);
	alarm(seconds);
}

/* Crowds of peers must leave descriptors to work with. */
static void raise_descriptor_limit(unsigned descriptors)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= descriptors)
		return;
	limit.rlim_cur = limit.rlim_max < descriptors ? limit.rlim_max : descriptors;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < descriptors)
		log_warn("the limit of open files is low: many peers can exhaust it",
			F_U64("limit", limit.rlim_cur), F_U64("wanted", descriptors));
}

/* If every mapping may get huge pages, as is Debian's setting, each thread would take 2 MiB for its stack
 * and 2 MiB for its heap. DAX mappings of pods are not affected. */
static void keep_pages_small(void)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		log_debug("huge pages cannot be declined", F_U64("errno", (uint64_t)errno));
}

/* Keys and tokens are in memory: no core file has them, and only root with CAP_SYS_PTRACE can read it, also
 * where other programs run as the same user. */
static void keep_memory_private(void)
{
	const struct rlimit none = {0};

	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		log_warn("core files with keys are possible", F_U64("errno", (uint64_t)errno));
}

void process_set_up(unsigned descriptors)
{
	keep_memory_private();
	raise_descriptor_limit(descriptors);
	keep_pages_small();
}

void process_write_termination_log(const struct error *e)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(fd_closep) int fd = -1;
	const char *path = getenv("TERMINATION_LOG_PATH");

	if (str_empty(path))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_all(fd, span_of(e->msg), &ignored) < 0)
		log_warn("termination log could not be written, ignoring", F_STR("path", path));
}

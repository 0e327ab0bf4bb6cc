#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "os/file.h"

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

void process_closing(unsigned seconds)
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
		log_warn("few descriptors: a crowd of peers can use them up", F_U64("limit", limit.rlim_cur),
			F_U64("wanted", descriptors));
}

/* Where every mapping may get huge pages, which is Debian's setting, each thread would take 2 MiB for its
 * stack and 2 MiB for its heap. DAX mappings of pods are their own affair. */
static void keep_pages_small(void)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		log_debug("huge pages cannot be declined", F_U64("errno", (uint64_t)errno));
}

void process_set_up(unsigned descriptors)
{
	signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit(descriptors);
	keep_pages_small();
}

void process_tell_end(const struct error *e)
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

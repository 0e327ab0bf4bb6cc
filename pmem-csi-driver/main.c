/* pmem-csi-driver: the CSI driver of one node, and commands that look at it. Exit status: 0 orderly end, 1
 * failure, 2 wrong usage; that of a command its -help tells. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "init_chain.h"
#include "node.h"
#include "os/file.h"

/* Kubernetes shows the content of this file when a container ends (terminationMessagePath). */
static void write_termination_log(const struct error *e)
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

static void warn_ignored(char *const *names)
{
	for (size_t i = 0; names && names[i]; i++)
		log_warn("flag is accepted but has no effect here", F_STR("flag", names[i]));
}

/* As the Go driver, it does not end by itself: a container that ends is started again, and would convert what
 * an administrator has made meanwhile. */
static int convert(const struct options *o, struct error **err)
{
	sigset_t set;
	int caught;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (init_chain_convert(o->logging_format, err) < 0)
		return -1;
	log_warn("the labels of the node are not changed: remove convert-raw-namespaces and set the one for "
		 "the "
		 "node driver",
		F_STR("node", o->node_id), F_STR("driver", o->driver_name));
	log_info("conversion is done, waiting for a signal");
	sigwait(&set, &caught);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(options_done) struct options o = {0};
	CLEANUP(strv_freep) char **ignored = NULL;

	mem_tune();
	if (argc > 1 && argv[1][0] != '-')
		return command_main(argc - 1, argv + 1);
	if (options_parse(argc, argv, &o, &ignored, &err) < 0) {
		fprintf(stderr, "pmem-csi-driver: %s\n", err->msg);
		return 2;
	}
	if (o.show_help) {
		CLEANUP(free_charp) char *help = options_help();
		fputs(help, stdout);
		return 0;
	}
	if (o.show_version) {
		puts(PMEM_VERSION);
		return 0;
	}
	log_init("pmem-csi-driver", str_eq(o.logging_format, "json") ? LOG_JSON : LOG_TEXT, o.verbosity);
	warn_ignored(ignored);
	if ((str_eq(o.mode, MODE_CONVERT) ? convert(&o, &err) : node_run(&o, &err)) < 0) {
		log_error("pmem-csi-driver ends", F_ERR(err));
		write_termination_log(err);
		return 1;
	}
	return 0;
}

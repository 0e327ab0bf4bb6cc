/* SPDX-License-Identifier: Apache-2.0 */
/* pmem-csi-driver: the CSI driver of one node, its central controller, and commands that examine a node or
 * the cluster. Exit status: 0 orderly end, 1 failure, 2 wrong usage; the -help of a command explains its own.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "controller.h"
#include "init_chain.h"
#include "node.h"
#include "os/process.h"

/* As the Go driver, it does not end by itself: a container that ends is started again, and would convert what
 * an administrator has made meanwhile. */
static sigset_t block_stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (process_heeds_sighup())
		sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return set;
}

static int convert(const struct options *o, struct error **err)
{
	CLEANUP(free_charp) char *state_path = options_state_path(o);

	if (init_chain_convert(o->flags.logging_format, state_path, err) < 0)
		return -1;
	log_warn("the labels of the node are not changed: "
		 "remove convert-raw-namespaces and set the one for the node driver",
		F_STR("node", o->node_id), F_STR("driver", o->driver_name));
	log_info("conversion is done");
	return 0;
}

/* A pod that is to run once on each node ends at a signal only: its DaemonSet would start it again. */
static int run_and_wait(const struct options *o, struct error **err)
{
	sigset_t set = block_stop_signals();
	int caught;

	if (str_eq(o->mode, MODE_CONVERT) && convert(o, err) < 0)
		return -1;
	log_info("waiting for a signal");
	sigwait(&set, &caught);
	return 0;
}

static int run(const struct options *o, struct error **err)
{
	if (str_eq(o->mode, MODE_CONVERT) || str_eq(o->mode, MODE_WAIT))
		return run_and_wait(o, err);
	return str_eq(o->mode, "controller") ? controller_run(o, err) : node_run(o, err);
}

static int refuse(int argc, char **argv, const struct error *e)
{
	const char *command = command_misplaced(argc, argv);

	fprintf(stderr, "pmem-csi-driver: %s", e->msg);
	if (command)
		fprintf(stderr, "; a command comes first: pmem-csi-driver %s ...", command);
	fputc('\n', stderr);
	return 2;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(options_done) struct options o = {0};
	CLEANUP(strv_freep) char **ignored = NULL;

	process_begin();
	mem_tune(MEM_LARGE_BYTES);
	if (argc > 1 && argv[1][0] != '-')
		return command_main(argc - 1, argv + 1);
	if (options_parse(argc, argv, &o, &ignored, &err) < 0)
		return refuse(argc, argv, err);
	CLEANUP(free_charp) char *help = options_help();
	const char *about = program_about(&o.flags, help);
	if (about)
		return process_print_or_fail("pmem-csi-driver", about);
	program_start_log("pmem-csi-driver", &o.flags, ignored);
	if (run(&o, &err) < 0) {
		process_note_not_root(&err);
		log_error("pmem-csi-driver ends", F_ERR(err));
		process_write_termination_log(err);
		return 1;
	}
	return 0;
}

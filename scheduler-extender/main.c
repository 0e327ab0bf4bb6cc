/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler-extender: places pods by the persistent memory that nodes have left, and marks pods for that.
 * Exit status: 0 orderly end, 1 failure, 2 wrong usage. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "options.h"
#include "os/process.h"
#include "program.h"

/* The names of some thousand nodes are worked on in less than that. */
#define LARGE_BYTES (1 << 20)

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **ignored = NULL;
	CLEANUP(options_done) struct options o = {0};

	process_begin();
	mem_tune(LARGE_BYTES);
	if (options_parse(argc, argv, &o, &ignored, &err) < 0) {
		fprintf(stderr, "scheduler-extender: %s\n", err->msg);
		return 2;
	}
	CLEANUP(free_charp) char *help = options_help();
	const char *about = program_about(&o.flags, help);
	if (about)
		return process_print_or_fail("scheduler-extender", about);
	program_start_log("scheduler-extender", &o.flags, ignored);
	if (program_run(&o, &err) < 0) {
		process_note_not_root(&err);
		log_error("scheduler-extender ends", F_ERR(err));
		process_write_termination_log(err);
		return EXIT_FAILURE;
	}
	log_info("scheduler-extender has stopped");
	return EXIT_SUCCESS;
}

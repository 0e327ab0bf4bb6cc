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

static void warn_ignored(char *const *names)
{
	for (size_t i = 0; names && names[i]; i++)
		log_warn("flag is accepted but has no effect here", F_STR("flag", names[i]));
}

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
	if (o.show_help) {
		CLEANUP(free_charp) char *help = options_help();
		return process_print_or_fail("scheduler-extender", help);
	}
	if (o.show_version) {
		return process_print_or_fail("scheduler-extender", PMEM_VERSION "\n");
	}
	log_init("scheduler-extender", str_eq(o.logging_format, "json") ? LOG_JSON : LOG_TEXT, o.verbosity);
	warn_ignored(ignored);
	if (program_run(&o, &err) < 0) {
		process_blame(&err);
		log_error("scheduler-extender ends", F_ERR(err));
		process_tell_end(err);
		return EXIT_FAILURE;
	}
	log_info("scheduler-extender has stopped");
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - the flags that all programs have in common: help, version and logging. Flags of klog, the Go
 * programs' logger, may be in manifests and have no effect here. Threads: before others start.
 */
#pragma once

#include "os/args.h"

struct program_flags {
	const char *logging_format; /* text or json */
	uint32_t verbosity;
	bool show_version;
	bool show_help;
};

#define PROGRAM_FLAGS_INIT {.logging_format = "text", .verbosity = 3}

#define KLOG_REASON "the log always goes to stderr, one line per event"

/** entries for tables of struct opt; @f: struct program_flags * */
/* clang-format off */
#define PROGRAM_FLAGS(f)                                                                                     \
	{"logging-format", OPT_STR, &(f)->logging_format, "FORMAT", "text or json"},                         \
	{"v", OPT_U32, &(f)->verbosity, "N", "log verbosity; 5 and above shows debug messages"},             \
	{"version", OPT_BOOL, &(f)->show_version, NULL, "print the version and exit"},                       \
	{"help", OPT_BOOL, &(f)->show_help, NULL, "print this help and exit"}

#define KLOG_IGNORED_FLAGS                                                                                   \
	{"logtostderr", OPT_IGNORED, NULL, NULL, KLOG_REASON},                                               \
	{"alsologtostderr", OPT_IGNORED, NULL, NULL, KLOG_REASON},                                           \
	{"add_dir_header", OPT_IGNORED, NULL, NULL, KLOG_REASON},                                            \
	{"skip_headers", OPT_IGNORED, NULL, NULL, KLOG_REASON},                                              \
	{"skip_log_headers", OPT_IGNORED, NULL, NULL, KLOG_REASON},                                          \
	{"one_output", OPT_IGNORED, NULL, NULL, KLOG_REASON},                                                \
	{"log_dir", OPT_IGNORED, NULL, "DIR", KLOG_REASON},                                                  \
	{"log_file", OPT_IGNORED, NULL, "FILE", KLOG_REASON},                                                \
	{"log_file_max_size", OPT_IGNORED, NULL, "N", KLOG_REASON},                                          \
	{"log_backtrace_at", OPT_IGNORED, NULL, "AT", KLOG_REASON},                                          \
	{"stderrthreshold", OPT_IGNORED, NULL, "N", KLOG_REASON},                                            \
	{"vmodule", OPT_IGNORED, NULL, "SPEC", KLOG_REASON}
/* clang-format on */

/** program_about() - what is printed in place of running the program. Return: @help for -help, the version's
 * line for -version, NULL for neither. */
const char *program_about(const struct program_flags *f, const char *help);

/** program_check_format() - check that @value, of @flag (with its "-"), is text or json. Return: 0, or -1
 * with ERR_INVALID_ARGUMENT. */
int program_check_format(const char *flag, const char *value, struct error **err) MUST_CHECK;

/** program_start_log() - set up the log (log.h) as @f says, and log a warning for each flag in @ignored.
 * @program: borrowed for ever
 * @ignored: of args_parse(); may be NULL */
void program_start_log(const char *program, const struct program_flags *f, char *const *ignored);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog_flags.h - flags of klog, the Go programs' logger, that manifests may carry and that have no effect
 * here.
 */
#pragma once

#include "os/args.h"

#define KLOG_REASON "logs go to stderr, one line per event"

/** entries for a table of struct opt */
/* clang-format off */
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

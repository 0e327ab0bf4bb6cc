/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - set-up of a program's process: descriptors, signals, limits, and how it ends. Threads: before
 * others start, or after they ended.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/**
 * process_begin() - the first thing that main() does. Descriptors 0 to 2 are open afterwards: where one was
 * closed, the next file to be opened would get its number, and what is printed would be written into it; one
 * that had to be opened fails when it is used, as a closed one does. SIGPIPE, SIGUSR1, SIGUSR2 and SIGXFSZ
 * are ignored, SIGCHLD is not, and no signal is blocked, whatever was inherited from the parent. Children get
 * the usual signals back (os/spawn.h). Source: of the descriptors, glibc's csu/check_fds.c.
 */
void process_begin(void);

/**
 * process_print() - write @text to stdout, all of it. When the reader has gone, as in `volumes | head`, the
 * program ends silently by SIGPIPE, like other programs. Return: 0, or -1 with ERR_INTERNAL.
 */
int process_print(const char *text, struct error **err) MUST_CHECK;

/** process_print_or_fail() - process_print(); a failure is reported on stderr, with the name of @program.
 * Return: exit status, 0 or 1. */
int process_print_or_fail(const char *program, const char *text);

/** process_note_not_root() - add to @err, which was set, that the program does not run as root, where the
 * system refused something for that reason. */
void process_note_not_root(struct error **err);

/**
 * process_defer_stop() - for a program that must not end in the middle of a step: SIGHUP, SIGINT and SIGTERM
 * only make process_stop_signal() true from here on. SIGHUP stays ignored if it was (nohup).
 */
void process_defer_stop(void);

/** process_stop_signal() - whether one of the signals of process_defer_stop() has arrived. Return: its name,
 * such as "SIGTERM", or NULL. */
const char *process_stop_signal(void);

/** process_heeds_sighup() - whether SIGHUP is meant to end the program: not where it was ignored when it was
 * started (nohup). */
bool process_heeds_sighup(void);

/** process_set_up() - set the limits of a server that holds keys: no core files, no debugger of its own user
 * (PR_SET_DUMPABLE in prctl(2), which makes root the owner of most files in /proc/PID), and open files for a
 * server that needs at most @descriptors. If that is not possible, a warning is logged. */
void process_set_up(unsigned descriptors);

/** process_host_root() - get the folder in which the root of the host is seen, for a process in the PID
 * namespace of the host, whose first process is that of the host; for root only. Return: static; NULL: it is
 * not visible, as in most containers. Source: PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h. */
const char *process_host_root(void);

/** process_limit_closing() - limit the time in which everything is freed to @seconds: after that the process
 * ends with a failure. 0: everything is freed. */
void process_limit_closing(unsigned seconds);

/** process_write_termination_log() - write why the process ends to the file that $TERMINATION_LOG_PATH names:
 * Kubernetes shows it (terminationMessagePath). A failure is logged. */
void process_write_termination_log(const struct error *e);

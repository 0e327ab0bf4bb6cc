/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what a program asks of the system for its process. Threads: before others start, or after they
 * ended.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/**
 * process_begin() - the first thing that main() does. Descriptors 0 to 2 are open afterwards: where one was
 * closed, the next file to be opened would get its number, and what is printed would be written into it; one
 * that had to be opened fails when it is used, as a closed one does. SIGPIPE, SIGUSR1, SIGUSR2 and SIGXFSZ
 * are ignored, SIGCHLD is not, and no signal is blocked, whatever the parent has left. Children get the usual
 * signals back (os/spawn.h). Source: of the descriptors, glibc's csu/check_fds.c.
 */
void process_begin(void);

/**
 * process_print() - write @text to stdout, all of it. When whoever reads has gone away, as in `volumes |
 * head`, the program ends by SIGPIPE silently, like others. Return: 0, or -1 with ERR_INTERNAL.
 */
int process_print(const char *text, struct error **err) MUST_CHECK;

/** process_print_or_fail() - process_print(); a failure is told on stderr in the name of @program. Return:
 * exit status, 0 or 1. */
int process_print_or_fail(const char *program, const char *text);

/** process_blame() - add to @err, which was set, that the program does not run as root, where the system
 * refused something for that reason. */
void process_blame(struct error **err);

/**
 * process_hold_stop() - for a program that must not end in the middle of a step: SIGHUP, SIGINT and SIGTERM
 * only make process_is_stopped() true from here on. SIGHUP goes on to be ignored where it is (nohup).
 */
void process_hold_stop(void);

/** process_is_stopped() - whether one of the signals of process_hold_stop() has come. Return: its name, such
 * as "SIGTERM", or NULL. */
const char *process_is_stopped(void);

/** process_hangs_up() - whether SIGHUP is meant to end the program: not where it was ignored when it was
 * started (nohup). */
bool process_hangs_up(void);

/** process_set_up() - for a server that needs @descriptors at most: room for them where that can be had. What
 * cannot be had is told in the log. */
void process_set_up(unsigned descriptors);

/** process_closing() - everything is being freed, for @seconds at most: then the process ends with a failure.
 * 0: it is done. */
void process_closing(unsigned seconds);

/** process_tell_end() - write why the process ends to the file that $TERMINATION_LOG_PATH names: Kubernetes
 * shows it (terminationMessagePath). A failure is told in the log. */
void process_tell_end(const struct error *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_runners.h - the two runners of lvm.h, a shell (lvm_shell.c) and a process per command (lvm_exec.c),
 * with a program of the caller's choice.
 *
 * Threads: an object belongs to one caller at a time. Blocks as long as the command runs, within its time
 * limit.
 */
#pragma once

#include "pmem/lvm/lvm_child.h"

/** lvm_open_shell_program() - lvm_open_shell() with another program (tests). @program: borrowed for ever. */
struct lvm *lvm_open_shell_program(const struct lvm_program *program, uint64_t idle_ms);

/** lvm_open_exec_program() - lvm_open_exec() with another program (tests). @program: borrowed for ever. */
struct lvm *lvm_open_exec_program(const struct lvm_program *program);

/**
 * lvm_exec_once() - one command in a process of its own.
 * @late: receives a process that did not finish in time; an earlier one is waited for first
 *
 * Return: 0, or -1 as lvm_run().
 */
int lvm_exec_once(const struct lvm_program *program, const char *const argv[], const char *config,
	struct lvm_child *late, struct buf *report, int timeout_ms, struct error **err) MUST_CHECK;

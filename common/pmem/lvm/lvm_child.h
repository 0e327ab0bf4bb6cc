/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_child.h - one `lvm` process: a single command, or a shell that runs several. It is started under a
 * configuration of ours, its answer and messages are read, and it is asked to end but never killed. A shell
 * that hangs or has ended is replaced in lvm_shell.c.
 *
 * Threads: an object belongs to one caller at a time. Blocks as each function says.
 */
#pragma once

#include "os/spawn.h"
#include "pmem/lvm/lvm.h"

#define LVM_DIAG_MAX_BYTES (4U << 10)

struct lvm_program {
	const char *path;    /* "lvm" */
	const char *run_dir; /* folder for configurations; made if missing */
	uint64_t retry_ms;   /* a shell that could not be used is tried again after that */
};

extern const struct lvm_program lvm_program_default;

struct lvm_child {
	struct child process;
	int pidfd;
	char *config_path;
	struct buf answer; /* from LVM_REPORT_FD */
	struct buf diag;   /* from stderr: its beginning */
	int os_errno;      /* why answer or diag may be incomplete; else 0 */
};

#define LVM_CHILD_INIT                                                                                       \
	((struct lvm_child){.process = CHILD_INIT,                                                           \
		.pidfd = -1,                                                                                 \
		.answer = BUF_INIT(LVM_ANSWER_MAX_BYTES),                                                    \
		.diag = BUF_INIT(LVM_DIAG_MAX_BYTES)})

/**
 * lvm_child_start() - start LVM under a configuration, which is written before each start: without it LVM
 * would fall back to its defaults and see every device.
 * @argv:   command, or NULL for the shell
 * @config: lvm_config_text()
 * @log:    further settings of the log section
 * @ret:    LVM_CHILD_INIT; lvm_child_end()
 *
 * Return: 0, or -1 with ERR_PRECONDITION (no such program), ERR_INTERNAL.
 */
int lvm_child_start(const struct lvm_program *program, const char *const argv[], const char *config,
	const char *log, struct lvm_child *ret, struct error **err) MUST_CHECK;

/** lvm_child_has_ended() - whether the process has exited, so that lvm_child_end() does not wait. */
bool lvm_child_has_ended(const struct lvm_child *c);

/** lvm_child_is_fit() - whether the process is alive and its configuration is still in place: LVM checks the
 * file before each command, and uses its defaults when the file is gone. */
bool lvm_child_is_fit(const struct lvm_child *c);

enum lvm_wait { LVM_WAIT_READ, LVM_WAIT_ENDED, LVM_WAIT_LATE };

/** lvm_child_wait() - wait for output, which is added to @c, or for the end of the process. Return:
 * LVM_WAIT_READ when there may be more in answer or diag, or no answer can come any more, LVM_WAIT_ENDED when
 * the process has ended and all its output is there, LVM_WAIT_LATE at @deadline_ns. */
enum lvm_wait lvm_child_wait(struct lvm_child *c, uint64_t deadline_ns);

/** lvm_child_end() - end a process that runs no command, and release @c. Safe on LVM_CHILD_INIT and twice.
 */
void lvm_child_end(struct lvm_child *c);

/**
 * lvm_child_leave() - move a process that may be in the middle of a command into @late: it is asked to end
 * (SIGTERM, which LVM blocks while it changes anything) and never killed, since a device that it has
 * suspended would stay suspended.
 */
void lvm_child_leave(struct lvm_child *c, struct lvm_child *late);

/** lvm_child_gone() - whether the process in @late has ended; its output is read, so that it does not block
 * on us.
 * Return: 0, or -1 with ERR_UNAVAILABLE. */
int lvm_child_gone(struct lvm_child *late, struct error **err) MUST_CHECK;

/** lvm_child_forget() - release @late; a process that is still running is left alone. */
void lvm_child_forget(struct lvm_child *late);

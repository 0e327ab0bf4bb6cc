/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_private.h - what the parts of the LVM seam share: the configuration that commands run with, one `lvm`
 * process, and the verdict of its answer. Only lvm*.c and their tests include this.
 *
 * Commands see a configuration of their own and nothing of the host's: LVM_SYSTEM_DIR names a folder that
 * holds nothing but our lvm.conf. That costs nothing per command, while --config makes the shell reload its
 * configuration twice (lvm_run_command() in LVM's tools/lvmcmdline.c), and the host's settings (volume_list,
 * lvmlockd, udev) stay out. Threads: an object belongs to one caller at a time.
 */
#pragma once

#include "os/spawn.h"
#include "pmem/lvm/lvm.h"

#define LVM_ANSWER_MAX_BYTES (16U << 20)
#define LVM_CONFIG_MAX_BYTES (1U << 20)
#define LVM_DIAG_MAX_BYTES   (4U << 10)
/* The shell drops a command of MAX_ARGS words, which is 64 (LVM's tools/tools.h); one is ours. */
#define LVM_WORDS_MAX 62

/** lvm_config_text() - configuration that admits exactly @paths to LVM; a path with a character that means
 * something in a filter, and that no device of ours has, is left out.
 * @backup_dir: as lvm_set_backup_dir()
 *
 * Return: caller frees; NULL when there are too many: what is cut off would not keep the others out. */
char *lvm_config_text(char *const *paths, const char *backup_dir);

/** lvm_config_text_open() - the same that admits every device, for looking only. Return: caller frees. */
char *lvm_config_text_open(void);

/** lvm_argument_ok() - whether @arg arrives as one argument, unchanged, through the shell's splitting
 * (lvm_split() in LVM's tools/lvmcmdline.c: blanks, quotes and '#' mean something there). */
bool lvm_argument_ok(const char *arg);

/** lvm_set_timeout() - wait another time than LVM_TIMEOUT_MS (tests). */
void lvm_set_timeout(struct lvm *l, int timeout_ms);

/** lvm_activate() - activate what the groups in @vg_names hold; none is success. Return: 0, or -1 as
 * lvm_run(). */
int lvm_activate(struct lvm *l, char *const *vg_names, struct error **err) MUST_CHECK;

struct lvm_program {
	const char *path;    /* "lvm" */
	const char *run_dir; /* folder for configurations; made if missing */
	uint64_t retry_ms;   /* a shell that could not be used is tried again after that */
};

extern const struct lvm_program lvm_program_default;

/** lvm_open_shell_program() - lvm_open_shell() with another program (tests). @program: borrowed for ever. */
struct lvm *lvm_open_shell_program(const struct lvm_program *program, uint64_t idle_ms);

/** lvm_open_exec_program() - lvm_open_exec() with another program (tests). @program: borrowed for ever. */
struct lvm *lvm_open_exec_program(const struct lvm_program *program);

/**
 * lvm_exec_once() - one command in a process of its own.
 * @late: where a process is left that did not end in time; one from before is waited for first
 *
 * Return: 0, or -1 as lvm_run().
 */
struct lvm_child;
int lvm_exec_once(const struct lvm_program *program, const char *const argv[], const char *config,
	struct lvm_child *late, struct buf *report, int timeout_ms, struct error **err) MUST_CHECK;

struct lvm_child {
	struct child process;
	int pidfd;
	char *config_path;
	struct buf answer; /* from LVM_REPORT_FD */
	struct buf diag;   /* from stderr: its beginning */
	int os_errno;      /* why answer or diag may lack something; else 0 */
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

/** lvm_child_has_ended() - whether only its status is left, so that lvm_child_end() waits for nothing. */
bool lvm_child_has_ended(const struct lvm_child *c);

/** lvm_child_is_fit() - whether the process is alive and its configuration is still in place: LVM looks
 * before each command, and works with its defaults when the file is gone. */
bool lvm_child_is_fit(const struct lvm_child *c);

enum lvm_wait { LVM_WAIT_READ, LVM_WAIT_ENDED, LVM_WAIT_LATE };

/** lvm_child_wait() - wait for output, which is added to @c, or for the end of the process. Return:
 * LVM_WAIT_READ when there may be more in answer or diag, or no answer can come any more, LVM_WAIT_ENDED when
 * the process has ended and all its output is there, LVM_WAIT_LATE at @deadline_ns. */
enum lvm_wait lvm_child_wait(struct lvm_child *c, uint64_t deadline_ns);

/** lvm_child_end() - end a process that works on nothing, and release @c. Safe on LVM_CHILD_INIT and twice.
 */
void lvm_child_end(struct lvm_child *c);

/**
 * lvm_child_leave() - move a process that may be in the middle of something into @late: it is asked to end
 * (SIGTERM, which LVM blocks while it changes anything) and never killed, since a device that it has
 * suspended would stay so.
 */
void lvm_child_leave(struct lvm_child *c, struct lvm_child *late);

/** lvm_child_gone() - whether nothing is left in @late; reads on, so that the process does not wait for us.
 * Return: 0, or -1 with ERR_UNAVAILABLE. */
int lvm_child_gone(struct lvm_child *late, struct error **err) MUST_CHECK;

/** lvm_child_forget() - release @late; a process that is still there is left to itself. */
void lvm_child_forget(struct lvm_child *late);

/** lvm_answer_check() - what the log in a shell's answer says of the command. Return: 0 for success, or -1
 * with ERR_INTERNAL (LVM's messages), ERR_UNAVAILABLE (no answer of LVM's shell). */
int lvm_answer_check(struct span answer, struct error **err) MUST_CHECK;

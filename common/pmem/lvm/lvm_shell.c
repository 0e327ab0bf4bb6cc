/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long-lived `lvm` shell that reads commands from stdin and answers each with one JSON document on
 * LVM_REPORT_FD.
 *
 * While there is no shell, a command runs in a process of its own, and the shell is started after it, for the
 * next one: starting the shell costs more than one command.
 */
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "pmem/lvm/lvm_runners.h"

#define GREETING_MS 20000
#define CLOSED_MS   1000
/* For how long a child that has suspended a device waits for more to do. */
#define RESERVED_MS 2000

/* Errors and how the command ended; LVM's other messages are not requested (lvmreport(7), log report). */
static const char log_settings[] =
	"report_command_log=1 command_log_sort=\"log_seq_num\" "
	"command_log_cols=\"log_type,log_message,log_ret_code\" "
	"command_log_selection=\"log_type=error||(log_type=status&&log_context=shell)\"";

struct shell_runner {
	const struct lvm_program *program;
	uint64_t idle_ms;
	struct lvm_child child; /* pid -1: none */
	struct lvm_child late;
	char *config; /* what the child was started with */
	uint64_t started_ns;
	bool greeted;               /* the child has answered its first, harmless command */
	uint64_t unusable_until_ns; /* 0: nothing was wrong with it */
	uint64_t used_ns;
	bool has_reserved; /* the child keeps the memory that LVM needs while it suspends a device */
	atomic_uint_least64_t restarts;
};

static bool is_running(const struct shell_runner *r)
{
	return r->child.process.pid >= 0;
}

/* The cause may be gone by then; an lvm that was built without a shell costs one process each time. */
static bool is_unusable(const struct shell_runner *r)
{
	return clock_ns() < r->unusable_until_ns;
}

static void give_up(struct shell_runner *r, const struct error *why)
{
	if (r->unusable_until_ns == 0)
		log_warn(
			"LVM's shell cannot be used: each command is run as a separate process for some time",
			F_ERR(why));
	r->unusable_until_ns = clock_ns() + r->program->retry_ms * NS_PER_MS;
}

/* It ends when it has nothing more to read. */
static bool is_ending(const struct shell_runner *r)
{
	return r->child.process.stdin_fd < 0;
}

static void stop(struct shell_runner *r)
{
	lvm_child_end(&r->child);
	r->has_reserved = false;
	free(TAKE_PTR(r->config));
}

/* A JSON document ends with its last brace; LVM's lines are not aligned with reads. */
struct frame {
	size_t at;
	unsigned depth;
	bool in_string, escaped;
};

enum frame_state { FRAME_MORE, FRAME_WHOLE, FRAME_GARBAGE };

static enum frame_state frame_step(struct frame *f, char c)
{
	if (f->escaped) {
		f->escaped = false;
	} else if (f->in_string) {
		f->escaped = c == '\\';
		f->in_string = c != '"';
	} else if (c == '"') {
		f->in_string = true;
	} else if (c == '{') {
		f->depth++;
	} else if (c == '}') {
		f->depth--;
	}
	return f->depth == 0 && c == '}' ? FRAME_WHOLE : FRAME_MORE;
}

static enum frame_state frame_scan(struct frame *f, const struct buf *b)
{
	for (; f->at < b->len; f->at++) {
		char c = (char)b->data[f->at];
		if (f->depth == 0 && isspace((unsigned char)c))
			continue;
		if (f->depth == 0 && c != '{')
			return FRAME_GARBAGE;
		if (frame_step(f, c) == FRAME_WHOLE) {
			f->at++;
			return FRAME_WHOLE;
		}
	}
	return FRAME_MORE;
}

/* Reads one answer into r->child.answer, to which @ret points. */
static int wait_answer(
	struct shell_runner *r, const char *name, uint64_t deadline_ns, struct span *ret, struct error **err)
{
	struct frame f = {0};
	bool closed = false;

	for (;;) {
		enum lvm_wait wait = lvm_child_wait(&r->child, deadline_ns);
		enum frame_state state = frame_scan(&f, &r->child.answer);

		if (state == FRAME_WHOLE) {
			*ret = (struct span){r->child.answer.data, f.at};
			return 0;
		}
		if (r->child.os_errno)
			return err_set_errno(err, ERR_UNAVAILABLE, r->child.os_errno,
				"lvm %s: read the shell's answer", name);
		if (r->child.answer.overflowed)
			return err_set(err, ERR_UNAVAILABLE, "lvm %s: the shell's answer is too large", name);
		if (state == FRAME_GARBAGE)
			return err_set(
				err, ERR_UNAVAILABLE, "lvm %s: the shell's answer is not a report", name);
		/* it closes the pipe when it ends, too, and then says why */
		if (!closed && r->child.process.extra_fd < 0) {
			closed = true;
			deadline_ns = clock_ns() + CLOSED_MS * NS_PER_MS;
		}
		if (wait == LVM_WAIT_ENDED)
			return err_set(err, ERR_UNAVAILABLE, "lvm %s: the shell exited%s%s", name,
				r->child.diag.len > 0 ? ": " : "", buf_str(&r->child.diag));
		if (wait == LVM_WAIT_LATE && closed)
			return err_set(err, ERR_UNAVAILABLE, "lvm %s: the shell does not answer", name);
		if (wait == LVM_WAIT_LATE)
			return err_set(err, ERR_DEADLINE,
				"lvm %s did not finish in time: lvm does not answer", name);
	}
}

static int send_line(struct shell_runner *r, const char *const argv[], struct error **err)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(LVM_ANSWER_MAX_BYTES);

	for (; *argv; argv++) {
		buf_adds(&line, *argv);
		buf_addc(&line, argv[1] ? ' ' : '\n');
	}
	/* one that was cut off could do more than was meant */
	if (buf_check(&line, "command line", err) < 0)
		return -1;
	buf_reset(&r->child.answer);
	buf_reset(&r->child.diag);
	if (fd_write_all(r->child.process.stdin_fd, buf_span(&line), err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "lvm shell");
	}
	return 0;
}

/* It answers a first command before it is needed; an lvm that was built without a shell does not, which is
 * noticed when the answer is read. */
static void start(struct shell_runner *r, const char *config)
{
	static const char *const greeting[] = {"version", NULL};
	CLEANUP(error_freep) struct error *err = NULL;

	if (lvm_child_start(r->program, NULL, config, log_settings, &r->child, &err) < 0) {
		log_debug("LVM's shell could not be started", F_ERR(err));
		return;
	}
	r->config = x_strdup(config);
	r->greeted = false;
	r->started_ns = clock_ns();
	r->used_ns = r->started_ns;
	if (send_line(r, greeting, &err) < 0)
		log_debug("LVM's shell could not be greeted", F_ERR(err));
}

/* Commands that only read: a driver lists devices all the time, which must not prevent the shell from
 * counting as idle. */
static bool only_looks(const char *const argv[])
{
	return str_eq(argv[0], "pvs") || str_eq(argv[0], "vgs") || str_eq(argv[0], "lvs");
}

/* Commands that suspend an active volume, which only growth does. LVM then locks and reserves memory
 * (lib/mm/memlock.c), and keeps it until it ends. */
static bool suspends(const char *const argv[])
{
	return str_eq(argv[0], "lvextend") || str_eq(argv[0], "lvchange");
}

/* Return: how long the child may be without work; 0: for ever */
static uint64_t idle_limit_ms(const struct shell_runner *r)
{
	if (r->has_reserved && (r->idle_ms == 0 || r->idle_ms > RESERVED_MS))
		return RESERVED_MS;
	return r->idle_ms;
}

/* Before its first answer the shell has run no command that changes anything, so the command can be run in
 * another way.
 */
static bool is_usable(struct shell_runner *r, uint64_t deadline_ns)
{
	uint64_t greeted_by_ns = r->started_ns + GREETING_MS * NS_PER_MS;
	CLEANUP(error_freep) struct error *err = NULL;
	struct span answer;

	if (r->greeted)
		return true;
	if (wait_answer(r, "version", greeted_by_ns < deadline_ns ? greeted_by_ns : deadline_ns, &answer,
		    &err) < 0) {
		give_up(r, err);
		return false;
	}
	r->greeted = true;
	r->unusable_until_ns = 0;
	return true;
}

static int ask(struct shell_runner *r, const char *const argv[], uint64_t deadline_ns, struct buf *report,
	struct error **err)
{
	struct span answer;

	if (STEP("lvm-send", send_line(r, argv, err)) < 0)
		return -1;
	if (wait_answer(r, argv[0], deadline_ns, &answer, err) < 0)
		return -1;
	if (lvm_answer_check(answer, err) < 0)
		return err_wrap(err, "lvm %s", argv[0]);
	buf_add(report, answer.p, answer.n);
	return 0;
}

/* Also because the shell may have ended unnoticed while it was idle, which is not a failure of the next
 * command. */
static bool can_take(struct shell_runner *r, const char *config, uint64_t deadline_ns)
{
	return !is_ending(r) && str_eq(r->config, config) && is_usable(r, deadline_ns) &&
	       lvm_child_is_fit(&r->child);
}

static int run_without_child(struct shell_runner *r, const char *const argv[], const char *config,
	struct buf *report, int timeout_ms, struct error **err)
{
	int rc = lvm_exec_once(r->program, argv, config, &r->late, report, timeout_ms, err);

	/* The first look of all is followed by work more often than not. */
	if (!is_unusable(r) && r->late.process.pid < 0 && (!r->used_ns || !only_looks(argv)))
		start(r, config);
	return rc;
}

static int shell_run(void *self, const char *const argv[], const char *config, struct buf *report,
	int timeout_ms, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct shell_runner *r = self;

	if (is_running(r) && !can_take(r, config, deadline_ns)) {
		/* other devices are no fault of the process */
		if (str_eq(r->config, config) && !is_unusable(r) && !is_ending(r))
			atomic_fetch_add(&r->restarts, 1);
		stop(r);
	}
	if (!is_running(r))
		return run_without_child(r, argv, config, report, timeout_ms, err);

	int rc = ask(r, argv, deadline_ns, report, err);
	if (!only_looks(argv))
		r->used_ns = clock_ns();
	r->has_reserved |= suspends(argv);
	/* After ERR_INTERNAL, which is LVM's own answer, the next command can be sent. */
	if (rc < 0 && (*err)->code != ERR_INTERNAL) {
		atomic_fetch_add(&r->restarts, 1);
		lvm_child_leave(&r->child, &r->late);
		free(TAKE_PTR(r->config));
	}
	return rc;
}

static void shell_idle(void *self)
{
	struct shell_runner *r = self;
	CLEANUP(error_freep) struct error *still_there = NULL;

	(void)!lvm_child_gone(&r->late, &still_there);
	if (!is_running(r))
		return;
	uint64_t limit_ms = idle_limit_ms(r);
	if (lvm_child_has_ended(&r->child)) {
		atomic_fetch_add(&r->restarts, is_ending(r) ? 0 : 1);
		stop(r);
	} else if (limit_ms > 0 && clock_ns() - r->used_ns >= limit_ms * NS_PER_MS) {
		fd_closep(&r->child.process.stdin_fd);
		r->child.process.stdin_fd = -1;
	}
}

static uint64_t shell_restarts(void *self)
{
	struct shell_runner *r = self;

	return atomic_load(&r->restarts);
}

static void shell_close(void *self)
{
	struct shell_runner *r = self;

	stop(r);
	lvm_child_forget(&r->late);
	free(r);
}

static const struct lvm_ops shell_ops = {
	.run = shell_run, .idle = shell_idle, .restarts = shell_restarts, .close = shell_close};

struct lvm *lvm_open_shell_program(const struct lvm_program *program, uint64_t idle_ms)
{
	struct shell_runner *r = x_calloc(1, sizeof(*r));

	r->program = program;
	r->idle_ms = idle_ms;
	r->child = LVM_CHILD_INIT;
	r->late = LVM_CHILD_INIT;
	return lvm_open_with(&shell_ops, r);
}

struct lvm *lvm_open_shell(uint64_t idle_ms)
{
	return lvm_open_shell_program(&lvm_program_default, idle_ms);
}

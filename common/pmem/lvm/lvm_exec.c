/* SPDX-License-Identifier: Apache-2.0 */
/* One process per command. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pmem/lvm/lvm_runners.h"

struct exec_runner {
	const struct lvm_program *program;
	struct lvm_child late;
};

/* LVM's own lines, joined. */
static char *one_line(const struct buf *diag)
{
	char *text = x_strdup(diag->len > 0 ? buf_str(diag) : "no message");

	for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
		text[n - 1] = '\0';
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ';';
	return text;
}

static int check_status(struct lvm_child *c, const char *name, struct error **err)
{
	CLEANUP(free_charp) char *text = one_line(&c->diag);
	int state = 0;
	pid_t rc;

	do
		rc = waitpid(c->process.pid, &state, 0);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return err_set_errno(err, ERR_UNAVAILABLE, errno, "lvm %s: its result is unknown", name);
	c->process.pid = -1;
	if (!WIFEXITED(state))
		return err_set(err, ERR_UNAVAILABLE, "lvm %s was killed by signal %d", name, WTERMSIG(state));
	if (WEXITSTATUS(state) != 0)
		return err_set(err, ERR_INTERNAL, "lvm %s (status %d): %s", name, WEXITSTATUS(state), text);
	return 0;
}

int lvm_exec_once(const struct lvm_program *program, const char *const argv[], const char *config,
	struct lvm_child *late, struct buf *report, int timeout_ms, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	CLEANUP(lvm_child_end) struct lvm_child c = LVM_CHILD_INIT;
	enum lvm_wait wait;

	if (lvm_child_gone(late, err) < 0)
		return -1;
	if (lvm_child_start(program, argv, config, "", &c, err) < 0)
		return -1;
	/* a question would wait for ever */
	fd_closep(&c.process.stdin_fd);
	c.process.stdin_fd = -1;
	do
		wait = lvm_child_wait(&c, deadline_ns);
	while (wait == LVM_WAIT_READ);
	if (wait == LVM_WAIT_LATE) {
		lvm_child_leave(&c, late);
		return err_set(err, ERR_DEADLINE, "lvm %s did not finish within %d ms", argv[0], timeout_ms);
	}
	if (check_status(&c, argv[0], err) < 0)
		return -1;
	if (c.os_errno)
		return err_set_errno(err, ERR_UNAVAILABLE, c.os_errno, "lvm %s: read the report", argv[0]);
	if (c.answer.overflowed)
		return err_set(err, ERR_INTERNAL, "lvm %s: the report is too large", argv[0]);
	buf_add(report, c.answer.data, c.answer.len);
	return 0;
}

static int exec_run(void *self, const char *const argv[], const char *config, struct buf *report,
	int timeout_ms, struct error **err)
{
	struct exec_runner *r = self;

	return lvm_exec_once(r->program, argv, config, &r->late, report, timeout_ms, err);
}

static void exec_close(void *self)
{
	struct exec_runner *r = self;

	lvm_child_forget(&r->late);
	free(r);
}

static const struct lvm_ops exec_ops = {.run = exec_run, .close = exec_close};

struct lvm *lvm_open_exec_program(const struct lvm_program *program)
{
	struct exec_runner *r = x_calloc(1, sizeof(*r));

	r->program = program;
	r->late = LVM_CHILD_INIT;
	return lvm_open_with(&exec_ops, r);
}

struct lvm *lvm_open_exec(void)
{
	return lvm_open_exec_program(&lvm_program_default);
}

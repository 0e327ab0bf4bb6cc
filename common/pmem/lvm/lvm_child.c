/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/lock.h"
#include "pmem/lvm/lvm_child.h"

#define PIPE_BYTES   (64U << 10)
#define END_GRACE_MS 1000
#define RETRY_MS     10
/* To write a file takes moments. */
#define CONFIG_LOCK_MS 10000
/* Long enough to distinguish processes with different devices, short enough to read. */
#define CONFIG_HASH_LEN 16

const struct lvm_program lvm_program_default = {
	.path = "lvm", .run_dir = "/run/pmem-csi", .retry_ms = 300000};

/* The folder is named after its content: processes share it, it is never changed, and it need not be
 * removed. */
static int write_config(const char *run_dir, const char *text, char **ret_dir, struct error **err)
{
	CLEANUP(fd_closep) int run_fd = -1;
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(fd_closep) int lock_fd = -1;
	char hash[SHA224_HEX_LEN + 1];

	sha224_hex(text, strlen(text), hash);
	CLEANUP(free_charp) char *dir = x_asprintf("%s/lvm-%.*s", run_dir, CONFIG_HASH_LEN, hash);
	if (dir_open(run_dir, /* create= */ true, 0700, &run_fd, err) < 0)
		return -1;
	if (dir_open(dir, /* create= */ true, 0700, &dir_fd, err) < 0)
		return -1;
	/* two processes that write it at the same time use the same temporary file, and an incomplete
	 * configuration would admit other devices */
	if (host_lock(dir_fd, ".lock", CONFIG_LOCK_MS, &lock_fd, err) < 0)
		return -1;
	if (file_write_atomic(dir_fd, "lvm.conf", span_of(text), 0600, err) < 0)
		return -1;
	*ret_dir = TAKE_PTR(dir);
	return 0;
}

static int spawn(const struct lvm_program *program, const char *const argv[], const char *dir,
	struct child *ret, struct error **err)
{
	CLEANUP(free_charp) char *system_dir = x_asprintf("LVM_SYSTEM_DIR=%s", dir);
	const char *const env[] = {system_dir, "LVM_REPORT_FD=3", "LVM_SUPPRESS_FD_WARNINGS=1", NULL};
	size_t n = 0;

	while (argv && argv[n])
		n++;

	CLEANUP(free_charp) char *memory = x_calloc(n + 2, sizeof(char *));
	const char **all = (const char **)(void *)memory;
	all[0] = program->path;
	for (size_t i = 0; i < n; i++)
		all[i + 1] = argv[i];
	return child_start(all, env, ret, err);
}

int lvm_child_start(const struct lvm_program *program, const char *const argv[], const char *config,
	const char *log, struct lvm_child *ret, struct error **err)
{
	CLEANUP(free_charp) char *text = x_asprintf("%slog { syslog=0 %s }\n", config, log);
	CLEANUP(free_charp) char *dir = NULL;

	if (write_config(program->run_dir, text, &dir, err) < 0)
		return err_wrap(err, "LVM's configuration");
	if (spawn(program, argv, dir, &ret->process, err) < 0)
		return -1;
	ret->config_path = x_asprintf("%s/lvm.conf", dir);
	ret->pidfd = pidfd_open(ret->process.pid, 0);
	if (ret->pidfd < 0) {
		err_set_errno(err, ERR_INTERNAL, errno, "watch %s", program->path);
		lvm_child_end(ret);
		return -1;
	}
	return 0;
}

/* Adds @n bytes. If they do not fit, the buffer gets the beginning of them and its overflow mark. */
static void add(struct buf *to, const char *p, size_t n)
{
	size_t fits = n < to->max - to->len ? n : to->max - to->len;

	buf_add(to, p, fits);
	if (fits < n)
		buf_add(to, p + fits, n - fits);
}

/* Return: whether something was read; @to NULL drops it. */
static bool drain(struct lvm_child *c, int *fd, struct buf *to)
{
	char chunk[PIPE_BYTES];
	ssize_t n;

	if (*fd < 0)
		return false;
	do
		n = read(*fd, chunk, sizeof(chunk));
	while (n < 0 && errno == EINTR);
	if (n > 0 && to)
		add(to, chunk, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		c->os_errno = n < 0 ? errno : c->os_errno;
		close(*fd);
		*fd = -1;
	}
	return n > 0;
}

static bool drain_all(struct lvm_child *c)
{
	bool any = drain(c, &c->process.extra_fd, &c->answer);

	any |= drain(c, &c->process.stderr_fd, &c->diag);
	any |= drain(c, &c->process.stdout_fd, NULL);
	return any;
}

enum lvm_wait lvm_child_wait(struct lvm_child *c, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd fds[] = {
			{.fd = c->pidfd, .events = POLLIN},
			{.fd = c->process.stdout_fd, .events = POLLIN},
			{.fd = c->process.stderr_fd, .events = POLLIN},
			{.fd = c->process.extra_fd, .events = POLLIN},
		};
		bool answers = c->process.extra_fd >= 0;
		int polled = poll(fds, ARRAY_SIZE(fds), clock_left_ms(deadline_ns, INT32_MAX));
		bool ended = polled > 0 && fds[0].revents;

		if (polled < 0 && errno != EINTR)
			nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * (long)NS_PER_MS}, NULL);

		if (drain_all(c) || (answers && c->process.extra_fd < 0 && !ended))
			return LVM_WAIT_READ;
		if (ended)
			return LVM_WAIT_ENDED;
		if (polled <= 0 && clock_ns() >= deadline_ns)
			return LVM_WAIT_LATE;
	}
}

bool lvm_child_has_ended(const struct lvm_child *c)
{
	struct pollfd end = {.fd = c->pidfd, .events = POLLIN};

	return poll(&end, 1, 0) != 0;
}

bool lvm_child_is_fit(const struct lvm_child *c)
{
	return !lvm_child_has_ended(c) && access(c->config_path, F_OK) == 0;
}

static void release(struct lvm_child *c)
{
	fd_closep(&c->pidfd);
	free(c->config_path);
	buf_done(&c->answer);
	buf_done(&c->diag);
	*c = LVM_CHILD_INIT;
}

void lvm_child_end(struct lvm_child *c)
{
	child_stop(&c->process, END_GRACE_MS);
	release(c);
}

void lvm_child_leave(struct lvm_child *c, struct lvm_child *late)
{
	fd_closep(&c->process.stdin_fd);
	c->process.stdin_fd = -1;
	kill(c->process.pid, SIGTERM);
	*late = *c;
	*c = LVM_CHILD_INIT;
}

int lvm_child_gone(struct lvm_child *late, struct error **err)
{
	if (late->process.pid < 0)
		return 0;
	while (drain_all(late)) {
		buf_reset(&late->answer);
		buf_reset(&late->diag);
	}
	if (waitpid(late->process.pid, NULL, WNOHANG) == 0)
		return err_set(err, ERR_UNAVAILABLE,
			"lvm (process %d) is still running a command that was too slow", late->process.pid);
	lvm_child_forget(late);
	return 0;
}

void lvm_child_forget(struct lvm_child *late)
{
	late->process.pid = -1;
	child_stop(&late->process, /* grace_ms= */ 0);
	release(late);
}

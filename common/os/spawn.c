/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"

#define TERM_GRACE_MS  2000
#define DIAG_MAX_BYTES (64U << 10)
#define SAID_MAX_BYTES 512
/* Default capacity of a pipe (pipe(7)): one read empties it. */
#define PIPE_BYTES   (64U << 10)
#define REAP_POLL_MS 5

enum { STDIN, STDOUT, STDERR, EXTRA, N_FDS };

/* The two sides of a child's descriptors 0-3; -1 where there is no pipe. */
struct stdio {
	int child[N_FDS];
	int ours[N_FDS];
};

#define STDIO_INIT ((struct stdio){{-1, -1, -1, -1}, {-1, -1, -1, -1}})

static void close_fds(int fds[static N_FDS])
{
	for (int i = 0; i < N_FDS; i++) {
		fd_closep(&fds[i]);
		fds[i] = -1;
	}
}

static void stdio_done(struct stdio *io)
{
	close_fds(io->child);
	close_fds(io->ours);
}

/* Pipe ends stay above the numbers that dup2 fills in the child, so that no dup2 overwrites the next one's
 * source. */
static int raise_fd(int fd)
{
	if (fd < 0 || fd >= N_FDS)
		return fd;

	int raised = fcntl(fd, F_DUPFD_CLOEXEC, N_FDS);
	close(fd);
	return raised;
}

static int add_pipe(struct stdio *io, int n, struct error **err)
{
	int fds[2] = {-1, -1};

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "make a pipe");
	io->child[n] = raise_fd(fds[n == STDIN ? 0 : 1]);
	io->ours[n] = raise_fd(fds[n == STDIN ? 1 : 0]);
	if (io->child[n] < 0 || io->ours[n] < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "move a pipe");
	if (n != STDIN && fcntl(io->ours[n], F_SETFL, O_NONBLOCK) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "set up a pipe");
	return 0;
}

/* Not posix_spawnp(): that would search the PATH which we were started with. */
static int find_program(const char *name, char **ret, struct error **err)
{
	static const char *const dirs[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};

	if (strchr(name, '/')) {
		*ret = x_strdup(name);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/%s", dirs[i], name);
		if (access(path, X_OK) == 0) {
			*ret = TAKE_PTR(path);
			return 0;
		}
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			return err_set_errno(err, ERR_INTERNAL, errno, "search for program %s", path);
	}
	return err_set(err, ERR_PRECONDITION, "program %s not found", name);
}

static int fill_actions(posix_spawn_file_actions_t *actions, const struct stdio *io)
{
	int rc = 0;

	for (int i = 0; i < N_FDS && rc == 0; i++) {
		if (io->child[i] >= 0)
			rc = posix_spawn_file_actions_adddup2(actions, io->child[i], i);
		else if (i != EXTRA)
			rc = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
	}
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(
			actions, io->child[EXTRA] >= 0 ? EXTRA + 1 : EXTRA);
	return rc;
}

/* Programs expect at their start that no signal is blocked or ignored, which we may have changed. In a
 * process group of its own the child does not get signals that a terminal sends to ours, so that running
 * steps finish first. */
static int fill_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, defaults;
	int rc;

	sigemptyset(&none);
	sigfillset(&defaults);
	rc = posix_spawnattr_setsigmask(attr, &none);
	if (rc == 0)
		rc = posix_spawnattr_setsigdefault(attr, &defaults);
	if (rc == 0)
		rc = posix_spawnattr_setpgroup(attr, 0);
	if (rc == 0)
		rc = posix_spawnattr_setflags(
			attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	return rc;
}

/* posix_spawn() wants mutable strings. */
static void add_all(char ***v, const char *const *from)
{
	for (; from && *from; from++)
		strv_add(v, *from);
}

/* The arguments of posix_spawn(), and the process that it has started. */
struct launch {
	const char *program;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attr;
	char **args;
	char **vars;
	pid_t pid;
};

static int launch(struct launch *l)
{
	return STEP("child-start", posix_spawn(&l->pid, l->program, l->actions, l->attr, l->args, l->vars));
}

#if defined(__x86_64__)
#define OUR_ABI  AUDIT_ARCH_X86_64
#define CALL_END 0x40000000 /* the calls of x32 begin there */
#elif defined(__aarch64__)
#define OUR_ABI  AUDIT_ARCH_AARCH64
#define CALL_END UINT32_MAX
#else
#error "the filter of system calls does not know this architecture"
#endif

#define LOAD(field)        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define FAILS_WITH(number) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (number))
#define REFUSE(call)       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), FAILS_WITH(EPERM)

/* Calls that a program does not need that works on one device, and by which it could act on other processes,
 * which have the same user, or reach parts of the kernel that are often attacked. posix_spawn() and a shell
 * get along with clone(2) instead of clone3(2), whose flags no filter can read (seccomp(2)). */
static const struct sock_filter refused_calls[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ABI, 1, 0),
	FAILS_WITH(EPERM),
	LOAD(nr),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, CALL_END, 0, 1),
	FAILS_WITH(EPERM),
	REFUSE(add_key),
	REFUSE(bpf),
	REFUSE(fsopen),
	REFUSE(io_uring_setup),
	REFUSE(keyctl),
	REFUSE(kill),
	REFUSE(mount),
	REFUSE(move_mount),
	REFUSE(open_by_handle_at),
	REFUSE(open_tree),
	REFUSE(perf_event_open),
	REFUSE(pidfd_getfd),
	REFUSE(pidfd_send_signal),
	REFUSE(process_vm_readv),
	REFUSE(process_vm_writev),
	REFUSE(ptrace),
	REFUSE(request_key),
	REFUSE(rt_sigqueueinfo),
	REFUSE(rt_tgsigqueueinfo),
	REFUSE(setns),
	REFUSE(socket),
	REFUSE(socketpair),
	REFUSE(tgkill),
	REFUSE(tkill),
	REFUSE(umount2),
	REFUSE(unshare),
	REFUSE(userfaultfd),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
	FAILS_WITH(ENOSYS),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prlimit64, 0, 4), /* only of itself */
	LOAD(args[0]),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	FAILS_WITH(EPERM),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 6), /* descriptors can send signals */
	LOAD(args[1]),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETSIG, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN_EX, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	FAILS_WITH(EPERM),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 3),
	LOAD(args[0]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
	FAILS_WITH(EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

/* Return: 0, also on a kernel without such filters, or errno. */
static int filter_calls(void)
{
	struct sock_filter calls[ARRAY_SIZE(refused_calls)];
	const struct sock_fprog program = {.len = ARRAY_SIZE(calls), .filter = calls};

	memcpy(calls, refused_calls, sizeof(calls));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 || errno == EINVAL)
		return 0;
	return errno;
}

/* Root gets by execve(2) what the bounding set of the calling thread has (capabilities(7)). Without the right
 * to change that, there are no capabilities to lose, or a container has taken them already. */
static void *launch_without_rights(void *user)
{
	int rc;

	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)!prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : filter_calls();
	if (rc == 0)
		rc = launch(user);
	return (void *)(intptr_t)rc;
}

/* On a thread of its own, since a thread that has lost its rights does not get them back. */
static int launch_confined(struct launch *l)
{
	pthread_t thread;
	void *why = NULL;
	int rc = pthread_create(&thread, NULL, launch_without_rights, l);

	if (rc != 0)
		return rc;
	pthread_join(thread, &why);
	return (int)(intptr_t)why;
}

static int start(const char *const argv[], const char *const env[], bool confined, struct stdio *io,
	pid_t *ret_pid, struct error **err)
{
	CLEANUP(free_charp) char *program = NULL;
	CLEANUP(strv_freep) char **args = NULL;
	CLEANUP(strv_freep) char **vars = NULL;

	if (find_program(argv[0], &program, err) < 0)
		return -1;
	add_all(&args, argv);
	strv_add(&vars, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	strv_add(&vars, "LC_ALL=C");
	add_all(&vars, env);

	CLEANUP(posix_spawn_file_actions_destroy) posix_spawn_file_actions_t actions;
	CLEANUP(posix_spawnattr_destroy) posix_spawnattr_t attr;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	int rc = fill_actions(&actions, io);
	if (rc == 0)
		rc = fill_attributes(&attr);
	struct launch l = {
		.program = program, .actions = &actions, .attr = &attr, .args = args, .vars = vars};
	if (rc == 0)
		rc = confined ? launch_confined(&l) : launch(&l);
	if (rc != 0)
		return err_set_errno(
			err, rc == ENOENT ? ERR_PRECONDITION : ERR_INTERNAL, rc, "start %s", program);
	*ret_pid = l.pid;
	close_fds(io->child);
	return 0;
}

static bool reaped(pid_t pid)
{
	pid_t rc = waitpid(pid, NULL, WNOHANG);

	return rc == pid || (rc < 0 && errno != EINTR);
}

static bool reaped_within(pid_t pid, int timeout_ms)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	while (!reaped(pid)) {
		int wait_ms = clock_left_ms(deadline_ns, REAP_POLL_MS);
		if (wait_ms == 0)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = wait_ms * (long)NS_PER_MS}, NULL);
	}
	return true;
}

/* Return: whether its end was seen. It is not seen if SIGCHLD is ignored, as our parent may have set it:
 * then the kernel reaps (waitpid(2)). */
static bool wait_for(pid_t pid, int *ret_state)
{
	for (;;) {
		if (waitpid(pid, ret_state, 0) == pid)
			return true;
		if (errno != EINTR)
			return false;
	}
}

static void terminate(pid_t pid, int grace_ms)
{
	kill(pid, SIGTERM);
	if (reaped_within(pid, grace_ms))
		return;
	kill(pid, SIGKILL);
	wait_for(pid, NULL);
}

struct run {
	pid_t pid;
	int pidfd;
	struct stdio *io;
	struct buf *out;
	struct buf *diag;
	int os_errno; /* why it could not be watched or heard to its end */
};

/* Adds as much as fits, so that a limit keeps the start of the output; the rest marks the buffer.
 * Return: whether there may be more. */
static bool drain(struct run *r, int n, struct buf *to)
{
	char chunk[PIPE_BYTES];
	int *fd = &r->io->ours[n];
	ssize_t got;

	if (!to || *fd < 0)
		return false;
	do
		got = read(*fd, chunk, sizeof(chunk));
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return false;
	if (got <= 0) {
		r->os_errno = got < 0 ? errno : r->os_errno;
		close(*fd);
		*fd = -1;
		return false;
	}

	size_t fits = (size_t)got < to->max - to->len ? (size_t)got : to->max - to->len;
	buf_add(to, chunk, fits);
	if (fits < (size_t)got)
		buf_add(to, chunk + fits, (size_t)got - fits);
	return !to->overflowed;
}

/* Reads all that it has written: a daemon that it left behind may write for ever, but the limits hold. */
static void drain_rest(struct run *r)
{
	while (drain(r, STDOUT, r->out))
		;
	while (drain(r, STDERR, r->diag))
		;
}

/* The pidfd ends the wait, not the end of the pipes: a daemon left behind may hold them open for ever. */
static bool ended_within(struct run *r, int timeout_ms)
{
	uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	for (;;) {
		struct pollfd fds[] = {
			{.fd = r->pidfd, .events = POLLIN},
			{.fd = r->io->ours[STDOUT], .events = POLLIN},
			{.fd = r->io->ours[STDERR], .events = POLLIN},
		};
		int polled = poll(fds, ARRAY_SIZE(fds), clock_left_ms(deadline_ns, INT_MAX));

		if (polled < 0 && errno != EINTR) {
			r->os_errno = errno;
			return false;
		}
		drain(r, STDOUT, r->out);
		drain(r, STDERR, r->diag);
		if (polled > 0 && fds[0].revents) {
			drain_rest(r);
			return true;
		}
		if (clock_ns() >= deadline_ns)
			return false;
	}
}

/* Ends the child if it does not end by itself, and reaps it. */
static int run_to_end(struct run *r, const char *name, int timeout_ms, int *ret_state, struct error **err)
{
	bool in_time = ended_within(r, timeout_ms);
	int os_errno = r->os_errno;

	if (!in_time) {
		kill(r->pid, SIGTERM);
		if (!ended_within(r, TERM_GRACE_MS))
			kill(r->pid, SIGKILL);
	}
	bool seen = wait_for(r->pid, ret_state);
	os_errno = os_errno ? os_errno : r->os_errno;
	if (os_errno)
		return err_set_errno(err, ERR_INTERNAL, os_errno, "watch %s", name);
	if (!in_time)
		return err_set(err, ERR_DEADLINE, "%s did not end within %d ms", name, timeout_ms);
	if (!seen)
		return err_set_errno(err, ERR_INTERNAL, ECHILD, "exit status of %s", name);
	return 0;
}

/* A child that has ended already needs no limits. */
static void limit(pid_t pid, uint64_t memory_bytes, int timeout_ms)
{
	const uint64_t seconds = (uint64_t)timeout_ms / 1000 + 1;
	const struct {
		int resource;
		uint64_t most;
	} limits[] = {{RLIMIT_AS, memory_bytes}, {RLIMIT_CPU, seconds}, {RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct rlimit both = {.rlim_cur = limits[i].most, .rlim_max = limits[i].most};

		(void)!prlimit(pid, limits[i].resource, &both, NULL);
	}
}

/* @memory_bytes: limit of a program that is confined; 0: it is not */
static int run_limited(const char *const argv[], const char *const env[], uint64_t memory_bytes,
	struct buf *out, struct buf *diag, int timeout_ms, int *ret_status, struct error **err)
{
	CLEANUP(stdio_done) struct stdio io = STDIO_INIT;
	struct run r = {.pid = -1, .pidfd = -1, .io = &io, .out = out, .diag = diag};
	int state = 0;

	if (out && add_pipe(&io, STDOUT, err) < 0)
		return err_wrap(err, "run %s", argv[0]);
	if (diag && add_pipe(&io, STDERR, err) < 0)
		return err_wrap(err, "run %s", argv[0]);
	if (start(argv, env, memory_bytes > 0, &io, &r.pid, err) < 0)
		return -1;
	if (memory_bytes > 0)
		limit(r.pid, memory_bytes, timeout_ms);

	CLEANUP(fd_closep) int pidfd = pidfd_open(r.pid, 0);
	if (pidfd < 0) {
		int os_errno = errno;
		terminate(r.pid, TERM_GRACE_MS);
		return err_set_errno(err, ERR_INTERNAL, os_errno, "watch %s", argv[0]);
	}
	r.pidfd = pidfd;
	if (run_to_end(&r, argv[0], timeout_ms, &state, err) < 0)
		return -1;
	if (!WIFEXITED(state))
		return err_set(err, ERR_INTERNAL, "%s was killed by signal %d", argv[0], WTERMSIG(state));
	*ret_status = WEXITSTATUS(state);
	return 0;
}

int spawn_run(const char *const argv[], const char *const env[], struct buf *out, struct buf *diag,
	int timeout_ms, int *ret_status, struct error **err)
{
	return run_limited(argv, env, 0, out, diag, timeout_ms, ret_status, err);
}

int spawn_confined(const char *const argv[], const char *const env[], uint64_t memory_bytes,
	struct buf *output, int timeout_ms, int *ret_status, struct error **err)
{
	return run_limited(argv, env, memory_bytes, output, output, timeout_ms, ret_status, err);
}

/* mkfs.xfs says what is wrong, and then in some thirty lines how it is called. */
static void cut_before_usage(char *text)
{
	for (char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
		if (strncasecmp(line + 1, "usage", strlen("usage")) == 0) {
			*line = '\0';
			return;
		}
	}
}

/* A line that begins with a blank continues the one before, as those of mke2fs do. */
static void join_lines(const char *text, struct buf *to)
{
	static const char blanks[] = " \t\r\n";

	while (*text) {
		size_t n_blank = strspn(text, blanks);
		size_t n_word = strcspn(text + n_blank, blanks);

		if (n_blank > 0 && n_word > 0 && to->len > 0)
			buf_adds(to, text[n_blank - 1] == '\n' ? "; " : " ");
		buf_add(to, text + n_blank, n_word);
		text += n_blank + n_word;
	}
}

char *spawn_said(const char *output)
{
	CLEANUP(free_charp) char *text = x_strdup(output);
	CLEANUP(buf_done) struct buf joined = BUF_INIT(DIAG_MAX_BYTES * 2);
	char *said = NULL;

	cut_before_usage(text);
	join_lines(text, &joined);
	const char *all = buf_str(&joined);
	if (joined.len > SAID_MAX_BYTES)
		said = x_asprintf(
			"%.*s ... %s", SAID_MAX_BYTES / 2, all, all + joined.len - SAID_MAX_BYTES / 2);
	else
		said = x_strdup(all);
	str_clean(said);
	return said;
}

int spawn_check(const char *const argv[], struct buf *out, int timeout_ms, struct error **err)
{
	CLEANUP(buf_done) struct buf diag = BUF_INIT(DIAG_MAX_BYTES);
	int status = 0;

	if (spawn_run(argv, NULL, out, &diag, timeout_ms, &status, err) < 0)
		return -1;
	if (status == 0)
		return 0;

	CLEANUP(free_charp) char *said = spawn_said(buf_str(&diag));
	return err_set(err, ERR_INTERNAL, "%s ended with status %d: %s", argv[0], status, said);
}

int child_start(const char *const argv[], const char *const env[], struct child *ret, struct error **err)
{
	CLEANUP(stdio_done) struct stdio io = STDIO_INIT;
	pid_t pid = -1;

	for (int i = 0; i < N_FDS; i++)
		if (add_pipe(&io, i, err) < 0)
			return err_wrap(err, "run %s", argv[0]);
	if (start(argv, env, /* confined= */ false, &io, &pid, err) < 0)
		return -1;
	*ret = (struct child){
		.pid = pid,
		.stdin_fd = TAKE_FD(io.ours[STDIN]),
		.stdout_fd = TAKE_FD(io.ours[STDOUT]),
		.stderr_fd = TAKE_FD(io.ours[STDERR]),
		.extra_fd = TAKE_FD(io.ours[EXTRA]),
	};
	return 0;
}

void child_stop(struct child *c, int grace_ms)
{
	fd_closep(&c->stdin_fd);
	fd_closep(&c->stdout_fd);
	fd_closep(&c->stderr_fd);
	fd_closep(&c->extra_fd);
	if (c->pid > 0 && !reaped_within(c->pid, grace_ms))
		terminate(c->pid, grace_ms);
	*c = CHILD_INIT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - running other programs: argv arrays, no shell, posix_spawn.
 *
 * Children get a reset signal mask and SIGPIPE, no descriptors but 0-2 (plus those asked for), a minimal
 * environment (PATH, LC_ALL=C and the given additions) and die with us (prctl is not available to
 * posix_spawn; callers that keep a child close its stdin). Threads: safe. spawn_run() and spawn_confined()
 * block until the child ends or the time is over.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/**
 * spawn_run() - run a program to its end.
 * @argv:       NULL-terminated; argv[0] without a slash is looked up in /usr/sbin:/usr/bin:/sbin:/bin
 * @env:        NULL-terminated additional "NAME=value" strings, or NULL
 * @out:        stdout is appended, or NULL for /dev/null
 * @diag:       stderr is appended, or NULL for /dev/null
 * @timeout_ms: then SIGTERM, 2 s later SIGKILL
 * @ret_status: exit status 0..255
 *
 * stdout and stderr are drained together; output beyond a buffer's limit is dropped and the buffer is marked.
 * Return: 0 when the program ran and exited (whatever the status), or -1 with ERR_PRECONDITION (program not
 * found), ERR_DEADLINE (killed after the time was over), ERR_INTERNAL (killed by a signal, spawn failed).
 */
int spawn_run(const char *const argv[], const char *const env[], struct buf *out, struct buf *diag,
	int timeout_ms, int *ret_status, struct error **err) MUST_CHECK;

/**
 * spawn_confined() - spawn_run() for a program that reads what pods and guests wrote, with fewer rights.
 * @argv, @env:   as spawn_run()
 * @memory_bytes: of address space
 * @output:       stdout and stderr are appended
 * @timeout_ms:   as spawn_run(); the program may also compute for no longer than that, rounded up to seconds,
 * so that it ends although we were killed
 * @ret_status:   as spawn_run()
 *
 * The program has no capabilities, cannot get any by execve(2) (no_new_privs), writes no regular files and
 * leaves no core file. System calls by which it would act on other processes, networks, namespaces and keys
 * fail with EPERM, unless the kernel has no filters of system calls (seccomp(2)). The limits are set when it
 * has just been started.
 * Return: as spawn_run().
 */
int spawn_confined(const char *const argv[], const char *const env[], uint64_t memory_bytes,
	struct buf *output, int timeout_ms, int *ret_status, struct error **err) MUST_CHECK;

/**
 * spawn_check() - spawn_run() that must exit 0.
 * @argv:       as spawn_run()
 * @out:        as spawn_run()
 * @timeout_ms: as spawn_run()
 *
 * Return: 0, or -1 as spawn_run(), or with ERR_INTERNAL that has the program, its status and spawn_said() of
 * its stderr.
 */
int spawn_check(const char *const argv[], struct buf *out, int timeout_ms, struct error **err) MUST_CHECK;

/**
 * spawn_said() - make one line of what a program has printed when it failed: all lines but how it is called,
 * which mkfs.xfs prints behind the reason. Of more than 512 bytes the beginning and the end are kept.
 * Return: caller frees.
 */
char *spawn_said(const char *output);

struct child {
	pid_t pid;
	int stdin_fd;  /* we write */
	int stdout_fd; /* we read, non-blocking */
	int stderr_fd; /* we read, non-blocking */
	int extra_fd;  /* we read, non-blocking: what the child sees as descriptor 3 */
};

#define CHILD_INIT                                                                                           \
	((struct child){.pid = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .extra_fd = -1})

/**
 * child_start() - start a long-lived child with pipes on 0, 1, 2 and 3.
 * @argv: as spawn_run()
 * @env:  as spawn_run()
 * @ret:  child_stop()
 *
 * Return: 0, or -1 with ERR_PRECONDITION (program not found), ERR_INTERNAL.
 */
int child_start(
	const char *const argv[], const char *const env[], struct child *ret, struct error **err) MUST_CHECK;

/**
 * child_stop() - close the pipes, wait for the child to end by itself, then SIGTERM, then SIGKILL; reap it.
 * @c:        safe on CHILD_INIT and twice
 * @grace_ms: how long to wait before each of the two signals
 */
void child_stop(struct child *c, int grace_ms);

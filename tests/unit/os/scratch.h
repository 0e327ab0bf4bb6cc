/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - an empty tmpfs in a mount namespace of the test's own, and disks over files in it.
 *
 * All of it vanishes with the process of the test, however that ends: nothing leaks to the host.
 */
#pragma once

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "unit/unit.h"

#define SCRATCH             "/mnt"
#define SCRATCH_SKIP_STATUS 77
#define KIB(n)              ((uint64_t)(n) << 10)
#define MIB(n)              ((uint64_t)(n) << 20)

/** scratch_unavailable() - why this host cannot run such tests. Return: NULL when it can. */
static inline const char *scratch_unavailable(void)
{
	if (geteuid() != 0)
		return "needs root";
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return "needs loop devices (/dev/loop-control)";
	if (unshare(CLONE_NEWNS) < 0)
		return "needs mount namespaces (unshare)";
	return NULL;
}

/** scratch_enter() - fixture of each test. */
static inline void scratch_enter(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	ck_assert_int_eq(mount("scratch", SCRATCH, "tmpfs", 0, NULL), 0);
}

/** scratch_file() - new sparse file of @size_bytes. Return: descriptor, the caller's. */
static inline int scratch_file(const char *name, uint64_t size_bytes)
{
	char path[64];

	snprintf(path, sizeof(path), SCRATCH "/%s", name);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)size_bytes), 0);
	return fd;
}

struct scratch_disk {
	char path[32];
	int fd; /* the loop detaches itself when this is closed */
};

static inline void scratch_disk_done(struct scratch_disk *d)
{
	fd_closep(&d->fd);
}

/** scratch_disk() - new empty disk. Another process may take a loop number in between, so it tries again. */
static inline struct scratch_disk scratch_disk(const char *name, uint64_t size_bytes)
{
	CLEANUP(fd_closep) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	CLEANUP(fd_closep) int file = scratch_file(name, size_bytes);
	struct scratch_disk d = {.fd = -1};
	struct loop_config config = {.fd = (uint32_t)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR};

	for (int i = 0; i < 100; i++) {
		snprintf(d.path, sizeof(d.path), "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
		d.fd = open(d.path, O_RDWR | O_CLOEXEC);
		if (d.fd >= 0 && ioctl(d.fd, LOOP_CONFIGURE, &config) == 0)
			return d;
		fd_closep(&d.fd);
	}
	ck_abort_msg("no free loop device");
	return d;
}

/** scratch_run() - as unit_run(), with the fixture. Return: exit status; SCRATCH_SKIP_STATUS when the host
 * cannot. */
static inline int scratch_run(const char *name, const TTest *const *tests, size_t n)
{
	const char *why = scratch_unavailable();

	if (why) {
		fprintf(stderr, "SKIP %s: %s\n", name, why);
		return SCRATCH_SKIP_STATUS;
	}

	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, scratch_enter, NULL);
	tcase_set_timeout(tcase, 300);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

#define SCRATCH_MAIN(name, ...)                                                                              \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return scratch_run((name), tests, ARRAY_SIZE(tests));                                        \
	}

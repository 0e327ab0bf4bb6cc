/* SPDX-License-Identifier: Apache-2.0 */
/* Information about device-mapper devices; works on a machine without any. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "os/blockdev.h"
#include "unit/unit.h"

/* Any node that is always there; it is not opened. */
#define NODE    "/dev/null"
#define CONTROL "/dev/mapper/control"

static int open_counts[8]; /* of one question after the other; then the last one stays */
static unsigned n_counts;
static unsigned n_asked;
static int fails_with; /* errno; 0: it does not */
static const char *uuid = "";
static bool is_mapped = true;

int __wrap_access(const char *path, int mode);
int __real_open(const char *path, int how, ...);
int __wrap_open(const char *path, int how, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_access(const char *path, int mode)
{
	(void)mode;
	if (is_mapped || !str_ends(path, "/dm"))
		return 0;
	errno = ENOENT;
	return -1;
}

int __wrap_open(const char *path, int how, ...)
{
	return __real_open(str_eq(path, CONTROL) ? "/dev/null" : path, how);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	(void)fd;
	ck_assert_uint_eq(request, DM_DEV_STATUS);
	va_start(ap, request);
	struct dm_ioctl *io = va_arg(ap, struct dm_ioctl *);
	va_end(ap);
	if (fails_with) {
		errno = fails_with;
		return -1;
	}
	snprintf(io->uuid, sizeof(io->uuid), "%s", uuid);
	if (n_counts > 0)
		io->open_count = open_counts[n_asked < n_counts ? n_asked : n_counts - 1];
	n_asked++;
	return 0;
}

START_TEST(device_that_is_open_for_a_moment_is_not_in_use)
{
	struct error *err = NULL;

	open_counts[0] = 2;
	open_counts[1] = 1;
	open_counts[2] = 0;
	n_counts = 3;
	ASSERT_OK(dm_wait_unused(NODE, &err));
	ck_assert_uint_eq(n_asked, 3);
}
END_TEST

START_TEST(device_that_stays_open_is_in_use)
{
	struct error *err = NULL;

	open_counts[0] = 2;
	n_counts = 1;
	ASSERT_FAILS(dm_wait_unused(NODE, &err), ERR_PRECONDITION, NODE " is in use: open 2 times");
	ck_assert_uint_gt(n_asked, 1);
}
END_TEST

START_TEST(what_device_mapper_does_not_tell_is_not_guessed)
{
	struct error *err = NULL;

	fails_with = EACCES;
	ASSERT_FAILS(dm_wait_unused(NODE, &err), ERR_INTERNAL, "status of mapped device 1:3");
}
END_TEST

START_TEST(device_that_went_meanwhile_is_not_in_use)
{
	struct error *err = NULL;

	fails_with = ENXIO;
	ASSERT_OK(dm_wait_unused(NODE, &err));
}
END_TEST

START_TEST(only_the_mapped_device_with_the_uuid_is_the_one)
{
	struct error *err = NULL;

	uuid = "LVM-one";
	ASSERT_OK(dm_require_uuid(NODE, "LVM-one", &err));
	ASSERT_OK(dm_require_uuid("/dev/nowhere/vol", "LVM-one", &err));
	ASSERT_FAILS(dm_require_uuid(NODE, "LVM-two", &err), ERR_PRECONDITION, "another device now");
	is_mapped = false;
	ASSERT_FAILS(dm_require_uuid(NODE, "LVM-one", &err), ERR_PRECONDITION, "another device now");
}
END_TEST

UNIT_MAIN("os/dm", device_that_is_open_for_a_moment_is_not_in_use, device_that_stays_open_is_in_use,
	what_device_mapper_does_not_tell_is_not_guessed, device_that_went_meanwhile_is_not_in_use,
	only_the_mapped_device_with_the_uuid_is_the_one)

/* SPDX-License-Identifier: Apache-2.0 */
/* Information about device-mapper devices; works on a machine without any. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "unit/unit.h"

/* Any node that is always there; it is not opened. */
#define NODE    "/dev/null"
#define CONTROL "/dev/mapper/control"

struct target {
	uint64_t sector;
	uint64_t n_sectors;
	const char *type;
	const char *text;
};

static int open_counts[8]; /* of one question after the other; then the last one stays */
static unsigned n_counts;
static unsigned n_asked;
static int fails_with; /* errno; 0: it does not */
static const char *uuid = "";
static bool is_mapped = true;
static bool is_gone;                 /* sysfs has no folder of the device */
static const struct target *targets; /* of the mapped device */
static unsigned n_targets;
static unsigned n_tables; /* how often it was asked for them */
static bool is_suspended;
static uint32_t suspended_with; /* flags */

int __wrap_access(const char *path, int mode);
int __real_open(const char *path, int how, ...);
int __wrap_open(const char *path, int how, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_access(const char *path, int mode)
{
	(void)mode;
	if (!is_gone && (is_mapped || !str_ends(path, "/dm")))
		return 0;
	errno = ENOENT;
	return -1;
}

int __wrap_open(const char *path, int how, ...)
{
	return __real_open(str_eq(path, CONTROL) ? "/dev/null" : path, how);
}

/* Answers as the kernel does in retrieve_status() (drivers/md/dm-ioctl.c). */
static void answer_table(struct dm_ioctl *io)
{
	uint32_t room = io->data_size - io->data_start;
	char *data = (char *)io + io->data_start;
	uint32_t at = 0;

	n_tables++;
	ck_assert_uint_eq(io->flags & DM_STATUS_TABLE_FLAG, DM_STATUS_TABLE_FLAG);
	io->target_count = n_targets;
	for (unsigned i = 0; i < n_targets; i++) {
		const struct target *t = &targets[i];
		struct dm_target_spec spec = {.sector_start = t->sector, .length = t->n_sectors};
		size_t len = strlen(t->text) + 1;

		if (at + sizeof(spec) + len > room) {
			io->flags |= DM_BUFFER_FULL_FLAG;
			return;
		}
		snprintf(spec.target_type, sizeof(spec.target_type), "%s", t->type);
		spec.next = (at + (uint32_t)(sizeof(spec) + len) + 7) / 8 * 8;
		memcpy(data + at, &spec, sizeof(spec));
		memcpy(data + at + sizeof(spec), t->text, len);
		at = spec.next;
	}
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	(void)fd;
	va_start(ap, request);
	struct dm_ioctl *io = va_arg(ap, struct dm_ioctl *);
	va_end(ap);
	if (fails_with) {
		errno = fails_with;
		return -1;
	}
	if (request == DM_TABLE_STATUS) {
		answer_table(io);
		return 0;
	}
	if (request == DM_DEV_SUSPEND) {
		is_suspended = io->flags & DM_SUSPEND_FLAG;
		suspended_with = io->flags;
		return 0;
	}
	ck_assert_uint_eq(request, DM_DEV_STATUS);
	io->flags = is_suspended ? DM_SUSPEND_FLAG : 0;
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

START_TEST(device_is_suspended_and_resumed)
{
	struct error *err = NULL;
	bool was_suspended = true;

	ASSERT_OK(dm_resume(makedev(253, 3), &was_suspended, &err));
	ck_assert(!was_suspended);
	ASSERT_OK(dm_suspend(makedev(253, 3), &err));
	ck_assert(is_suspended);
	/* nothing is mounted that could be frozen, and what was begun is waited for */
	ck_assert_uint_eq(suspended_with, DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG);
	ASSERT_OK(dm_resume(makedev(253, 3), &was_suspended, &err));
	ck_assert(was_suspended && !is_suspended);
}
END_TEST

START_TEST(device_that_others_have_suspended_is_theirs)
{
	struct error *err = NULL;

	is_suspended = true;
	ASSERT_FAILS(dm_suspend(makedev(253, 3), &err), ERR_ABORTED, "by another program");
	ck_assert(is_suspended);
	is_mapped = false;
	ASSERT_FAILS(dm_suspend(makedev(253, 3), &err), ERR_PRECONDITION, "253:3 is not device-mapper's");
	is_mapped = true;
	fails_with = EACCES;
	ASSERT_FAILS(dm_suspend(makedev(253, 3), &err), ERR_INTERNAL, "253:3");
}
END_TEST

static size_t list(struct dm_segment **ret)
{
	struct error *err = NULL;
	size_t n = 0;

	ASSERT_OK(dm_list_segments(makedev(253, 3), ret, &n, &err));
	return n;
}

START_TEST(linear_parts_are_listed)
{
	static const struct target two[] = {
		{0, 2048, "linear", "259:0 4096"}, {2048, 8, "zero", ""}, {2056, 1024, "linear", "259:12 0"}};
	struct dm_segment *s = NULL;

	targets = two;
	n_targets = 3;
	ck_assert_uint_eq(list(&s), 2);
	ck_assert_uint_eq(s[0].dev, makedev(259, 0));
	ck_assert_uint_eq(s[0].start_bytes, 4096 * 512);
	ck_assert_uint_eq(s[0].length_bytes, 2048 * 512);
	ck_assert_uint_eq(s[0].offset_bytes, 0);
	ck_assert_uint_eq(s[1].dev, makedev(259, 12));
	ck_assert_uint_eq(s[1].start_bytes, 0);
	ck_assert_uint_eq(s[1].length_bytes, 1024 * 512);
	ck_assert_uint_eq(s[1].offset_bytes, 2056 * 512);
	ck_assert_uint_eq(n_tables, 1);
	free(s);
}
END_TEST

START_TEST(large_table_is_asked_for_again_with_more_room)
{
	enum { N = 2000 };
	struct target *many = x_calloc(N, sizeof(*many));
	struct dm_segment *s = NULL;

	for (unsigned i = 0; i < N; i++)
		many[i] = (struct target){i, 1, "linear", "259:0 17"};
	targets = many;
	n_targets = N;
	ck_assert_uint_eq(list(&s), N);
	ck_assert_uint_eq(s[N - 1].offset_bytes, (N - 1) * 512);
	ck_assert_uint_gt(n_tables, 1);
	free(s);
	free(many);
}
END_TEST

START_TEST(what_is_not_mapped_has_no_parts)
{
	struct dm_segment *s = NULL;

	fails_with = ENXIO;
	ck_assert_uint_eq(list(&s), 0);
	free(s);
	is_mapped = false;
	fails_with = EACCES;
	ck_assert_uint_eq(list(&s), 0);
	free(s);
}
END_TEST

START_TEST(what_was_removed_has_no_parts)
{
	struct dm_segment *s = NULL;

	is_gone = true;
	ck_assert_uint_eq(list(&s), 0);
	free(s);
	/* between the look into sysfs and the question */
	is_gone = false;
	fails_with = ENXIO;
	ck_assert_uint_eq(list(&s), 0);
	free(s);
}
END_TEST

START_TEST(table_that_cannot_be_read_is_an_error)
{
	static const char *const texts[] = {"", "259", "259:0", "259:0 x", ":0 1", "259: 1"};
	struct dm_segment *s = NULL;
	struct error *err = NULL;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct target one = {0, 8, "linear", texts[i]};

		targets = &one;
		n_targets = 1;
		ASSERT_FAILS(dm_list_segments(makedev(253, 3), &s, &n, &err), ERR_INTERNAL,
			"mapped device 253:3: linear target");
	}
	fails_with = EACCES;
	ASSERT_FAILS(dm_list_segments(makedev(253, 3), &s, &n, &err), ERR_INTERNAL,
		"table of mapped device 253:3");
}
END_TEST

UNIT_MAIN("os/dm", linear_parts_are_listed, large_table_is_asked_for_again_with_more_room,
	what_is_not_mapped_has_no_parts, what_was_removed_has_no_parts, table_that_cannot_be_read_is_an_error,
	device_that_is_open_for_a_moment_is_not_in_use, device_that_stays_open_is_in_use,
	what_device_mapper_does_not_tell_is_not_guessed, device_that_went_meanwhile_is_not_in_use,
	only_the_mapped_device_with_the_uuid_is_the_one, device_is_suspended_and_resumed,
	device_that_others_have_suspended_is_theirs)

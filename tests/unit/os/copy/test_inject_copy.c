/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of file systems, with the n-th system call below them failing. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "os/copy/data_copy.h"
#include "os/copy/fs_detached.h"
#include "os/copy/fs_extents.h"
#include "os/copy/fs_flush.h"
#include "os/copy/fs_freeze.h"
#include "os/copy/fs_uuid.h"
#include "os/fs.h"
#include "unit/inject/sweep.h"
#include "unit/inject/wrap.h"
#include "unit/os/copy/fixture.h"

#define SMALL_BYTES MIB(3)
#define UUID        "2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5b"

WRAP(int, fsopen, (const char *type, unsigned flags), (type, flags), -1, EMFILE, ENOMEM)
WRAP(int, fsconfig, (int fd, unsigned command, const char *key, const void *value, int aux),
	(fd, command, key, value, aux), -1, ENOMEM, EIO)
WRAP(int, fsmount, (int fd, unsigned flags, unsigned attributes), (fd, flags, attributes), -1, EMFILE, ENOMEM)
WRAP(int, name_to_handle_at, (int dir, const char *name, struct file_handle *h, int *mount_id, int flags),
	(dir, name, h, mount_id, flags), -1, ENOMEM, EIO)
WRAP(int, open_by_handle_at, (int mount_fd, struct file_handle *h, int flags), (mount_fd, h, flags), -1,
	EMFILE, ENOMEM)
WRAP(ssize_t, getdents64, (int fd, void *to, size_t n), (fd, to, n), -1, EIO, ENOMEM)

WRAP_AS(ssize_t, pread, (int fd, void *to, size_t n, off_t at));
WRAP_AS(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at));

/* Past the page cache, whole sectors only can be read and written. */
static size_t shorten(int how, size_t n)
{
	return how == INJECT_SHORT && n > 512 ? 512 : n;
}

ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
	int how = inject_way(INJECT_SYSTEM, "pread", (const int[]){EIO, EINTR, INJECT_SHORT, 0});

	if (how > 0) {
		errno = how;
		return -1;
	}
	return __real_pread(fd, to, shorten(how, n), at);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
	int how = inject_way(INJECT_SYSTEM, "pwrite", (const int[]){EIO, ENOSPC, EINTR, INJECT_SHORT, 0});

	if (how > 0) {
		errno = how;
		return -1;
	}
	return __real_pwrite(fd, from, shorten(how, n), at);
}

static struct fixture_disk from = {.dir_fd = -1};
static struct fixture_disk to = {.dir_fd = -1};
static struct fs_extents extents;

static int copy_open(struct data_copy *c, struct error **err)
{
	if (data_copy_open(from.disk.path, DATA_COPY_SOURCE, &c->from_fd, err) < 0)
		return -1;
	return data_copy_open(to.disk.path, DATA_COPY_TARGET, &c->to_fd, err);
}

static int copy(struct error **err)
{
	struct data_copy c = {.from_fd = -1, .to_fd = -1};
	int rc = copy_open(&c, err);

	if (rc == 0)
		rc = data_copy_extents(&c, &extents, err);
	if (rc == 0)
		rc = data_copy_zero_gaps(&c, &extents, SMALL_BYTES, err);
	fd_closep(&c.from_fd);
	fd_closep(&c.to_fd);
	return rc;
}

/* No two sectors that are near each other are equal. */
static void number_sectors(uint8_t *content, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end; at++)
		content[at] = (uint8_t)(1 + at / 512 % 251);
}

static const char *not_copied(void)
{
	static uint8_t wanted[SMALL_BYTES];
	static uint8_t found[SMALL_BYTES];

	memset(wanted, 0, sizeof(wanted));
	for (size_t i = 0; i < extents.n; i++)
		number_sectors(wanted, extents.list[i].at_bytes,
			extents.list[i].at_bytes + extents.list[i].length_bytes);
	RIGHT_IF(__real_pread(to.disk.fd, found, SMALL_BYTES, 0) == (ssize_t)SMALL_BYTES);
	RIGHT_IF(memcmp(wanted, found, SMALL_BYTES) == 0);
	return NULL;
}

static void fill(const struct fixture_disk *d, const uint8_t *content)
{
	ck_assert_int_eq(__real_pwrite(d->disk.fd, content, SMALL_BYTES, 0), (ssize_t)SMALL_BYTES);
	ck_assert_int_eq(fsync(d->disk.fd), 0);
}

static void dirty_target(void)
{
	static uint8_t content[SMALL_BYTES];

	memset(content, DIRTY, SMALL_BYTES);
	fill(&to, content);
}

START_TEST(a_copy_is_complete_or_fails)
{
	const struct sweep s = {.name = "data_copy_extents, data_copy_zero_gaps",
		.folder = SCRATCH,
		.min_points = 13,
		.prepare = dirty_target,
		.call = copy,
		.wrong_at_end = not_copied};
	static uint8_t content[SMALL_BYTES];

	from = fixture_disk("from", SMALL_BYTES);
	to = fixture_disk("to", SMALL_BYTES);
	number_sectors(content, 0, SMALL_BYTES);
	fill(&from, content);
	fs_extents_add(&extents, 4096, 8192, FS_EXTENTS_MAX);
	fs_extents_add(&extents, 16384, MIB(1) + 4096, FS_EXTENTS_MAX);
	sweep_run(&s);
	fs_extents_done(&extents);
	fixture_disk_done(&from);
	fixture_disk_done(&to);
}
END_TEST

static void make_source(const char *fstype)
{
	from = fixture_make(fstype, "from");
	fixture_write(from.dir_fd, "file", 1, MIB(2));
	ck_assert_int_eq(mkdirat(from.dir_fd, "dir", 0700), 0);
	fixture_write(from.dir_fd, "dir/file", 1, 1);
}

static int read_extents(struct error **err)
{
	return fs_extents_read(from.dir_fd, from.size_bytes, &extents, err);
}

static const char *wrong_extents(void)
{
	RIGHT_IF(extents.total_bytes > MIB(2));
	RIGHT_IF(extents.total_bytes < from.size_bytes / 2);
	return NULL;
}

static void forget_extents(void)
{
	fs_extents_done(&extents);
}

START_TEST(extents_are_known_or_not)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		const struct sweep s = {.name = fixture_types[i],
			.folder = SCRATCH,
			.min_points = 2,
			.call = read_extents,
			.wrong_at_end = wrong_extents,
			.undo = forget_extents};

		make_source(fixture_types[i]);
		sweep_run(&s);
		fixture_disk_done(&from);
	}
}
END_TEST

static uint64_t n_flushed;

/* As the driver does after a thaw that has failed. */
static int freeze_and_flush(struct error **err)
{
	struct fs_freeze *f;
	bool was_frozen;

	n_flushed = 0;
	if (fs_thaw(from.dir_fd, &was_frozen, err) < 0 ||
		fs_freeze_begin(from.dir_fd, TIMEOUT_MS, &f, err) < 0)
		return -1;
	int rc = fs_flush_files(from.dir_fd,
		&(struct fs_flush_until){.deadline_ns = clock_ns() + TIMEOUT_MS * NS_PER_MS}, &n_flushed,
		err);
	CLEANUP(error_freep) struct error *second = NULL;
	if (fs_freeze_end(f, NULL, rc < 0 ? &second : err) < 0)
		rc = -1;
	return rc;
}

static const char *not_flushed_and_thawed(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	bool was_frozen = true;

	RIGHT_IF(n_flushed == 2);
	RIGHT_IF(fs_thaw(from.dir_fd, &was_frozen, &err) == 0);
	RIGHT_IF(!was_frozen);
	return NULL;
}

START_TEST(files_are_flushed_while_they_are_frozen_and_thawed_in_the_end)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		const struct sweep s = {.name = fixture_types[i],
			.folder = SCRATCH,
			.min_points = 18,
			.call = freeze_and_flush,
			.wrong_at_end = not_flushed_and_thawed};

		make_source(fixture_types[i]);
		sweep_run(&s);
		fixture_disk_done(&from);
	}
}
END_TEST

static int result_fd = -1;

static int open_detached(struct error **err)
{
	return fs_open_detached(from.fstype, from.disk.path, /* readonly= */ true, &result_fd, err);
}

static const char *not_open(void)
{
	RIGHT_IF(result_fd >= 0);
	RIGHT_IF(faccessat(result_fd, "dir/file", R_OK, 0) == 0);
	return NULL;
}

static void close_detached(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(fs_close_detached(TAKE_FD(result_fd), from.disk.path, &err));
}

START_TEST(a_detached_mount_is_there_or_leaves_nothing)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		const struct sweep s = {.name = fixture_types[i],
			.folder = SCRATCH,
			.min_points = 7,
			.call = open_detached,
			.wrong_at_end = not_open,
			.undo = close_detached};

		make_source(fixture_types[i]);
		fixture_unmount(&from);
		sweep_run(&s);
		fixture_disk_done(&from);
	}
}
END_TEST

static int set_uuid(struct error **err)
{
	return fs_set_uuid(from.fstype, from.disk.path, UUID, TIMEOUT_MS, err);
}

static const char *not_set(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_super super;

	RIGHT_IF(fs_read_super(from.fstype, from.disk.path, &super, &err) == 0);
	RIGHT_IF(str_eq(super.uuid, UUID));
	RIGHT_IF(fixture_is_clean(&from));
	return NULL;
}

START_TEST(a_uuid_is_set_in_the_end)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		const struct sweep s = {.name = fixture_types[i],
			.folder = SCRATCH,
			.min_points = 20,
			.brief = true,
			.call = set_uuid,
			.wrong_at_end = not_set};

		make_source(fixture_types[i]);
		fixture_unmount(&from);
		sweep_run(&s);
		fixture_disk_done(&from);
	}
}
END_TEST

SCRATCH_MAIN("os/copy/inject_copy", a_copy_is_complete_or_fails, extents_are_known_or_not,
	files_are_flushed_while_they_are_frozen_and_thawed_in_the_end,
	a_detached_mount_is_there_or_leaves_nothing, a_uuid_is_set_in_the_end)

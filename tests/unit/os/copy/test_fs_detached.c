/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_detached.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/str.h"
#include "os/blockdev.h"
#include "os/copy/fs_uuid.h"
#include "os/file.h"
#include "unit/os/copy/fixture.h"

#define MOMENT_US 100000

static struct fixture_disk make_unmounted(const char *fstype)
{
	struct fixture_disk d = fixture_make(fstype, "from");

	fixture_write(d.dir_fd, "file", 1, 1000);
	ck_assert_int_eq(mknodat(d.dir_fd, "device", S_IFCHR | 0600, makedev(1, 3)), 0);
	fixture_unmount(&d);
	return d;
}

static int open_detached(const struct fixture_disk *d, bool readonly)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	ASSERT_OK(fs_open_detached(d->fstype, d->disk.path, readonly, &fd, &err));
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void close_detached(const struct fixture_disk *d, int fd)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(fs_close_detached(fd, d->disk.path, &err));
}

static bool can_be_opened_exclusively(const struct fixture_disk *d)
{
	CLEANUP(fd_closep) int fd = open(d->disk.path, O_RDWR | O_EXCL | O_CLOEXEC);

	return fd >= 0;
}

static void check_is_no_mount(const struct fixture_disk *d)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf mounts = BUF_INIT(1U << 20);

	ASSERT_OK(file_read(AT_FDCWD, "/proc/self/mountinfo", &mounts, &err));
	ck_assert_ptr_null(strstr(buf_str(&mounts), d->disk.path));
}

/* Checksum of the device, which depends on each byte and its offset. */
static uint64_t sum_of(const struct fixture_disk *d)
{
	CLEANUP(fd_closep) int fd = open(d->disk.path, O_RDONLY | O_CLOEXEC);
	static uint64_t words[1 << 16];
	uint64_t sum = 0;
	ssize_t n;

	while ((n = read(fd, words, sizeof(words))) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(*words); i++)
			sum = sum * 31 + words[i];
	}
	ck_assert_int_eq(n, 0);
	return sum;
}

START_TEST(a_file_system_can_be_read_without_changing_its_device)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted(fixture_types[i]);
		int fd;

		ASSERT_OK(fs_set_uuid(
			d.fstype, d.disk.path, "11111111-2222-3333-4444-555555555555", 60000, &err));
		uint64_t before = sum_of(&d);
		ASSERT_OK(fs_open_unchanged(d.fstype, d.disk.path, &fd, &err));
		ck_assert_int_eq(faccessat(fd, "file", F_OK, 0), 0);
		close_detached(&d, fd);
		ck_assert_msg(sum_of(&d) == before, "%s", d.fstype);
	}
}
END_TEST

START_TEST(it_is_mounted_without_a_path_until_it_is_closed)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted(fixture_types[i]);
		int fd = open_detached(&d, true);
		struct statvfs st;

		check_is_no_mount(&d);
		ck_assert_int_eq(faccessat(fd, "file", R_OK, 0), 0);
		ck_assert(!can_be_opened_exclusively(&d));
		ck_assert_int_eq(mkdirat(fd, "new", 0700), -1);
		ck_assert_int_eq(errno, EROFS);
		ck_assert_int_eq(openat(fd, "device", O_RDONLY | O_CLOEXEC), -1);
		ck_assert_int_eq(errno, EACCES);
		ck_assert_int_eq(fstatvfs(fd, &st), 0);
		ck_assert_uint_eq(st.f_flag & (ST_NODEV | ST_NOSUID | ST_NOEXEC | ST_RDONLY),
			ST_NODEV | ST_NOSUID | ST_NOEXEC | ST_RDONLY);
		close_detached(&d, fd);
		ck_assert(can_be_opened_exclusively(&d));
	}
}
END_TEST

START_TEST(for_writing_it_can_be_changed)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted(fixture_types[i]);
		int fd = open_detached(&d, false);

		ck_assert_int_eq(mkdirat(fd, "new", 0700), 0);
		close_detached(&d, fd);
		fd = open_detached(&d, true);
		ck_assert_int_eq(faccessat(fd, "new", F_OK, 0), 0);
		close_detached(&d, fd);
		fixture_check_clean(&d);
	}
}
END_TEST

/* Whether its log has to be replayed. e2fsck -n leaves that out of account: fs/ext4/ext4.h,
 * s_feature_incompat. */
static bool needs_recovery(const struct fixture_disk *d)
{
	uint8_t incompat = 0;

	if (str_eq(d->fstype, "xfs"))
		return !fixture_is_clean(d);
	ck_assert_int_eq(pread(d->disk.fd, &incompat, 1, 1024 + 0x60), 1);
	return incompat & 4;
}

/* As after a power cut: what fsync(2) has written is in the log only. */
START_TEST(the_log_is_replayed_without_writing_to_files)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");
		CLEANUP(fixture_disk_done) struct fixture_disk cut = fixture_disk("cut", d.size_bytes);
		CLEANUP(fd_closep) int image_fd = -1;
		static char piece[1U << 20];

		cut.fstype = d.fstype;
		fixture_write(d.dir_fd, "file", 1, 1000);
		/* the file below the disk: what was not written yet is not in it */
		image_fd = open(d.file, O_RDONLY | O_CLOEXEC);
		for (uint64_t at = 0; at < d.size_bytes; at += sizeof(piece)) {
			ck_assert_int_eq(pread(image_fd, piece, sizeof(piece), (off_t)at), sizeof(piece));
			ck_assert_int_eq(pwrite(cut.disk.fd, piece, sizeof(piece), (off_t)at), sizeof(piece));
		}
		ck_assert_int_eq(fsync(cut.disk.fd), 0);
		ck_assert(needs_recovery(&cut));
		/* beside the original, which has the same UUID */
		int fd = open_detached(&cut, true);
		ck_assert_int_eq(faccessat(fd, "file", R_OK, 0), 0);
		close_detached(&cut, fd);
		ck_assert(!needs_recovery(&cut));
		fixture_check_clean(&cut);
	}
}
END_TEST

START_TEST(what_is_mounted_or_held_is_refused)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted(fixture_types[i]);
		CLEANUP(fd_closep) int held_fd = -1;
		int fd = -1;

		/* the kernel would give the superblock of a mount for writing to another one */
		fixture_mount(&d, "again", NULL);
		ASSERT_FAILS(fs_open_detached(d.fstype, d.disk.path, false, &fd, &err), ERR_UNAVAILABLE,
			"is mounted, or held");
		ASSERT_FAILS(fs_open_detached(d.fstype, d.disk.path, true, &fd, &err), ERR_UNAVAILABLE,
			"is mounted, or held");
		fixture_unmount(&d);
		ASSERT_OK(blockdev_open_exclusive(d.disk.path, &held_fd, &err));
		ASSERT_FAILS(fs_open_detached(d.fstype, d.disk.path, true, &fd, &err), ERR_UNAVAILABLE,
			"is mounted, or held");
		ck_assert_int_eq(fd, -1);
	}
}
END_TEST

START_TEST(what_is_no_file_system_is_named)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_disk("d", MIB(16));
	int fd = -1;

	ASSERT_FAILS(fs_open_detached("xfs", d.disk.path, true, &fd, &err), ERR_INTERNAL, d.disk.path);
	ASSERT_FAILS(fs_open_detached("ext4", d.disk.path, true, &fd, &err), ERR_INTERNAL, d.disk.path);
	ASSERT_FAILS(fs_open_detached("nofs", d.disk.path, true, &fd, &err), ERR_INTERNAL, "nofs");
	ASSERT_FAILS(fs_open_detached("xfs", SCRATCH "/absent", true, &fd, &err), ERR_INTERNAL, "absent");
	ck_assert(can_be_opened_exclusively(&d));
}
END_TEST

START_TEST(it_ends_with_its_process)
{
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("xfs");
	int ready[2];
	char byte;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = check_fork();
	if (pid == 0) {
		open_detached(&d, false);
		ck_assert_int_eq(write(ready[1], "", 1), 1);
		pause();
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert(!can_be_opened_exclusively(&d));
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(can_be_opened_exclusively(&d));
	close(ready[0]);
	close(ready[1]);
}
END_TEST

/* A child that another thread starts has copies of our descriptors until it runs its program. */
static void *close_soon(void *user)
{
	int *fd = user;

	usleep(MOMENT_US);
	close(*fd);
	return NULL;
}

START_TEST(what_is_held_for_a_moment_is_waited_for)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("ext4");
	pthread_t thread;
	int held_fd = -1;

	ASSERT_OK(blockdev_open_exclusive(d.disk.path, &held_fd, &err));
	ck_assert_int_eq(pthread_create(&thread, NULL, close_soon, &held_fd), 0);
	int fd = open_detached(&d, true);
	pthread_join(thread, NULL);

	held_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, close_soon, &held_fd), 0);
	close_detached(&d, fd);
	ck_assert(can_be_opened_exclusively(&d));
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_descriptor_that_stays_is_reported)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = make_unmounted("ext4");
	int fd = open_detached(&d, true);
	int file_fd = openat(fd, "file", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(file_fd, 0);
	ASSERT_FAILS(
		fs_close_detached(fd, d.disk.path, &err), ERR_UNAVAILABLE, "wait for the end of a mount");
	close(file_fd);
}
END_TEST

SCRATCH_MAIN("os/copy/fs_detached", it_is_mounted_without_a_path_until_it_is_closed,
	for_writing_it_can_be_changed, the_log_is_replayed_without_writing_to_files,
	what_is_mounted_or_held_is_refused, what_is_no_file_system_is_named, it_ends_with_its_process,
	what_is_held_for_a_moment_is_waited_for, a_file_system_can_be_read_without_changing_its_device,
	a_descriptor_that_stays_is_reported)

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_flush.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/clock.h"
#include "os/copy/fs_freeze.h"
#include "unit/os/copy/fixture.h"

#define SEEN_MAX   8192
#define DEEP       3000
#define FILES      2000
#define DIRS       20
#define MOMENT_US  100000
#define PATIENT_NS (60 * NS_PER_S)

/* Files that were flushed. They are compared by inode, as their names may change. */
static struct stat seen[SEEN_MAX];
static size_t n_seen;
static unsigned slow_us;
static void (*at_flush)(void);

int __real_sync_file_range(int fd, off64_t from, off64_t n, unsigned flags);
int __wrap_sync_file_range(int fd, off64_t from, off64_t n, unsigned flags);

int __wrap_sync_file_range(int fd, off64_t from, off64_t n, unsigned flags)
{
	/* without these, pages of mappings with DAX stay writable */
	ck_assert_uint_eq(flags, SYNC_FILE_RANGE_WRITE_AND_WAIT);
	ck_assert_int_eq(from, 0);
	ck_assert_int_eq(n, 0);
	if (n_seen < SEEN_MAX && fstat(fd, &seen[n_seen]) == 0)
		n_seen++;
	if (at_flush)
		at_flush();
	usleep(slow_us);
	return __real_sync_file_range(fd, from, n, flags);
}

/* Replaces the file "replaced" by another one just before the walk opens it; NULL: it stays. */
static void (*replace)(int dir_fd, const char *name);
static int race_fd;
static unsigned n_devices;   /* that were opened */
static uint64_t *refused_ns; /* or NULL: gets 0 when the file "leased" cannot be opened */

int __real_openat(int dir_fd, const char *name, int flags, ...);
int __wrap_openat(int dir_fd, const char *name, int flags, ...);

int __wrap_openat(int dir_fd, const char *name, int flags, ...)
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (replace && !(flags & O_CREAT) && strcmp(name, "replaced") == 0) {
		ck_assert_int_eq(unlinkat(race_fd, name, 0), 0);
		replace(race_fd, name);
		replace = NULL;
	}
	struct stat st;
	int fd = __real_openat(dir_fd, name, flags, mode);
	int why = errno;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		n_devices++;
	if (fd < 0 && refused_ns && strcmp(name, "leased") == 0)
		*refused_ns = 0;
	errno = why;
	return fd;
}

static size_t count_flushes(const struct stat *st)
{
	size_t n = 0;

	for (size_t i = 0; i < n_seen; i++)
		n += seen[i].st_ino == st->st_ino && seen[i].st_dev == st->st_dev;
	return n;
}

static void make_file(int dir_fd, const char *name)
{
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	ck_assert_int_eq(write(fd, "x", 1), 1);
}

static int make_dir(int dir_fd, const char *name)
{
	ck_assert_int_eq(mkdirat(dir_fd, name, 0), 0);
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static size_t flushes_of(int dir_fd, const char *name)
{
	struct stat st;

	ck_assert_msg(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0, "%s: %s", name, strerror(errno));
	return count_flushes(&st);
}

static uint64_t flush(const struct fixture_disk *d)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t n = 0;

	n_seen = 0;
	ASSERT_OK(fs_flush_files(
		d->dir_fd, &(struct fs_flush_until){.deadline_ns = clock_ns() + PATIENT_NS}, &n, &err));
	ck_assert_uint_eq(n, n_seen);
	return n;
}

/* Fails no test while the file system is frozen. */
static uint64_t flush_frozen(const struct fixture_disk *d)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(error_freep) struct error *flush_err = NULL;
	struct fs_freeze *f;
	uint64_t n = 0;

	n_seen = 0;
	ASSERT_OK(fs_freeze_begin(d->dir_fd, 60000, &f, &err));
	int rc = fs_flush_files(
		d->dir_fd, &(struct fs_flush_until){.deadline_ns = clock_ns() + PATIENT_NS}, &n, &flush_err);
	ASSERT_OK(fs_freeze_end(f, NULL, &err));
	ck_assert_msg(rc == 0, "%s", flush_err ? flush_err->msg : "");
	ck_assert_uint_eq(n, n_seen);
	return n;
}

static void make_special(int dir_fd)
{
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dir_fd);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(mkfifoat(dir_fd, "fifo", 0600), 0);
	ck_assert_int_eq(mknodat(dir_fd, "device", S_IFCHR | 0600, makedev(1, 3)), 0);
	ck_assert_int_eq(symlinkat(SCRATCH "/outside", dir_fd, "link-to-file"), 0);
	ck_assert_int_eq(symlinkat(SCRATCH, dir_fd, "link-to-directory"), 0);
	ck_assert_int_eq(symlinkat("absent", dir_fd, "dangling"), 0);
	ck_assert_int_eq(symlinkat(".", dir_fd, "loop"), 0);
}

static void make_many(int dir_fd)
{
	for (unsigned i = 0; i < DIRS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "dir%u", i);
		CLEANUP(fd_closep) int sub_fd = make_dir(dir_fd, name);
		for (unsigned k = 0; k < FILES / DIRS; k++) {
			snprintf(name, sizeof(name), "file%u", k);
			make_file(sub_fd, name);
		}
	}
}

/* The path of the last one is longer than PATH_MAX. Return: descriptor of the last one, the caller's */
static int make_deep(int dir_fd)
{
	int fd = make_dir(dir_fd, "deep-directory");

	for (unsigned i = 1; i < DEEP; i++) {
		int below_fd = make_dir(fd, "deep-directory");

		fd_closep(&fd);
		fd = below_fd;
	}
	make_file(fd, "bottom");
	return fd;
}

START_TEST(each_regular_file_is_flushed_and_nothing_else)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");

		make_special(d.dir_fd);
		make_many(d.dir_fd);
		CLEANUP(fd_closep) int bottom_fd = make_deep(d.dir_fd);
		make_file(d.dir_fd, "top");
		ck_assert_uint_eq(flush(&d), FILES + 2);
		ck_assert_uint_eq(flushes_of(bottom_fd, "bottom"), 1);

		ck_assert_uint_eq(flush_frozen(&d), FILES + 2);
		for (size_t k = 0; k < n_seen; k++) {
			ck_assert(S_ISREG(seen[k].st_mode));
			ck_assert_uint_eq(count_flushes(&seen[k]), 1);
		}
		fd_closep(&bottom_fd);
		fixture_unmount(&d);
	}
}
END_TEST

START_TEST(mounts_on_its_directories_do_not_mislead)
{
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("xfs", "d");
	CLEANUP(fd_closep) int hidden_fd = make_dir(d.dir_fd, "hidden");
	CLEANUP(fd_closep) int own_fd = make_dir(d.dir_fd, "own");

	make_file(hidden_fd, "below");
	make_file(own_fd, "file");
	ck_assert_int_eq(mount("other", SCRATCH "/md/hidden", "tmpfs", 0, NULL), 0);
	CLEANUP(fd_closep) int other_fd = open(SCRATCH "/md/hidden", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(other_fd, "above");
	ck_assert_uint_eq(flush(&d), 2);
	ck_assert_uint_eq(flushes_of(hidden_fd, "below"), 1);
	ck_assert_uint_eq(flushes_of(own_fd, "file"), 1);
	fd_closep(&other_fd);
	ck_assert_int_eq(umount(SCRATCH "/md/hidden"), 0);
}
END_TEST

/* When the first file below the root is flushed, the root has been read, and all but one of its directories
 * have not. */
static void move_directories(void)
{
	struct stat st;

	at_flush = NULL;
	for (unsigned i = 0; i < 3; i++) {
		char name[8], other[8];

		snprintf(name, sizeof(name), "dir%u", i);
		snprintf(other, sizeof(other), "moved%u", i);
		ck_assert_int_eq(renameat(race_fd, name, race_fd, other), 0);
		ck_assert_int_eq(symlinkat(SCRATCH "/trap", race_fd, name), 0);
	}
	ck_assert_int_eq(fstatat(race_fd, "vanishes/file", &st, 0), 0);
	if (count_flushes(&st) == 0) {
		ck_assert_int_eq(unlinkat(race_fd, "vanishes/file", 0), 0);
		ck_assert_int_eq(unlinkat(race_fd, "vanishes", AT_REMOVEDIR), 0);
	}
}

START_TEST(a_rename_during_the_walk_hides_nothing_and_leads_nowhere)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");

		if (i == 0) {
			ck_assert_int_eq(mkdir(SCRATCH "/trap", 0700), 0);
			make_file(AT_FDCWD, SCRATCH "/trap/file");
		}
		for (unsigned k = 0; k < 4; k++) {
			char name[16];

			snprintf(name, sizeof(name), k == 3 ? "vanishes" : "dir%u", k);
			CLEANUP(fd_closep) int sub_fd = make_dir(d.dir_fd, name);
			make_file(sub_fd, "file");
		}
		race_fd = d.dir_fd;
		at_flush = move_directories;
		flush(&d);
		ck_assert_uint_eq(flushes_of(AT_FDCWD, SCRATCH "/trap/file"), 0);
		for (unsigned k = 0; k < 3; k++) {
			char name[16];

			snprintf(name, sizeof(name), "moved%u/file", k);
			ck_assert_uint_eq(flushes_of(d.dir_fd, name), 1);
		}
	}
}
END_TEST

static void become_fifo(int dir_fd, const char *name)
{
	ck_assert_int_eq(mkfifoat(dir_fd, name, 0600), 0);
}

/* To open one of these would be felt: it winds a tape back, or takes a terminal. */
static void become_device(int dir_fd, const char *name)
{
	ck_assert_int_eq(mknodat(dir_fd, name, S_IFCHR | 0600, makedev(1, 3)), 0);
}

static void become_link(int dir_fd, const char *name)
{
	ck_assert_int_eq(symlinkat(SCRATCH "/outside", dir_fd, name), 0);
}

static void become_directory(int dir_fd, const char *name)
{
	ck_assert_int_eq(mkdirat(dir_fd, name, 0700), 0);
}

static void vanish(int dir_fd, const char *name)
{
	(void)dir_fd;
	(void)name;
}

START_TEST(a_file_that_is_replaced_before_it_is_opened_is_left_alone)
{
	static void (*const kinds[])(int, const char *) = {
		become_fifo, become_device, become_link, become_directory, vanish};
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");

	make_file(AT_FDCWD, SCRATCH "/outside");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make_file(d.dir_fd, "replaced");
		make_file(d.dir_fd, "stays");
		race_fd = d.dir_fd;
		replace = kinds[i];
		ck_assert_uint_eq(flush(&d), 1);
		ck_assert_uint_eq(flushes_of(d.dir_fd, "stays"), 1);
		ck_assert_ptr_null(replace);
		ck_assert_uint_eq(n_devices, 0);
		(void)!unlinkat(d.dir_fd, "replaced", kinds[i] == become_directory ? AT_REMOVEDIR : 0);
		ck_assert_int_eq(unlinkat(d.dir_fd, "stays", 0), 0);
	}
}
END_TEST

START_TEST(the_walk_ends_at_its_deadline)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");
	uint64_t begun_ns;

	for (unsigned i = 0; i < 400; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file%u", i);
		make_file(d.dir_fd, name);
	}
	n_seen = 0;
	ASSERT_FAILS(
		fs_flush_files(d.dir_fd, &(struct fs_flush_until){.deadline_ns = clock_ns()}, NULL, &err),
		ERR_DEADLINE, "after flushing 0 files");
	ck_assert_uint_eq(n_seen, 0);
	slow_us = 5000;
	begun_ns = clock_ns();
	ASSERT_FAILS(fs_flush_files(d.dir_fd,
			     &(struct fs_flush_until){.deadline_ns = begun_ns + NS_PER_S / 2}, NULL, &err),
		ERR_DEADLINE, "no time is left");
	ck_assert_uint_ge(clock_ns() - begun_ns, NS_PER_S / 2);
	ck_assert_uint_gt(n_seen, 0);
	ck_assert_uint_le(n_seen, 100);
}
END_TEST

struct lease {
	int fd;
	bool given_up;
};

static void *give_up_later(void *user)
{
	struct lease *lease = user;

	usleep(MOMENT_US);
	lease->given_up = true;
	ck_assert_int_eq(fcntl(lease->fd, F_SETLEASE, F_UNLCK), 0);
	return NULL;
}

START_TEST(a_lease_is_waited_for_but_not_for_ever)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");
	struct fs_flush_until until = {.deadline_ns = clock_ns() + PATIENT_NS};
	struct lease lease = {.given_up = false};
	pthread_t thread;

	signal(SIGIO, SIG_IGN);
	make_file(d.dir_fd, "leased");
	lease.fd = openat(d.dir_fd, "leased", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fcntl(lease.fd, F_SETLEASE, F_WRLCK), 0);
	refused_ns = &until.deadline_ns;
	ASSERT_FAILS(fs_flush_files(d.dir_fd, &until, NULL, &err), ERR_DEADLINE, "lease on file \"leased\"");
	refused_ns = NULL;
	ck_assert_int_eq(pthread_create(&thread, NULL, give_up_later, &lease), 0);
	ck_assert_uint_eq(flush(&d), 1);
	ck_assert(lease.given_up);
	pthread_join(thread, NULL);
	fd_closep(&lease.fd);
}
END_TEST

static bool goes_on_twice(void *user)
{
	unsigned *n_asked = user;

	return ++*n_asked < 3;
}

START_TEST(a_walk_that_is_not_to_go_on_ends)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "from");
	unsigned n_asked = 0;
	const struct fs_flush_until until = {
		.deadline_ns = clock_ns() + PATIENT_NS, .go_on = goes_on_twice, .user = &n_asked};

	for (unsigned i = 0; i < 5; i++) {
		char name[] = {(char)('a' + i), '\0'};

		fixture_write(d.dir_fd, name, 1, 1000);
	}
	ASSERT_FAILS(
		fs_flush_files(d.dir_fd, &until, NULL, &err), ERR_ABORTED, "stopped after flushing 1 files");
	ck_assert_uint_eq(n_asked, 3);
}
END_TEST

SCRATCH_MAIN("os/copy/fs_flush", each_regular_file_is_flushed_and_nothing_else,
	mounts_on_its_directories_do_not_mislead, a_rename_during_the_walk_hides_nothing_and_leads_nowhere,
	a_file_that_is_replaced_before_it_is_opened_is_left_alone, the_walk_ends_at_its_deadline,
	a_lease_is_waited_for_but_not_for_ever, a_walk_that_is_not_to_go_on_ends)

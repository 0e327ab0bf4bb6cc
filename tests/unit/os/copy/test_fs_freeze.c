/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "os/copy/fs_detached.h"
#include "unit/os/copy/fixture.h"

#define LONG_MS    60000
#define SHORT_MS   300
#define SETTLE_US  50000
#define GO_ON_NS   (30 * NS_PER_S)
#define LOOK_US    250000
#define PAGES      16
#define PAGE_BYTES 4096

/* There is no mapped device here; this one is pretended. */
#define MAPPED  makedev(253, 77)
#define SYSFS   "/sys/dev/block/253:77"
#define CONTROL "/dev/mapper/control"

static unsigned slow_freeze_ms;
static atomic_bool is_suspended;
static int suspend_fails_with; /* errno; 0: it does not */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_open(const char *path, int how, ...);
int __wrap_open(const char *path, int how, ...);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_access(const char *path, int mode)
{
	return strncmp(path, SYSFS, strlen(SYSFS)) == 0 ? 0 : __real_access(path, mode);
}

int __wrap_open(const char *path, int how, ...)
{
	va_list ap;

	va_start(ap, how);
	mode_t mode = how & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return __real_open(strcmp(path, CONTROL) == 0 ? "/dev/null" : path, how, mode);
}

static int answer_mapper(unsigned long request, struct dm_ioctl *io)
{
	if (request == DM_DEV_STATUS) {
		io->flags = is_suspended ? DM_SUSPEND_FLAG : 0;
		return 0;
	}
	if (suspend_fails_with) {
		errno = suspend_fails_with;
		return -1;
	}
	if (io->flags & DM_SUSPEND_FLAG)
		usleep(slow_freeze_ms * 1000);
	is_suspended = io->flags & DM_SUSPEND_FLAG;
	return 0;
}

/* A freeze that takes long, as when there is much to be written. */
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	va_start(ap, request);
	void *argument = va_arg(ap, void *);
	va_end(ap);
	if (request == DM_DEV_STATUS || request == DM_DEV_SUSPEND)
		return answer_mapper(request, argument);
	if (request == FIFREEZE)
		usleep(slow_freeze_ms * 1000);
	return __real_ioctl(fd, request, argument);
}

/* Two threads that change files all the time: one writes, one stores through a mapping. */
struct writers {
	int write_fd;
	void *memory;
	atomic_uint n_written;
	atomic_uint n_stored;
	atomic_bool failed;
	atomic_bool stop;
	pthread_t threads[2];
};

static void *write_always(void *user)
{
	struct writers *w = user;

	while (!w->stop && !w->failed) {
		unsigned n = w->n_written + 1;

		if (pwrite(w->write_fd, &n, sizeof(n), n % 1000 * sizeof(n)) < 0 || fsync(w->write_fd) < 0)
			w->failed = true;
		w->n_written = n;
	}
	return NULL;
}

static void *store_always(void *user)
{
	struct writers *w = user;
	volatile unsigned *map = w->memory;

	while (!w->stop) {
		unsigned n = w->n_stored + 1;

		map[n % PAGES * PAGE_BYTES / sizeof(*map)] = n;
		w->n_stored = n;
		usleep(100);
	}
	return NULL;
}

static int new_file(const struct fixture_disk *d, const char *name)
{
	int fd = openat(d->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, PAGES * PAGE_BYTES), 0);
	return fd;
}

static void writers_start(struct writers *w, const struct fixture_disk *d)
{
	CLEANUP(fd_closep) int map_fd = new_file(d, "mapped");

	w->write_fd = new_file(d, "written");
	w->memory = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	ck_assert_ptr_ne(w->memory, MAP_FAILED);
	ck_assert_int_eq(pthread_create(&w->threads[0], NULL, write_always, w), 0);
	ck_assert_int_eq(pthread_create(&w->threads[1], NULL, store_always, w), 0);
}

static void writers_stop(struct writers *w)
{
	w->stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(w->threads); i++)
		pthread_join(w->threads[i], NULL);
	ck_assert(!w->failed);
	munmap(w->memory, PAGES * PAGE_BYTES);
	fd_closep(&w->write_fd);
}

/* Neither this nor both_wait() fails a test, which would leave the file system frozen. */
static bool both_go_on(const struct writers *w)
{
	unsigned n_written = w->n_written;
	unsigned n_stored = w->n_stored;
	uint64_t deadline_ns = clock_ns() + GO_ON_NS;

	while (clock_ns() < deadline_ns) {
		if (w->n_written >= n_written + 3 && w->n_stored >= n_stored + 3)
			return true;
		usleep(1000);
	}
	return false;
}

static bool both_wait(const struct writers *w)
{
	usleep(SETTLE_US);
	unsigned n_written = w->n_written;
	unsigned n_stored = w->n_stored;
	usleep(LOOK_US);
	return w->n_written == n_written && w->n_stored == n_stored;
}

START_TEST(writers_wait_until_the_end_and_go_on)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");
		struct writers w = {.stop = false};
		struct fs_freeze *f;
		uint64_t pause_ns = 0;

		writers_start(&w, &d);
		for (unsigned k = 0; k < 3; k++) {
			ck_assert(both_go_on(&w));
			uint64_t begun_ns = clock_ns();
			ASSERT_OK(fs_freeze_begin(d.dir_fd, LONG_MS, &f, &err));
			bool holds = fs_freeze_holds(f);
			bool wait = both_wait(&w);
			holds = holds && fs_freeze_holds(f);
			ASSERT_OK(fs_freeze_end(f, &pause_ns, &err));
			ck_assert(wait);
			ck_assert(holds);
			ck_assert_uint_ge(pause_ns, (SETTLE_US + LOOK_US) * 1000ULL);
			ck_assert_uint_le(pause_ns, clock_ns() - begun_ns);
		}
		ck_assert(both_go_on(&w));
		writers_stop(&w);
		fixture_unmount(&d);
		fixture_check_clean(&d);
	}
}
END_TEST

START_TEST(the_watchdog_thaws_when_its_time_is_over)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");
		struct writers w = {.stop = false};
		struct fs_freeze *f;
		uint64_t pause_ns = 0;

		writers_start(&w, &d);
		ck_assert(both_go_on(&w));
		ASSERT_OK(fs_freeze_begin(d.dir_fd, SHORT_MS, &f, &err));
		/* as if this thread hung in a read of the device */
		bool go_on = both_go_on(&w);
		bool holds = fs_freeze_holds(f);
		int rc = fs_freeze_end(f, &pause_ns, &err);
		(void)!__real_ioctl(d.dir_fd, FITHAW, 0);
		ASSERT_FAILS(rc, ERR_DEADLINE, "was thawed after ");
		ck_assert(go_on);
		ck_assert(!holds);
		ck_assert_uint_ge(pause_ns, SHORT_MS * NS_PER_MS);
		writers_stop(&w);
		/* nothing has it open any more */
		fixture_unmount(&d);
	}
}
END_TEST

START_TEST(a_freeze_that_takes_too_long_is_undone)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");
	struct fs_freeze *f;
	bool was_frozen = true;

	slow_freeze_ms = 200;
	ASSERT_FAILS(fs_freeze_begin(d.dir_fd, 20, &f, &err), ERR_DEADLINE, "longer than 20 ms");
	ASSERT_OK(fs_thaw(d.dir_fd, &was_frozen, &err));
	ck_assert(!was_frozen);
	fixture_unmount(&d);
}
END_TEST

START_TEST(what_another_program_has_frozen_stays_so)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");
	struct fs_freeze *f;

	ck_assert_int_eq(__real_ioctl(d.dir_fd, FIFREEZE, 0), 0);
	int rc = fs_freeze_begin(d.dir_fd, LONG_MS, &f, &err);
	ck_assert_int_eq(__real_ioctl(d.dir_fd, FITHAW, 0), 0);
	ASSERT_FAILS(rc, ERR_ABORTED, "fsfreeze -u");
	fixture_unmount(&d);
}
END_TEST

START_TEST(a_thaw_by_another_program_is_noticed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make("ext4", "d");
	struct fs_freeze *f;
	uint64_t pause_ns = 0;

	ASSERT_OK(fs_freeze_begin(d.dir_fd, LONG_MS, &f, &err));
	ck_assert_int_eq(__real_ioctl(d.dir_fd, FITHAW, 0), 0);
	ASSERT_FAILS(fs_freeze_end(f, &pause_ns, &err), ERR_ABORTED, "another program has thawed");
	ck_assert_uint_gt(pause_ns, 0);

	/* also when the watchdog comes later */
	ASSERT_OK(fs_freeze_begin(d.dir_fd, SHORT_MS, &f, &err));
	ck_assert_int_eq(__real_ioctl(d.dir_fd, FITHAW, 0), 0);
	usleep(2 * SHORT_MS * 1000);
	ASSERT_FAILS(fs_freeze_end(f, NULL, &err), ERR_ABORTED, "another program has thawed");
	fixture_unmount(&d);
}
END_TEST

START_TEST(what_a_process_left_frozen_is_thawed_through_another_mount)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done)
		struct fixture_disk d = fixture_make(fixture_types[i], "from");
		bool was_frozen = false;

		ck_assert_int_eq(__real_ioctl(d.dir_fd, FIFREEZE, 0), 0);
		fixture_unmount(&d);
		fixture_mount(&d, "again", NULL);
		ASSERT_OK(fs_thaw(d.dir_fd, &was_frozen, &err));
		ck_assert(was_frozen);
		ASSERT_OK(fs_thaw(d.dir_fd, &was_frozen, &err));
		ck_assert(!was_frozen);
		fixture_write(d.dir_fd, "file", 1, 1);
		fixture_unmount(&d);
	}
}
END_TEST

static void check_thaw_without_mount(const char *fstype)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fixture_disk_done) struct fixture_disk d = fixture_make(fstype, "from");
	CLEANUP(fd_closep) int dir_fd = -1;
	bool was_frozen = false;

	fixture_unmount(&d);
	ck_assert_int_eq(mkdir(SCRATCH "/read", 0700) == 0 || errno == EEXIST, true);
	ck_assert_int_eq(mount(d.disk.path, SCRATCH "/read", fstype, MS_RDONLY, NULL), 0);
	int frozen = open(SCRATCH "/read", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(__real_ioctl(frozen, FIFREEZE, 0), 0);
	close(frozen);
	ck_assert_int_eq(umount2(SCRATCH "/read", UMOUNT_NOFOLLOW), 0);
	ASSERT_OK(fs_open_further(fstype, d.disk.path, &dir_fd, &err));
	ASSERT_OK(fs_thaw(dir_fd, &was_frozen, &err));
	ck_assert(was_frozen);
	fd_closep(&dir_fd);
	dir_fd = -1;
	fixture_mount(&d, "again", NULL);
	fixture_write(d.dir_fd, "file", 1, 1);
	fixture_unmount(&d);
}

START_TEST(what_was_read_only_is_thawed_without_its_mount)
{
	for (size_t i = 0; fixture_types[i]; i++)
		check_thaw_without_mount(fixture_types[i]);
}
END_TEST

START_TEST(what_cannot_be_frozen_says_so)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_freeze *f;

	ASSERT_FAILS(fs_freeze_begin(fd, LONG_MS, &f, &err), ERR_PRECONDITION, "cannot be frozen");
	ASSERT_FAILS(fs_freeze_begin(-1, LONG_MS, &f, &err), ERR_INTERNAL, "duplicate a descriptor");
}
END_TEST

START_TEST(a_mapped_device_is_suspended_until_the_end)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_freeze *f = NULL;
	uint64_t pause_ns = 0;

	ASSERT_OK(fs_freeze_begin_device(MAPPED, LONG_MS, &f, &err));
	ck_assert(is_suspended && fs_freeze_holds(f));
	usleep(SETTLE_US);
	ASSERT_OK(fs_freeze_end(f, &pause_ns, &err));
	ck_assert(!is_suspended);
	ck_assert_uint_ge(pause_ns, SETTLE_US * 1000ULL);
}
END_TEST

START_TEST(a_watchdog_resumes_a_device)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_freeze *f = NULL;

	ASSERT_OK(fs_freeze_begin_device(MAPPED, SHORT_MS, &f, &err));
	usleep(2 * SHORT_MS * 1000);
	ck_assert(!is_suspended && !fs_freeze_holds(f));
	ASSERT_FAILS(fs_freeze_end(f, NULL, &err), ERR_DEADLINE, "the device was resumed after ");

	slow_freeze_ms = 2 * SHORT_MS;
	ASSERT_FAILS(fs_freeze_begin_device(MAPPED, SHORT_MS, &f, &err), ERR_DEADLINE,
		"suspending the device took longer than 300 ms");
	ck_assert(!is_suspended);
}
END_TEST

START_TEST(what_others_do_to_a_device_is_noticed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_freeze *f = NULL;

	is_suspended = true;
	ASSERT_FAILS(fs_freeze_begin_device(MAPPED, LONG_MS, &f, &err), ERR_ABORTED, "by another program");
	ck_assert(is_suspended);
	is_suspended = false;
	ASSERT_OK(fs_freeze_begin_device(MAPPED, LONG_MS, &f, &err));
	is_suspended = false;
	ASSERT_FAILS(fs_freeze_end(f, NULL, &err), ERR_ABORTED, "another program has resumed the device");
	ASSERT_OK(fs_freeze_begin_device(MAPPED, LONG_MS, &f, &err));
	suspend_fails_with = EIO;
	ASSERT_FAILS(fs_freeze_end(f, NULL, &err), ERR_INTERNAL, "resume the device");
	ASSERT_FAILS(fs_freeze_begin_device(MAPPED, LONG_MS, &f, &err), ERR_ABORTED, "by another program");
}
END_TEST

SCRATCH_MAIN("os/copy/fs_freeze", writers_wait_until_the_end_and_go_on,
	the_watchdog_thaws_when_its_time_is_over, a_freeze_that_takes_too_long_is_undone,
	what_another_program_has_frozen_stays_so, a_thaw_by_another_program_is_noticed,
	what_a_process_left_frozen_is_thawed_through_another_mount,
	what_was_read_only_is_thawed_without_its_mount, what_cannot_be_frozen_says_so,
	a_mapped_device_is_suspended_until_the_end, a_watchdog_resumes_a_device,
	what_others_do_to_a_device_is_noticed)

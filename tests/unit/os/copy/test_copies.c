/* SPDX-License-Identifier: Apache-2.0 */
/* Whole copies of file systems, made of all that os/copy has, as the driver makes them. */
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/str.h"
#include "os/copy/data_copy.h"
#include "os/copy/fs_detached.h"
#include "os/copy/fs_flush.h"
#include "os/copy/fs_freeze.h"
#include "os/copy/fs_uuid.h"
#include "os/fs.h"
#include "os/fs_grow.h"
#include "unit/os/copy/fixture.h"

#define FILES      120
#define DEEP       60
#define PIECE      (1U << 20)
#define BLOCK      4096
#define MORE_BYTES (MIB(40) + KIB(64))
#define PAUSE_MS   60000
#define NEW_UUID   "2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5b"

/* Size of file @i in bytes, from 0 to 2 MiB. */
static uint64_t size_of_file(unsigned i)
{
	return i % 7 == 0 ? 0 : (i * 7919ULL * 311) % MIB(1) / (i % 3 + 1) + i;
}

static bool is_deleted(unsigned i)
{
	return i % 3 == 0;
}

static void name_file(unsigned i, char name[static 32])
{
	snprintf(name, 32, "dir%u/file%u", i % 10, i);
}

/* Every third of them is deleted again: the rest lies in pieces. */
static void populate(int dir_fd)
{
	char name[32];

	for (unsigned i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "dir%u", i);
		ck_assert_int_eq(mkdirat(dir_fd, name, 0700), 0);
	}
	for (unsigned i = 0; i < FILES; i++) {
		name_file(i, name);
		fixture_write(dir_fd, name, (int)(i % 100 + 1), size_of_file(i));
	}
	for (unsigned i = 0; i < FILES; i++) {
		name_file(i, name);
		if (is_deleted(i))
			ck_assert_int_eq(unlinkat(dir_fd, name, 0), 0);
	}
	ck_assert_int_eq(symlinkat("dir1/file1", dir_fd, "link"), 0);
	CLEANUP(fd_closep) int sparse_fd = openat(dir_fd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	ck_assert_int_eq(pwrite(sparse_fd, "end", 3, (off_t)MIB(100)), 3);
	ck_assert_int_eq(fsetxattr(sparse_fd, "user.name", "value", 5, 0), 0);
}

static void check_file(int dir_fd, const char *name, int value, uint64_t size)
{
	static uint8_t piece[1U << 16];
	static uint8_t wanted[1U << 16];
	CLEANUP(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq((uint64_t)st.st_size, size);
	memset(wanted, value, sizeof(wanted));
	for (uint64_t at = 0; at < size;) {
		ssize_t n = pread(fd, piece, sizeof(piece), (off_t)at);

		ck_assert_int_gt(n, 0);
		if (memcmp(piece, wanted, (size_t)n) != 0)
			ck_abort_msg("%s differs at byte %ju", name, (uintmax_t)at);
		at += (uint64_t)n;
	}
}

static void check_populated(int dir_fd)
{
	char name[32];
	char text[16] = {0};

	for (unsigned i = 0; i < FILES; i++) {
		name_file(i, name);
		if (is_deleted(i))
			ck_assert_int_eq(faccessat(dir_fd, name, F_OK, 0), -1);
		else
			check_file(dir_fd, name, (int)(i % 100 + 1), size_of_file(i));
	}
	ck_assert_int_eq(readlinkat(dir_fd, "link", text, sizeof(text)), 10);
	CLEANUP(fd_closep) int sparse_fd = openat(dir_fd, "sparse", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(pread(sparse_fd, text, 3, (off_t)MIB(100)), 3);
	ck_assert(memcmp(text, "end", 3) == 0);
	ck_assert_int_eq(pread(sparse_fd, text, 1, (off_t)MIB(50)), 1);
	ck_assert_int_eq(text[0], 0);
	ck_assert_int_eq(fgetxattr(sparse_fd, "user.name", text, sizeof(text)), 5);
}

static bool is_covered(const struct fs_extents *x, uint64_t at)
{
	for (size_t i = 0; i < x->n && x->list[i].at_bytes <= at; i++) {
		if (at - x->list[i].at_bytes < x->list[i].length_bytes)
			return true;
	}
	return false;
}

/* While the source does not change. No byte of the former owner of the target is left. */
static int compare_blocks(const struct fixture_disk *from, const struct fixture_disk *to,
	const struct fs_extents *x, struct error **err)
{
	_Alignas(BLOCK) static uint8_t source[PIECE];
	_Alignas(BLOCK) static uint8_t copy[PIECE];
	static const uint8_t zeros[BLOCK];
	CLEANUP(fd_closep) int from_fd = open(from->disk.path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	CLEANUP(fd_closep) int to_fd = open(to->disk.path, O_RDONLY | O_DIRECT | O_CLOEXEC);

	for (uint64_t at = 0; at < to->size_bytes; at += PIECE) {
		ssize_t n = pread(to_fd, copy, PIECE, (off_t)at);

		if (n <= 0 || pread(from_fd, source, PIECE, (off_t)at) < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "read byte %ju", (uintmax_t)at);
		for (ssize_t i = 0; i < n; i += BLOCK) {
			bool covered = is_covered(x, at + (uint64_t)i);

			if (memcmp(copy + i, covered ? source + i : zeros, BLOCK) != 0)
				return err_set(err, ERR_INTERNAL, "the copy is wrong at byte %ju",
					(uintmax_t)at + (uintmax_t)i);
		}
	}
	return 0;
}

static int copy_and_compare(const struct fixture_disk *from, const struct fixture_disk *to,
	const struct fs_extents *x, struct error **err)
{
	CLEANUP(fd_closep) int from_fd = -1;
	CLEANUP(fd_closep) int to_fd = -1;

	if (data_copy_open(from->disk.path, DATA_COPY_SOURCE, &from_fd, err) < 0 ||
		data_copy_open(to->disk.path, DATA_COPY_TARGET, &to_fd, err) < 0)
		return -1;

	const struct data_copy c = {.from_fd = from_fd, .to_fd = to_fd};
	if (data_copy_extents(&c, x, err) < 0 || data_copy_zero_gaps(&c, x, to->size_bytes, err) < 0)
		return -1;
	return compare_blocks(from, to, x, err);
}

/* Beside the original, which is mounted. */
static void finish_and_check(struct fixture_disk *to)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_super super = {0};

	ASSERT_OK(fs_set_uuid(to->fstype, to->disk.path, NEW_UUID, TIMEOUT_MS, &err));
	ASSERT_OK(fs_read_super(to->fstype, to->disk.path, &super, &err));
	ck_assert_str_eq(super.uuid, NEW_UUID);
	fixture_check_clean(to);
	fixture_mount(to, "copy", NULL);
	check_populated(to->dir_fd);
	fixture_write(to->dir_fd, "new", 1, MIB(3));
}

/* Each write of the counter is durable before the next one. */
struct counter {
	int fd;
	atomic_uint n;
	atomic_bool stop;
};

static void *count(void *user)
{
	struct counter *c = user;

	for (unsigned n = 1; !c->stop; n++) {
		if (pwrite(c->fd, &n, sizeof(n), (off_t)(n % 4096 * sizeof(n))) < 0 || fsync(c->fd) < 0)
			return NULL;
		c->n = n;
	}
	return NULL;
}

static unsigned read_counter(int dir_fd)
{
	unsigned numbers[4096] = {0};
	CLEANUP(fd_closep) int fd = openat(dir_fd, "counter", O_RDONLY | O_CLOEXEC);
	unsigned max = 0;

	if (pread(fd, numbers, sizeof(numbers), 0) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		max = numbers[i] > max ? numbers[i] : max;
	return max;
}

/* Fails no test, so that the source never stays frozen. */
static int copy_while_it_holds(const struct fixture_disk *from, const struct fixture_disk *to,
	unsigned *ret_counter, struct error **err)
{
	CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;

	if (fs_flush_files(from->dir_fd,
		    &(struct fs_flush_until){.deadline_ns = clock_ns() + PAUSE_MS * NS_PER_MS}, NULL,
		    err) < 0 ||
		fs_extents_read(from->dir_fd, from->size_bytes, &x, err) < 0)
		return -1;
	if (x.total_bytes > from->size_bytes * 2 / 3)
		return err_set(err, ERR_INTERNAL, "%ju bytes are used", (uintmax_t)x.total_bytes);
	*ret_counter = read_counter(from->dir_fd);
	return copy_and_compare(from, to, &x, err);
}

/* Return: the counter of the frozen source; 0: it has none. */
static unsigned copy_frozen(const struct fixture_disk *from, struct fixture_disk *to)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(error_freep) struct error *copy_err = NULL;
	struct fs_freeze *f;
	unsigned counter = 0;

	to->fstype = from->fstype;
	ASSERT_OK(fs_freeze_begin(from->dir_fd, PAUSE_MS, &f, &err));
	int rc = copy_while_it_holds(from, to, &counter, &copy_err);
	bool holds = fs_freeze_holds(f);
	ASSERT_OK(fs_freeze_end(f, NULL, &err));
	ck_assert_msg(rc == 0, "%s", copy_err ? copy_err->msg : "");
	ck_assert(holds);
	return counter;
}

START_TEST(a_mounted_file_system_is_copied)
{
	static const uint64_t more_bytes[] = {0, MORE_BYTES};

	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done)
		struct fixture_disk from = fixture_make(fixture_types[i], "from");

		populate(from.dir_fd);
		for (size_t k = 0; k < ARRAY_SIZE(more_bytes); k++) {
			CLEANUP(fixture_disk_done)
			struct fixture_disk to = fixture_disk("to", from.size_bytes + more_bytes[k]);

			copy_frozen(&from, &to);
			finish_and_check(&to);
			check_populated(from.dir_fd);
			fixture_unmount(&to);
			fixture_check_clean(&to);
		}
		fixture_unmount(&from);
		fixture_check_clean(&from);
	}
}
END_TEST

/* Its blocks are used until the last descriptor of it is closed, and nothing closes one in the copy. */
START_TEST(a_deleted_file_that_is_open_is_gone_from_the_copy)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done)
		struct fixture_disk from = fixture_make(fixture_types[i], "from");
		CLEANUP(fixture_disk_done) struct fixture_disk to = fixture_disk("to", from.size_bytes);

		populate(from.dir_fd);
		fixture_write(from.dir_fd, "open", 1, MIB(5));
		CLEANUP(fd_closep) int fd = openat(from.dir_fd, "open", O_RDWR | O_CLOEXEC);
		ck_assert_int_eq(unlinkat(from.dir_fd, "open", 0), 0);
		copy_frozen(&from, &to);
		finish_and_check(&to);
		fixture_unmount(&to);
		fixture_check_clean(&to);
		fd_closep(&fd);
	}
}
END_TEST

START_TEST(a_copy_is_a_source_again)
{
	CLEANUP(fixture_disk_done) struct fixture_disk from = fixture_make("xfs", "from");
	CLEANUP(fixture_disk_done) struct fixture_disk to = fixture_disk("to", from.size_bytes + MORE_BYTES);
	CLEANUP(fixture_disk_done) struct fixture_disk third = fixture_disk("third", to.size_bytes);
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_growth growth;

	populate(from.dir_fd);
	copy_frozen(&from, &to);
	finish_and_check(&to);
	ASSERT_OK(fs_grow("xfs", to.disk.path, to.dir_fd, to.size_bytes, &growth, &err));
	ck_assert_uint_eq(growth.to_bytes, to.size_bytes);
	ck_assert_int_eq(unlinkat(to.dir_fd, "new", 0), 0);
	copy_frozen(&to, &third);
	ASSERT_OK(fs_set_uuid(
		"xfs", third.disk.path, "00000000-0000-4000-8000-000000000001", TIMEOUT_MS, &err));
	fixture_mount(&third, "third", NULL);
	check_populated(third.dir_fd);
	fixture_unmount(&third);
	fixture_check_clean(&third);
}
END_TEST

START_TEST(an_unmounted_file_system_is_copied)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fixture_disk_done)
		struct fixture_disk from = fixture_make(fixture_types[i], "from");
		CLEANUP(fixture_disk_done) struct fixture_disk to = fixture_disk("to", from.size_bytes);
		CLEANUP(fs_extents_done) struct fs_extents x = FS_EXTENTS_INIT;
		int dir_fd;

		to.fstype = from.fstype;
		populate(from.dir_fd);
		fixture_unmount(&from);
		ASSERT_OK(fs_open_detached(from.fstype, from.disk.path, /* readonly= */ true, &dir_fd, &err));
		ASSERT_OK(fs_extents_read(dir_fd, from.size_bytes, &x, &err));
		ASSERT_OK(copy_and_compare(&from, &to, &x, &err));
		ASSERT_OK(fs_close_detached(dir_fd, from.disk.path, &err));
		finish_and_check(&to);
		fixture_mount(&from, "again", NULL);
		check_populated(from.dir_fd);
	}
}
END_TEST

START_TEST(a_whole_device_is_copied_where_its_file_system_has_no_say)
{
	CLEANUP(fixture_disk_done) struct fixture_disk from = fixture_make("ext4", "from");
	CLEANUP(fixture_disk_done) struct fixture_disk to = fixture_disk("to", from.size_bytes + MORE_BYTES);
	CLEANUP(fs_extents_done) struct fs_extents x;
	CLEANUP(error_freep) struct error *err = NULL;

	to.fstype = from.fstype;
	populate(from.dir_fd);
	fixture_unmount(&from);
	fs_extents_whole(from.size_bytes, &x);
	ASSERT_OK(copy_and_compare(&from, &to, &x, &err));
	finish_and_check(&to);
}
END_TEST

START_TEST(the_copy_is_the_state_at_one_moment)
{
	for (size_t i = 0; fixture_types[i]; i++) {
		CLEANUP(fixture_disk_done) struct fixture_disk from = fixture_make(fixture_types[i], "from");
		CLEANUP(fixture_disk_done) struct fixture_disk to = fixture_disk("to", from.size_bytes);
		struct counter c = {.fd = openat(from.dir_fd, "counter", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
		pthread_t thread;

		populate(from.dir_fd);
		ck_assert_int_eq(pthread_create(&thread, NULL, count, &c), 0);
		while (c.n < 10)
			usleep(1000);
		unsigned before = c.n;
		unsigned at_freeze = copy_frozen(&from, &to);
		c.stop = true;
		pthread_join(thread, NULL);
		ck_assert_uint_ge(at_freeze, before);
		finish_and_check(&to);
		ck_assert_uint_eq(read_counter(to.dir_fd), at_freeze);
		fd_closep(&c.fd);
	}
}
END_TEST

SCRATCH_MAIN("os/copy/copies", a_mounted_file_system_is_copied,
	a_deleted_file_that_is_open_is_gone_from_the_copy, a_copy_is_a_source_again,
	an_unmounted_file_system_is_copied, a_whole_device_is_copied_where_its_file_system_has_no_say,
	the_copy_is_the_state_at_one_moment)

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fs_grow.h"

#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "os/loopdev.h"
#include "unit/os/scratch.h"

#define MOUNT      SCRATCH "/m"
#define TIMEOUT_MS 60000
#define OLD_BYTES  MIB(320)
#define NEW_BYTES  MIB(1500)

/* The types of file systems that this host can grow; NULL ends the list. For ext4, the kernel requires
 * CAP_SYS_RESOURCE (fs/ext4/resize.c, ext4_resize_begin()), which a container may lack. */
static const char *types[3];

static bool may_grow_ext4(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	return syscall(SYS_capget, &header, data) == 0 && data[0].effective & 1U << CAP_SYS_RESOURCE;
}

static void choose_types(void)
{
	size_t n = 0;

	if (may_grow_ext4())
		types[n++] = "ext4";
	else
		fprintf(stderr, "SKIP os/fs_grow with ext4: needs CAP_SYS_RESOURCE\n");
	types[n] = "xfs";
}

struct stage {
	const char *fstype;
	struct scratch_disk disk;
	int file; /* below the disk */
	int dir_fd;
};

static void stage_done(struct stage *s)
{
	fd_closep(&s->dir_fd);
	umount2(MOUNT, MNT_DETACH);
	rmdir(MOUNT);
	scratch_disk_done(&s->disk);
	fd_closep(&s->file);
	unlink(SCRATCH "/disk");
}

static void mount_disk(struct stage *s, unsigned long flags)
{
	ck_assert_int_eq(mount(s->disk.path, MOUNT, s->fstype, flags, NULL), 0);
	s->dir_fd = open(MOUNT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(s->dir_fd, 0);
}

static struct stage make_stage(const char *fstype, uint64_t size_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct stage s = {.fstype = fstype, .disk = scratch_disk("disk", size_bytes), .dir_fd = -1};

	s.file = open(SCRATCH "/disk", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(s.file, 0);
	ASSERT_OK(fs_make(fstype, s.disk.path, NULL, TIMEOUT_MS, &err));
	ck_assert_int_eq(mkdir(MOUNT, 0700), 0);
	mount_disk(&s, 0);
	return s;
}

static void resize(const struct stage *s, uint64_t size_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct blockdev_info info;

	ck_assert_int_eq(ftruncate(s->file, (off_t)size_bytes), 0);
	ASSERT_OK(loop_update_size(s->file, &err));
	ASSERT_OK(blockdev_stat(s->disk.path, &info, &err));
	ck_assert_uint_eq(info.size_bytes, size_bytes);
}

static struct fs_growth grow(const struct stage *s, uint64_t device_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct fs_growth g = {0};

	ASSERT_OK(fs_grow(s->fstype, s->disk.path, s->dir_fd, device_bytes, &g, &err));
	return g;
}

static uint64_t free_bytes(void)
{
	struct statfs fs;

	ck_assert_int_eq(statfs(MOUNT, &fs), 0);
	return fs.f_bfree * (uint64_t)fs.f_bsize;
}

START_TEST(a_mounted_file_system_grows_to_the_end_of_its_device)
{
	for (size_t i = 0; types[i]; i++) {
		CLEANUP(stage_done) struct stage s = make_stage(types[i], OLD_BYTES);
		struct fs_super super = {0};
		CLEANUP(error_freep) struct error *err = NULL;
		uint64_t before = free_bytes();

		resize(&s, NEW_BYTES);
		struct fs_growth g = grow(&s, NEW_BYTES);
		ck_assert_uint_eq(g.from_bytes, OLD_BYTES);
		ck_assert_uint_eq(g.to_bytes, NEW_BYTES);
		ck_assert_uint_gt(free_bytes(), before + (NEW_BYTES - OLD_BYTES) / 10 * 9);
		g = grow(&s, NEW_BYTES);
		ck_assert_uint_eq(g.from_bytes, NEW_BYTES);
		ck_assert_uint_eq(g.to_bytes, NEW_BYTES);
		fd_closep(&s.dir_fd);
		s.dir_fd = -1;
		ck_assert_int_eq(umount(MOUNT), 0);
		ASSERT_OK(fs_read_super(types[i], s.disk.path, &super, &err));
		ck_assert_uint_eq(super.size_bytes, NEW_BYTES);
		ck_assert_uint_eq(super.block_bytes, 4096);
	}
}
END_TEST

START_TEST(nothing_happens_where_the_device_is_not_larger)
{
	for (size_t i = 0; types[i]; i++) {
		CLEANUP(stage_done) struct stage s = make_stage(types[i], OLD_BYTES);
		struct fs_growth g = grow(&s, OLD_BYTES - MIB(4));

		ck_assert_uint_eq(g.from_bytes, OLD_BYTES);
		ck_assert_uint_eq(g.to_bytes, OLD_BYTES);
	}
}
END_TEST

/* A rest of the device that is too small for the tables of a block group stays unused when the file system
 * grows, as mkfs leaves it unused. */
START_TEST(a_rest_that_is_too_small_for_a_group_is_left)
{
	if (!may_grow_ext4())
		return;
	CLEANUP(stage_done) struct stage s = make_stage("ext4", MIB(3 * 128));

	resize(&s, MIB(3 * 128) + KIB(64));
	struct fs_growth g = grow(&s, MIB(3 * 128) + KIB(64));
	ck_assert_uint_eq(g.from_bytes, MIB(3 * 128));
	ck_assert_uint_eq(g.to_bytes, g.from_bytes);
}
END_TEST

START_TEST(a_read_only_mount_cannot_grow_and_says_so)
{
	for (size_t i = 0; types[i]; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(stage_done) struct stage s = make_stage(types[i], OLD_BYTES);
		struct fs_growth g;

		fd_closep(&s.dir_fd);
		ck_assert_int_eq(umount(MOUNT), 0);
		resize(&s, NEW_BYTES);
		mount_disk(&s, MS_RDONLY);
		ASSERT_FAILS(fs_grow(types[i], s.disk.path, s.dir_fd, NEW_BYTES, &g, &err), ERR_PRECONDITION,
			"mounted read-only");
	}
}
END_TEST

START_TEST(other_file_systems_are_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(stage_done) struct stage s = make_stage("ext4", MIB(16));
	struct fs_growth g;

	ASSERT_FAILS(
		fs_grow("btrfs", s.disk.path, s.dir_fd, MIB(16), &g, &err), ERR_INVALID_ARGUMENT, "btrfs");
	ASSERT_FAILS(fs_grow("xfs", s.disk.path, s.dir_fd, MIB(16), &g, &err), ERR_INTERNAL, s.disk.path);
}
END_TEST

struct writer {
	atomic_bool stop;
	atomic_uint n; /* of blocks that are written and read back */
	atomic_bool failed;
};

static void *write_blocks(void *user)
{
	static unsigned char block[4096];
	struct writer *w = user;
	CLEANUP(fd_closep) int fd = open(MOUNT "/counter", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	for (unsigned n = 0; !w->stop; n++) {
		unsigned char back[sizeof(block)];

		memset(block, (int)(n & 255), sizeof(block));
		if (pwrite(fd, block, sizeof(block), (off_t)(n % 1000) * (off_t)sizeof(block)) < 0 ||
			fsync(fd) < 0 ||
			pread(fd, back, sizeof(back), (off_t)(n % 1000) * (off_t)sizeof(block)) < 0 ||
			memcmp(block, back, sizeof(block)) != 0) {
			w->failed = true;
			break;
		}
		w->n++;
	}
	return NULL;
}

START_TEST(a_writer_goes_on_while_the_file_system_grows)
{
	for (size_t i = 0; types[i]; i++) {
		CLEANUP(stage_done) struct stage s = make_stage(types[i], OLD_BYTES);
		struct writer w = {.stop = false};
		pthread_t thread;

		ck_assert_int_eq(pthread_create(&thread, NULL, write_blocks, &w), 0);
		for (uint64_t bytes = OLD_BYTES + MIB(100); bytes < NEW_BYTES; bytes += MIB(200)) {
			unsigned n = w.n;

			resize(&s, bytes);
			ck_assert_uint_eq(grow(&s, bytes).to_bytes, bytes);
			while (!w.failed && w.n < n + 3)
				usleep(1000);
		}
		w.stop = true;
		pthread_join(thread, NULL);
		ck_assert(!w.failed);
	}
}
END_TEST

START_TEST(without_the_capability_the_refusal_names_it)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(stage_done) struct stage s = make_stage("ext4", OLD_BYTES);
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	struct fs_growth g;

	resize(&s, NEW_BYTES);
	ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
	ASSERT_FAILS(fs_grow("ext4", s.disk.path, s.dir_fd, NEW_BYTES, &g, &err), ERR_PRECONDITION,
		"SYS_RESOURCE");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {a_mounted_file_system_grows_to_the_end_of_its_device,
		nothing_happens_where_the_device_is_not_larger, a_rest_that_is_too_small_for_a_group_is_left,
		a_read_only_mount_cannot_grow_and_says_so, other_file_systems_are_refused,
		a_writer_goes_on_while_the_file_system_grows, without_the_capability_the_refusal_names_it};

	choose_types();
	return scratch_run("os/fs_grow", tests, ARRAY_SIZE(tests));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/loopdev.h"

#include <sys/stat.h>

#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "unit/os/scratch.h"

/* Loops made here outlive a failed test: one more open with autoclear set lets them go with the process. */
static int let_go_at_exit(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct loop_info64 info;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ioctl(fd, LOOP_GET_STATUS64, &info), 0);
	info.lo_flags |= LO_FLAGS_AUTOCLEAR;
	ck_assert_int_eq(ioctl(fd, LOOP_SET_STATUS64, &info), 0);
	return fd;
}

START_TEST(attaching_is_idempotent_and_detaching_too)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int file = scratch_file("image", MIB(3));
	CLEANUP(fd_closep) int same = open(SCRATCH "/image", O_RDONLY | O_CLOEXEC);
	CLEANUP(free_charp) char *first = NULL;
	CLEANUP(free_charp) char *second = NULL;
	CLEANUP(free_charp) char *found = NULL;
	struct blockdev_info info = {0};

	ASSERT_OK(loop_attach(file, &first, &err));
	ck_assert(str_starts(first, "/dev/loop"));
	ASSERT_OK(blockdev_stat(first, &info, &err));
	ck_assert_uint_eq(info.size_bytes, MIB(3));
	ASSERT_OK(loop_attach(same, &second, &err));
	ck_assert_str_eq(first, second);
	ASSERT_OK(loop_find(same, &found, &err));
	ck_assert_str_eq(first, found);

	ASSERT_OK(loop_detach(same, &err));
	free_charp(&found);
	ASSERT_OK(loop_find(file, &found, &err));
	ck_assert_ptr_null(found);
	ASSERT_OK(loop_detach(file, &err));
}
END_TEST

START_TEST(files_are_distinguished)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int one = scratch_file("one", MIB(1));
	CLEANUP(fd_closep) int two = scratch_file("two", MIB(1));
	CLEANUP(free_charp) char *path_one = NULL;
	CLEANUP(free_charp) char *path_two = NULL;
	CLEANUP(free_charp) char *found = NULL;

	ASSERT_OK(loop_attach(one, &path_one, &err));
	ASSERT_OK(loop_attach(two, &path_two, &err));
	ck_assert_str_ne(path_one, path_two);
	ASSERT_OK(loop_detach(one, &err));
	ASSERT_OK(loop_find(two, &found, &err));
	ck_assert_str_eq(found, path_two);
	ASSERT_OK(loop_detach(two, &err));
}
END_TEST

START_TEST(several_files_are_found_at_once)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int one = scratch_file("one", MIB(1));
	CLEANUP(fd_closep) int none = scratch_file("none", MIB(1));
	CLEANUP(fd_closep) int two = scratch_file("two", MIB(1));
	CLEANUP(free_charp) char *path_one = NULL;
	CLEANUP(free_charp) char *path_two = NULL;
	struct stat files[3];
	char *found[3] = {NULL};

	ASSERT_OK(loop_attach(one, &path_one, &err));
	ASSERT_OK(loop_attach(two, &path_two, &err));
	ck_assert_int_eq(fstat(two, &files[0]), 0);
	ck_assert_int_eq(fstat(none, &files[1]), 0);
	ck_assert_int_eq(fstat(one, &files[2]), 0);
	ASSERT_OK(loop_find_each(files, 3, found, &err));
	ASSERT_OK(loop_detach(one, &err));
	ASSERT_OK(loop_detach(two, &err));
	ck_assert_str_eq(found[0], path_two);
	ck_assert_ptr_null(found[1]);
	ck_assert_str_eq(found[2], path_one);
	free(found[0]);
	free(found[2]);
}
END_TEST

/* The /dev is like the one that container runtimes make for a privileged container: it has nodes of the
 * existing devices, and no new ones appear. */
START_TEST(a_loop_is_attached_where_dev_does_not_follow_the_kernel)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int file = scratch_file("image", MIB(1));
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(free_charp) char *found = NULL;
	struct stat control;

	ck_assert_int_eq(stat("/dev/loop-control", &control), 0);
	ck_assert_int_eq(mount("dev", "/dev", "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(mknod("/dev/loop-control", S_IFCHR | 0600, control.st_rdev), 0);
	ASSERT_OK(loop_attach(file, &path, &err));
	ASSERT_OK(loop_find(file, &found, &err));
	ck_assert_str_eq(found, path);
	ASSERT_OK(loop_detach(file, &err));
}
END_TEST

static const char *backing_of(const struct loop_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++) {
		if (str_eq(l->entries[i].path, path))
			return l->entries[i].backing;
	}
	return NULL;
}

START_TEST(loops_are_listed_with_their_files_as_long_as_they_have_one)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int file = scratch_file("listed", MIB(1));
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(loop_list_freep) struct loop_list *l = NULL;

	ASSERT_OK(loop_attach(file, &path, &err));
	ASSERT_OK(loop_list_read(&l, &err));
	ck_assert(str_ends(backing_of(l, path), "/listed"));
	loop_list_free(TAKE_PTR(l));
	ASSERT_OK(loop_detach(file, &err));
	ASSERT_OK(loop_list_read(&l, &err));
	const char *backing = backing_of(l, path);
	ck_assert(!backing || !str_ends(backing, "/listed"));
}
END_TEST

START_TEST(a_read_only_file_gives_a_read_only_loop)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = NULL;
	struct loop_info64 info;

	close(scratch_file("image", MIB(1)));
	CLEANUP(fd_closep) int file = open(SCRATCH "/image", O_RDONLY | O_CLOEXEC);
	ASSERT_OK(loop_attach(file, &path, &err));
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(ioctl(fd, LOOP_GET_STATUS64, &info), 0);
	ck_assert(info.lo_flags & LO_FLAGS_READ_ONLY);
	fd_closep(&fd);
	fd = -1;
	ASSERT_OK(loop_detach(file, &err));
}
END_TEST

START_TEST(a_mounted_loop_is_not_detached)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int file = scratch_file("image", MIB(16));
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(free_charp) char *found = NULL;

	ASSERT_OK(loop_attach(file, &path, &err));
	ASSERT_OK(fs_make("ext4", path, NULL, 60000, &err));
	ck_assert_int_eq(mkdir(SCRATCH "/m", 0700), 0);
	ck_assert_int_eq(mount(path, SCRATCH "/m", "ext4", 0, NULL), 0);
	ASSERT_FAILS(loop_detach(file, &err), ERR_PRECONDITION, path);
	ck_assert_int_eq(umount(SCRATCH "/m"), 0);
	ASSERT_OK(loop_find(file, &found, &err));
	ck_assert_str_eq(found, path);
	ASSERT_OK(loop_detach(file, &err));
}
END_TEST

START_TEST(an_open_loop_is_detached_by_its_last_close_and_not_given_out_before)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int file = scratch_file("image", MIB(1));
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(free_charp) char *again = NULL;

	ASSERT_OK(loop_attach(file, &path, &err));
	int opener = let_go_at_exit(path);
	ASSERT_FAILS(loop_detach(file, &err), ERR_PRECONDITION, path);
	ASSERT_FAILS(loop_attach(file, &again, &err), ERR_UNAVAILABLE, path);
	close(opener);
	ASSERT_OK(loop_detach(file, &err));
	ASSERT_OK(loop_attach(file, &again, &err));
	ASSERT_OK(loop_detach(file, &err));
}
END_TEST

SCRATCH_MAIN("os/loopdev", attaching_is_idempotent_and_detaching_too, files_are_distinguished,
	several_files_are_found_at_once, a_loop_is_attached_where_dev_does_not_follow_the_kernel,
	loops_are_listed_with_their_files_as_long_as_they_have_one, a_read_only_file_gives_a_read_only_loop,
	a_mounted_loop_is_not_detached, an_open_loop_is_detached_by_its_last_close_and_not_given_out_before)

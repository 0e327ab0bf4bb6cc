/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <sys/stat.h>

#include "base/str.h"
#include "unit/os/scratch.h"

static int open_scratch(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	ASSERT_OK(dir_open(SCRATCH, false, 0, &fd, &err));
	return fd;
}

static void assert_content(int dir, const char *name, const char *expected)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(KIB(64));

	ASSERT_OK(file_read(dir, name, &b, &err));
	ck_assert_str_eq(buf_str(&b), expected);
}

static mode_t mode_of(int dir, const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

START_TEST(a_directory_is_made_once_with_its_mode)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int first = -1;
	CLEANUP(fd_closep) int second = -1;

	umask(077);
	ASSERT_OK(dir_open(SCRATCH "/d", true, 0755, &first, &err));
	ck_assert_uint_eq(mode_of(AT_FDCWD, SCRATCH "/d"), 0755);
	ASSERT_OK(dir_open(SCRATCH "/d", true, 0700, &second, &err));
	ck_assert_uint_eq(mode_of(AT_FDCWD, SCRATCH "/d"), 0755);
}
END_TEST

START_TEST(a_missing_directory_or_parent_is_not_found)
{
	CLEANUP(error_freep) struct error *err = NULL;
	int fd = -1;

	ASSERT_FAILS(dir_open(SCRATCH "/d", false, 0, &fd, &err), ERR_NOT_FOUND, SCRATCH "/d");
	ASSERT_FAILS(dir_open(SCRATCH "/d/e", true, 0700, &fd, &err), ERR_NOT_FOUND, SCRATCH "/d/e");
	close(scratch_file("plain", 0));
	ASSERT_FAILS(dir_open(SCRATCH "/plain", true, 0700, &fd, &err), ERR_INTERNAL, SCRATCH "/plain");
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(one_name_of_many_is_read)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();
	CLEANUP(free_charp) char *none = NULL;
	CLEANUP(free_charp) char *name = NULL;

	ASSERT_OK(dir_first(dir, &none, &err));
	ck_assert_ptr_null(none);
	close(scratch_file("a", 0));
	close(scratch_file("b", 0));
	ASSERT_OK(dir_first(dir, &name, &err));
	ck_assert(strcmp(name, "a") == 0 || strcmp(name, "b") == 0);
}
END_TEST

START_TEST(names_are_listed_in_order_and_again)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();

	for (int round = 0; round < 2; round++) {
		CLEANUP(strv_freep) char **names = NULL;
		ASSERT_OK(dir_list(dir, &names, &err));
		ck_assert_uint_eq(strv_len(names), round ? 3 : 0);
		if (round == 0) {
			close(scratch_file("b", 0));
			close(scratch_file(".hidden", 0));
			close(scratch_file("B", 0));
			continue;
		}
		ck_assert_str_eq(names[0], ".hidden");
		ck_assert_str_eq(names[1], "B");
		ck_assert_str_eq(names[2], "b");
	}
}
END_TEST

START_TEST(reading_appends_up_to_the_limit)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();
	CLEANUP(buf_done) struct buf exact = BUF_INIT(10001);
	CLEANUP(buf_done) struct buf small = BUF_INIT(9999);

	close(scratch_file("f", 10000));
	buf_addc(&exact, 'x');
	ASSERT_OK(file_read(dir, "f", &exact, &err));
	ck_assert_uint_eq(exact.len, 10001);
	ASSERT_FAILS(file_read(dir, "f", &small, &err), ERR_EXHAUSTED, "f");
	buf_reset(&exact);
	ASSERT_FAILS(file_read(dir, "g", &exact, &err), ERR_NOT_FOUND, "g");
	ASSERT_FAILS(file_read(AT_FDCWD, SCRATCH, &exact, &err), ERR_INTERNAL, SCRATCH);
}
END_TEST

START_TEST(what_is_no_regular_file_is_not_waited_for)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();
	CLEANUP(buf_done) struct buf content = BUF_INIT(100);

	ck_assert_int_eq(mkfifoat(dir, "fifo", 0600), 0);
	ASSERT_FAILS(file_read(dir, "fifo", &content, &err), ERR_INTERNAL, "fifo is not a regular file");
	ASSERT_FAILS(file_read(dir, "/dev/zero", &content, &err), ERR_INTERNAL, "not a regular file");
	ck_assert_uint_eq(content.len, 0);
}
END_TEST

START_TEST(a_write_replaces_the_content_and_the_mode)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();
	CLEANUP(strv_freep) char **names = NULL;

	umask(077);
	ASSERT_OK(file_write_atomic(dir, "f", span_of("one"), 0600, &err));
	assert_content(dir, "f", "one");
	ASSERT_OK(file_write_atomic(dir, "f", span_of("second"), 0644, &err));
	assert_content(dir, "f", "second");
	ck_assert_uint_eq(mode_of(dir, "f"), 0644);
	ASSERT_OK(dir_list(dir, &names, &err));
	ck_assert_uint_eq(strv_len(names), 1);
}
END_TEST

START_TEST(a_leftover_temporary_is_replaced_even_if_it_is_a_link)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();

	ASSERT_OK(file_write_atomic(dir, "victim", span_of("untouched"), 0600, &err));
	ck_assert_int_eq(symlinkat("victim", dir, ".f.tmp"), 0);
	ASSERT_OK(file_write_atomic(dir, "f", span_of("new"), 0600, &err));
	assert_content(dir, "f", "new");
	assert_content(dir, "victim", "untouched");
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_content_and_no_temporary)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **names = NULL;
	static uint8_t big[256 << 10];

	ck_assert_int_eq(mkdir(SCRATCH "/small", 0700), 0);
	ck_assert_int_eq(mount("small", SCRATCH "/small", "tmpfs", 0, "size=64k"), 0);

	CLEANUP(fd_closep) int dir = -1;
	ASSERT_OK(dir_open(SCRATCH "/small", false, 0, &dir, &err));
	ASSERT_OK(file_write_atomic(dir, "f", span_of("old"), 0600, &err));
	ASSERT_FAILS(
		file_write_atomic(dir, "f", (struct span){big, sizeof(big)}, 0600, &err), ERR_EXHAUSTED, "f");
	assert_content(dir, "f", "old");
	ASSERT_OK(dir_list(dir, &names, &err));
	ck_assert_uint_eq(strv_len(names), 1);
}
END_TEST

START_TEST(a_file_cannot_replace_a_directory)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();
	CLEANUP(strv_freep) char **names = NULL;

	ck_assert_int_eq(mkdirat(dir, "d", 0700), 0);
	ASSERT_FAILS(file_write_atomic(dir, "d", span_of("x"), 0600, &err), ERR_INTERNAL, "d");
	ASSERT_OK(dir_list(dir, &names, &err));
	ck_assert_uint_eq(strv_len(names), 1);
}
END_TEST

START_TEST(renaming_replaces_and_a_missing_source_is_not_found)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();

	ASSERT_OK(file_write_atomic(dir, "a", span_of("A"), 0600, &err));
	ASSERT_OK(file_write_atomic(dir, "b", span_of("B"), 0600, &err));
	ASSERT_OK(file_rename_durable(dir, "a", "b", &err));
	assert_content(dir, "b", "A");
	ASSERT_FAILS(file_rename_durable(dir, "a", "b", &err), ERR_NOT_FOUND, "a");
}
END_TEST

START_TEST(unlinking_is_idempotent_and_refuses_directories)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = open_scratch();

	close(scratch_file("f", 1));
	ASSERT_OK(file_unlink_durable(dir, "f", &err));
	ck_assert_int_lt(faccessat(dir, "f", F_OK, 0), 0);
	ASSERT_OK(file_unlink_durable(dir, "f", &err));
	ck_assert_int_eq(mkdirat(dir, "d", 0700), 0);
	ASSERT_FAILS(file_unlink_durable(dir, "d", &err), ERR_INTERNAL, "d");
}
END_TEST

SCRATCH_MAIN("os/file", a_directory_is_made_once_with_its_mode, a_missing_directory_or_parent_is_not_found,
	one_name_of_many_is_read, names_are_listed_in_order_and_again, reading_appends_up_to_the_limit,
	what_is_no_regular_file_is_not_waited_for, a_write_replaces_the_content_and_the_mode,
	a_leftover_temporary_is_replaced_even_if_it_is_a_link,
	a_full_disk_leaves_the_old_content_and_no_temporary, a_file_cannot_replace_a_directory,
	renaming_replaces_and_a_missing_source_is_not_found, unlinking_is_idempotent_and_refuses_directories)
